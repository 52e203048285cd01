// Runs seeds of the whole-cluster simulation; see --help, or tools/simulate.
#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulation/cluster/simulation.h"

namespace conclave::cluster_sim {
namespace {

using WallClock = std::chrono::steady_clock;

struct Arguments {
  uint64_t seed = 0;
  bool seed_given = false;
  int seconds = 0;
  uint64_t seeds = 0;
  int jobs = 1;
  int sends_a_second = 0;
};

struct Sum {
  uint64_t seeds = 0;
  uint64_t failures = 0;
  uint64_t events = 0;
  Duration simulated;
  Coverage coverage;

  void Add(const RunResult& result) {
    ++seeds;
    failures += result.violation.empty() ? 0 : 1;
    events += result.events;
    simulated = simulated + result.simulated;
    coverage += result.coverage;
  }
};

// With what the nodes log, and a line for everything that is done to them.
int RunOne(const Arguments& arguments) {
  FLAGS_minloglevel = google::GLOG_INFO;
  const uint64_t seed = arguments.seed;
  const RunResult result =
      RunSeed({.seed = seed, .trace = &std::cerr, .sends_a_second = arguments.sends_a_second});
  std::cout << result.coverage << "\n";
  if (!result.violation.empty()) std::cout << "seed " << seed << ": " << result.violation << "\n";
  std::cout << "1 seed, " << result.simulated.seconds() << " simulated s, " << result.events
            << " events, " << (result.violation.empty() ? 0 : 1) << " failures; trace hash "
            << std::hex << result.trace_hash << std::endl;
  return result.violation.empty() ? 0 : 1;
}

// Every so many seeds, until the time is over; failures to stdout, the sum to `out`.
void RunShare(const Arguments& arguments, uint64_t first, WallClock::time_point until, FILE* out) {
  Sum sum;
  for (uint64_t i = first; arguments.seeds == 0 || i < arguments.seeds;
       i += static_cast<uint64_t>(arguments.jobs)) {
    if (arguments.seconds > 0 && WallClock::now() >= until) break;
    const uint64_t seed = arguments.seed + i;
    const RunResult result = RunSeed({.seed = seed, .sends_a_second = arguments.sends_a_second});
    sum.Add(result);
    if (result.violation.empty()) continue;
    std::ostringstream line;
    line << "seed " << seed << ": " << result.violation << "\n  replay: " << ReplayCommand(seed);
    if (arguments.sends_a_second > 0) line << " --sends " << arguments.sends_a_second;
    line << "\n";
    std::cout << line.str() << std::flush;
  }
  std::fprintf(out, "%lu %lu %lu %ld\n", sum.seeds, sum.failures, sum.events,
               sum.simulated.milliseconds());
  for (const auto& [what, times] : sum.coverage.counts()) {
    std::fprintf(out, "%lu %s\n", times, what.c_str());
  }
  std::fclose(out);
}

bool AddShare(FILE* in, Sum& sum) {
  uint64_t seeds = 0, failures = 0, events = 0;
  int64_t simulated_ms = 0;
  if (std::fscanf(in, "%lu %lu %lu %ld\n", &seeds, &failures, &events, &simulated_ms) != 4) {
    return false;
  }
  sum.seeds += seeds;
  sum.failures += failures;
  sum.events += events;
  sum.simulated = sum.simulated + Duration::Milliseconds(simulated_ms);
  uint64_t times = 0;
  char what[256];
  while (std::fscanf(in, "%lu %255[^\n]\n", &times, what) == 2) sum.coverage.Count(what, times);
  return true;
}

// A process each, for they share nothing.
int RunMany(const Arguments& arguments) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  std::cout << "seeds from " << arguments.seed << " on" << std::endl;
  const auto begun = WallClock::now();
  const auto until = begun + std::chrono::seconds(arguments.seconds);
  std::vector<FILE*> shares;
  std::vector<pid_t> workers;
  for (int job = 0; job < arguments.jobs; ++job) {
    int ends[2];
    PCHECK(pipe(ends) == 0);
    const pid_t worker = fork();
    PCHECK(worker >= 0);
    if (worker == 0) {
      close(ends[0]);
      RunShare(arguments, static_cast<uint64_t>(job), until, fdopen(ends[1], "w"));
      std::_Exit(0);
    }
    close(ends[1]);
    shares.push_back(fdopen(ends[0], "r"));
    workers.push_back(worker);
  }
  Sum sum;
  bool whole = true;
  for (int job = 0; job < arguments.jobs; ++job) {
    whole = AddShare(shares[static_cast<size_t>(job)], sum) && whole;
    std::fclose(shares[static_cast<size_t>(job)]);
    int status = 0;
    waitpid(workers[static_cast<size_t>(job)], &status, 0);
    if (status != 0) {
      std::cout << "a worker ended with wait status " << status
                << ": a check of the code failed, or it crashed; what it ran is not counted\n";
      whole = false;
    }
  }
  const double seconds = std::chrono::duration<double>(WallClock::now() - begun).count();
  std::cout << sum.coverage << "\n"
            << static_cast<uint64_t>(static_cast<double>(sum.events) / seconds) << " events and "
            << sum.simulated.seconds() / seconds << " simulated seconds a second, with "
            << arguments.jobs << " processes\n"
            << sum.seeds << " seeds, " << sum.simulated.seconds() << " simulated s, " << sum.events
            << " events, " << sum.failures + (whole ? 0 : 1) << " failures" << std::endl;
  return whole && sum.failures == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs whole clusters, simulated from seeds, under faults.");
  CLI::Option* seed = app.add_option("--seed", arguments.seed,
                                     "The first seed; alone, that one runs, with its trace on "
                                     "stderr (default: a random one)");
  CLI::Option* seconds =
      app.add_option("--seconds", arguments.seconds, "Run one seed after the other for so long")
          ->check(CLI::Range(1, 1'000'000));
  CLI::Option* seeds =
      app.add_option("--seeds", arguments.seeds, "Or so many")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--jobs", arguments.jobs, "Processes at the same time")->check(CLI::Range(1, 64));
  app.add_option("--sends", arguments.sends_a_second,
                 "Of the clients only a producer of so many sends a simulated second, and a "
                 "consumer; to measure with")
      ->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  if (seconds->count() == 0 && seeds->count() == 0) {
    if (seed->count() > 0) return RunOne(arguments);
    std::cerr << "give --seconds, --seeds or --seed; see --help\n";
    return 2;
  }
  // Far apart, and short enough to type.
  if (seed->count() == 0) arguments.seed = std::random_device()() * uint64_t{1'000};
  return RunMany(arguments);
}

}  // namespace
}  // namespace conclave::cluster_sim

int main(int argc, char** argv) { return conclave::cluster_sim::Main(argc, argv); }
