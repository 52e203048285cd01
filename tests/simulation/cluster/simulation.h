#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "common/types/time.h"
#include "tests/simulation/cluster/coverage.h"

namespace conclave::cluster_sim {

struct RunOptions {
  uint64_t seed = 0;
  // Where a readable trace goes; null for none. Outlives the run.
  std::ostream* trace = nullptr;
  // Positive: the clients are one producer of so many sends a simulated second, and a consumer.
  int sends_a_second = 0;
};

struct RunResult {
  // The first rule that broke, with the run's moment; empty: none did.
  std::string violation;
  Coverage coverage;
  // Deliveries, completions of disks, timers, and steps between the executors of a node.
  uint64_t events = 0;
  Duration simulated;
  uint64_t trace_hash = 0;
};

// Runs a cluster with producers, a consumer, committed offsets, members of a group and an
// administrator through the faults that `seed` draws, then without faults until it is whole again,
// and reads everything. A function of the seed alone.
RunResult RunSeed(const RunOptions& options);

std::string ReplayCommand(uint64_t seed);

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_
