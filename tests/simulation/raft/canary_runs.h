#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_CANARY_RUNS_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_CANARY_RUNS_H_

#include <cstdint>

#include "tests/simulation/raft/simulation.h"

namespace conclave::raft::sim {

// The seeds that the clean build passes and that every canary has to be caught in. The same
// workload and faults for both.
inline constexpr uint64_t kCanarySeeds = 200;

struct CanaryRuns {
  uint64_t caught = 0;      // by the invariant expected
  uint64_t first_seed = 0;  // that caught it; 0 for none
  uint64_t by_others = 0;   // violated something else first
};

// Runs seeds 1 to kCanarySeeds, and prints what caught the fault. `stop_at` catches are enough.
CanaryRuns RunCanary(DriverFault fault, const char* invariant, uint64_t stop_at);

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_CANARY_RUNS_H_
