#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_SIMULATION_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_SIMULATION_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "common/types/time.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {

// What a driver of the core may get wrong. Committed on purpose, to prove that the invariants would
// notice.
enum class DriverFault {
  kNone,
  kVoteForgotten,         // R1: the vote is not in the hard state that becomes durable
  kAckBeforeSync,         // deferred messages leave at once
  kLeaderCountsUnsynced,  // a leader's writes are reported durable when they are submitted
};

const char* DriverFaultName(DriverFault fault);
std::optional<DriverFault> ParseDriverFault(const std::string& name);

struct RunOptions {
  uint64_t seed = 0;
  DriverFault fault = DriverFault::kNone;
  // Where a readable trace goes; null for none. Outlives the run.
  std::ostream* trace = nullptr;
};

// Of one run, or summed over many.
struct RunCounters {
  uint64_t events = 0;  // delivered messages, disk completions, timers that changed something
  uint64_t elections_won = 0;
  uint64_t truncations = 0;
  uint64_t committed = 0;  // entries, each counted once
  uint64_t reads_confirmed = 0;
  uint64_t crashes = 0;
  uint64_t crashes_that_lost_writes = 0;
  uint64_t partitions = 0;
  uint64_t one_way_cuts = 0;
  uint64_t disk_stalls = 0;
  uint64_t pauses = 0;
  uint64_t wipes = 0;
  uint64_t stream_resets = 0;
  uint64_t messages_lost = 0;
  uint64_t messages_doubled = 0;
  uint64_t pre_votes_refused = 0;
  uint64_t quorum_resignations = 0;
  uint64_t stall_resignations = 0;

  RunCounters& operator+=(const RunCounters& other);
  std::string ToString() const;
};

struct RunResult {
  // The first one; the run ends with it.
  std::optional<Violation> violation;
  RunCounters counters;
  uint64_t trace_hash = 0;
  Duration simulated;
};

// Runs a cluster through the faults that `seed` draws, then without faults until it is whole again.
// A function of its options alone.
RunResult RunSeed(const RunOptions& options);

// The command that replays a run with its trace.
std::string ReplayCommand(const RunOptions& options);

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_SIMULATION_H_
