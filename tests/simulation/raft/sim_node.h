#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NODE_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NODE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "raft/core/raft_core.h"
#include "tests/simulation/raft/sim_disk.h"

namespace conclave::raft::sim {

// A machine: what survives a crash, and, while its process lives, the core with its driver's state.
struct SimNode {
  int number = 0;  // from 0; its node id is one more
  Config config;
  SimDisk disk;
  // Counts starts, so that what was meant for an earlier process is recognised.
  uint64_t incarnation = 0;
  // Until then the process stands still; what comes waits.
  MonotonicTime paused_until;
  // Until then no write becomes durable.
  MonotonicTime stalled_until;

  std::unique_ptr<RaftCore> core;  // null while it is down
  WriteTicket durable;
  std::vector<DeferredMessage> deferred;
  MonotonicTime timer_at = MonotonicTime::Never();
  MonotonicTime disk_free_at;
  Term led;  // the last term it was seen leading

  const ReplicaKey& key() const { return config.self; }
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_SIM_NODE_H_
