#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_

#include <cstdint>
#include <ostream>
#include <string>

namespace conclave::cluster_sim {

struct RunOptions {
  uint64_t seed = 0;
  // Where a readable trace goes; null for none. Outlives the run.
  std::ostream* trace = nullptr;
};

// Of one run, or summed over many.
struct RunCounters {
  uint64_t events = 0;
  uint64_t sent = 0;
  uint64_t acknowledged = 0;
  uint64_t refused = 0;
  uint64_t unknown = 0;
  uint64_t polled = 0;
  uint64_t offsets_committed = 0;
  uint64_t offsets_read = 0;
  uint64_t batches_committed = 0;
  uint64_t batches_compared = 0;
  uint64_t leaders = 0;
  uint64_t truncations = 0;
  uint64_t broker_crashes = 0;
  uint64_t leader_crashes = 0;
  uint64_t controller_crashes = 0;
  uint64_t power_cuts = 0;
  uint64_t cuts = 0;
  uint64_t one_way_cuts = 0;
  uint64_t pauses = 0;
  uint64_t stream_breaks = 0;
  uint64_t broker_stops = 0;

  RunCounters& operator+=(const RunCounters& other);
  std::string ToString() const;
};

struct RunResult {
  // The first rule that broke, with the run's moment; empty: none did.
  std::string violation;
  RunCounters counters;
  uint64_t trace_hash = 0;
};

// Runs a cluster with a producer, a consumer and committed offsets through the faults that `seed` draws, then without faults until it
// is whole again, and reads everything. A function of the seed alone.
RunResult RunSeed(const RunOptions& options);

std::string ReplayCommand(uint64_t seed);

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_SIMULATION_H_
