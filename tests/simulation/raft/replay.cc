// Runs seeds of the Raft simulation by hand.
//
//   bazel run //tests/simulation/raft:replay -- --seed=17 [--runs=1000] [--fault=ack-before-sync]
//       [--trace]
//
// --runs counts on from the seed. Exit code 1 if an invariant was violated.
#include <cstdint>
#include <iostream>
#include <string>

#include "tests/simulation/raft/simulation.h"

namespace {

using conclave::raft::sim::ParseDriverFault;
using conclave::raft::sim::ReplayCommand;
using conclave::raft::sim::RunCounters;
using conclave::raft::sim::RunOptions;
using conclave::raft::sim::RunResult;
using conclave::raft::sim::RunSeed;

bool Flag(const std::string& argument, const std::string& name, std::string& value) {
  const std::string prefix = "--" + name + "=";
  if (argument.rfind(prefix, 0) != 0) return false;
  value = argument.substr(prefix.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  uint64_t runs = 1;
  for (int i = 1; i < argc; ++i) {
    std::string value;
    if (std::string(argv[i]) == "--trace") {
      options.trace = &std::cout;
    } else if (Flag(argv[i], "seed", value)) {
      options.seed = std::stoull(value);
    } else if (Flag(argv[i], "runs", value)) {
      runs = std::stoull(value);
    } else if (Flag(argv[i], "fault", value) && ParseDriverFault(value)) {
      options.fault = *ParseDriverFault(value);
    } else {
      std::cerr << "unknown argument " << argv[i] << "\n";
      return 2;
    }
  }
  RunCounters total;
  uint64_t violated = 0;
  for (uint64_t run = 0; run < runs; ++run, ++options.seed) {
    const RunResult result = RunSeed(options);
    total += result.counters;
    if (!result.violation) continue;
    ++violated;
    std::cout << "seed " << options.seed << " violates " << result.violation->invariant << ": "
              << result.violation->detail << "\n  " << ReplayCommand(options) << std::endl;
  }
  std::cout << runs << " runs, " << violated << " violated; " << total.ToString() << std::endl;
  return violated > 0 ? 1 : 0;
}
