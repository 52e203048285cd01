#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_REPLAY_MAIN_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_REPLAY_MAIN_H_

#include <glog/logging.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <ostream>

namespace conclave {

// The main of a simulation's replay: runs the seeds that are named. One alone runs with a readable
// trace, and what the nodes log. `run(seed, trace)` gives the run's result; `Counters` sums theirs.
template <class Counters, class Run>
int ReplayMain(int argc, char** argv, Run run) {
  if (argc < 2) {
    std::cerr << "usage: replay <seed> [<last seed>]\n";
    return 2;
  }
  const uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const uint64_t last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : first;
  const bool one = first == last;
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = one ? google::GLOG_INFO : google::GLOG_FATAL;
  google::InitGoogleLogging(argv[0]);
  bool failed = false;
  Counters total;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const auto result = run(seed, one ? &std::cerr : nullptr);
    total += result.counters;
    if (result.violation.empty()) continue;
    failed = true;
    std::cout << "seed " << seed << ": " << result.violation << std::endl;
  }
  std::cout << total.ToString() << std::endl;
  return failed ? 1 : 0;
}

}  // namespace conclave

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_REPLAY_MAIN_H_
