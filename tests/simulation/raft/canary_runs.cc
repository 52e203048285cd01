#include "tests/simulation/raft/canary_runs.h"

#include <iostream>

namespace conclave::raft::sim {

CanaryRuns RunCanary(DriverFault fault, const char* invariant, uint64_t stop_at) {
  CanaryRuns runs;
  for (uint64_t seed = 1; seed <= kCanarySeeds && runs.caught < stop_at; ++seed) {
    const RunResult result = RunSeed({.seed = seed, .fault = fault});
    if (!result.violation) continue;
    if (result.violation->invariant == invariant) {
      if (runs.caught++ == 0) runs.first_seed = seed;
    } else {
      ++runs.by_others;
    }
    std::cout << "seed " << seed << ": " << result.violation->invariant << ": "
              << result.violation->detail << std::endl;
  }
  return runs;
}

}  // namespace conclave::raft::sim
