#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIMULATION_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIMULATION_H_

#include <cstdint>
#include <ostream>
#include <string>

namespace conclave::control_sim {

struct RunOptions {
  uint64_t seed = 0;
  // Where a readable trace goes; null for none. Outlives the run.
  std::ostream* trace = nullptr;
};

// Of one run, or summed over many.
struct RunCounters {
  uint64_t events = 0;
  uint64_t commits = 0;
  uint64_t activations = 0;
  uint64_t topics_created = 0;
  uint64_t topics_deleted = 0;
  uint64_t lists = 0;
  uint64_t requests_failed = 0;
  uint64_t controller_crashes = 0;
  uint64_t broker_crashes = 0;
  uint64_t broker_stops = 0;
  uint64_t power_cuts = 0;
  uint64_t partitions = 0;
  uint64_t one_way_cuts = 0;
  uint64_t leader_cuts = 0;
  uint64_t stream_breaks = 0;
  uint64_t pauses = 0;
  uint64_t disk_errors = 0;
  uint64_t clock_steps = 0;

  RunCounters& operator+=(const RunCounters& other);
  std::string ToString() const;
};

struct RunResult {
  // The first invariant that broke, with the run's moment; empty: none did.
  std::string violation;
  RunCounters counters;
  uint64_t trace_hash = 0;
};

// Runs a control plane through the faults that `seed` draws, then without faults until it is whole
// again. A function of the seed alone.
RunResult RunSeed(const RunOptions& options);

std::string ReplayCommand(uint64_t seed);

}  // namespace conclave::control_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIMULATION_H_
