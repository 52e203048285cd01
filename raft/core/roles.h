#ifndef CONCLAVE_RAFT_CORE_ROLES_H_
#define CONCLAVE_RAFT_CORE_ROLES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/types/time.h"
#include "raft/core/progress.h"
#include "raft/core/reads.h"
#include "raft/core/types.h"

// What a role owns, and what ends with it. Everything else of a replica outlives its roles.
namespace conclave::raft {

// A prospective or a candidate asks: ends with the attempt.
struct Campaign {
  std::set<ReplicaKey> granted;
  std::set<ReplicaKey> refused;
  // A candidate's own vote counts once this is durable.
  WriteTicket own_vote;
};

struct Observer {
  Progress progress;
  std::string endpoint;  // host:port
};

// Ends with the leadership.
struct Leadership {
  // The NOOP that began it. Once this is committed the leader serves.
  LogIndex first_index;
  std::map<ReplicaKey, Progress> peers;  // voters but itself
  std::map<ReplicaKey, Observer> observers;
  // Rounds of appends to everybody, for heartbeats and reads.
  uint64_t round = 0;
  bool round_due = false;
  MonotonicTime heartbeat_deadline;
  PendingReads reads;
  // Of entries above the commit index.
  size_t uncommitted_bytes = 0;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_ROLES_H_
