// ceilings: what the machine, its disk and gRPC allow. One program, server and client in processes
// of their own, as Conclave's are. Prints one JSON object.
#include <glog/logging.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/bench/ceilings/client.h"
#include "tests/bench/ceilings/disk.h"
#include "tests/bench/ceilings/methods.h"
#include "tests/bench/ceilings/server.h"

namespace {

using conclave::bench::Client;
using conclave::bench::Outcome;
using conclave::tools::Histogram;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string target;
  std::string dir;
  size_t size = 0;
  size_t in_flight = 1;
  double rate = 0;
  uint64_t messages = 0;
  uint64_t warm_up = 0;
  size_t writers = 3;
  uint64_t sync_every = 0;
  uint64_t bytes = 0;
};

Json Microseconds(const Histogram& latency) {
  const auto us = [&](double percent) {
    return static_cast<double>(latency.Percentile(percent)) / 1e3;
  };
  return {{"p50", us(50)},
          {"p99", us(99)},
          {"p99.9", us(99.9)},
          {"max", static_cast<double>(latency.max()) / 1e3}};
}

int Print(const Outcome& outcome) {
  Json json = {{"messages", outcome.messages},
               {"bytes", outcome.bytes},
               {"seconds", outcome.seconds},
               {"mb_per_second", static_cast<double>(outcome.bytes) / 1e6 / outcome.seconds}};
  if (outcome.latency.count() > 0) json["latency_us"] = Microseconds(outcome.latency);
  std::cout << json << std::endl;
  return 0;
}

int Call(const Arguments& arguments, const char* method) {
  Client client(arguments.target);
  if (arguments.warm_up > 0) {
    client.Closed(method, arguments.size, arguments.in_flight, arguments.warm_up);
  }
  if (arguments.rate > 0) {
    return Print(client.Paced(method, arguments.size, arguments.rate, arguments.messages));
  }
  return Print(client.Closed(method, arguments.size, arguments.in_flight, arguments.messages));
}

int Disk(const Arguments& arguments) {
  const auto outcome = conclave::bench::WriteSynced(
      arguments.dir, arguments.writers, arguments.size, arguments.sync_every, arguments.bytes);
  const double sum = std::accumulate(outcome.rates.begin(), outcome.rates.end(), 0.0);
  const Json json = {{"writers", arguments.writers},
                     {"sum_mb_per_second", sum / 1e6},
                     {"share_mb_per_second", sum / 1e6 / static_cast<double>(arguments.writers)},
                     {"sync_us", Microseconds(outcome.latency)}};
  std::cout << json << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  // The ceiling is to be high: glibc would give each large buffer back to the kernel and have its
  // pages faulted in anew.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  CLI::App app("What the machine, its disk and gRPC allow");
  app.require_subcommand(1);
  Arguments arguments;
  std::function<int()> run;
  const auto calls = [&](CLI::App* command) {
    command->add_option("--target", arguments.target, "host:port of 'serve'")->required();
    command->add_option("--size", arguments.size, "Bytes of a message")->required();
    command->add_option("--messages", arguments.messages, "How many")->required();
  };
  const auto unary = [&](const char* name, const char* help, const char* method) {
    CLI::App* command = app.add_subcommand(name, help);
    calls(command);
    command->add_option("--in-flight", arguments.in_flight, "Calls under way at a time");
    command->add_option("--rate", arguments.rate, "Instead: an open loop of so many a second");
    command->add_option("--warm-up", arguments.warm_up, "Calls that are not counted, before");
    command->callback([&, method] { run = [&, method] { return Call(arguments, method); }; });
  };
  CLI::App* serve = app.add_subcommand("serve", "Serve the others until standard input ends");
  serve->add_option("--dir", arguments.dir, "For its files")->required();
  serve->callback([&] { run = [&] { return conclave::bench::Serve(arguments.dir); }; });
  unary("echo", "Unary calls that come back", conclave::bench::kEcho);
  unary("append", "Unary calls that are checksummed and written", conclave::bench::kAppend);
  CLI::App* pull = app.add_subcommand("pull", "A stream of slices of a mapped file");
  calls(pull);
  pull->callback([&] {
    run = [&] { return Print(Client(arguments.target).Pull(arguments.size, arguments.messages)); };
  });
  CLI::App* disk = app.add_subcommand("disk", "Writers at the same time, each synced");
  disk->add_option("--dir", arguments.dir, "Where they write")->required();
  disk->add_option("--writers", arguments.writers, "How many");
  disk->add_option("--size", arguments.size, "Bytes of a write")->required();
  disk->add_option("--sync-every", arguments.sync_every, "Bytes between two syncs")->required();
  disk->add_option("--bytes", arguments.bytes, "Of each writer")->required();
  disk->callback([&] { run = [&] { return Disk(arguments); }; });
  CLI11_PARSE(app, argc, argv);
  return run();
}
