#ifndef CONCLAVE_RAFT_CORE_STATUS_H_
#define CONCLAVE_RAFT_CORE_STATUS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/types/time.h"
#include "raft/core/rejection.h"
#include "raft/core/types.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {

// Since the core was created.
struct Counters {
  uint64_t campaigns = 0;          // pre-vote rounds begun
  uint64_t pre_votes_refused = 0;  // by this replica
  uint64_t elections = 0;          // terms it stood in
  uint64_t elections_won = 0;
  uint64_t quorum_resignations = 0;  // a majority was silent
  uint64_t stall_resignations = 0;   // its own write was not durable in time
  uint64_t truncations = 0;
  uint64_t appends_sent = 0;  // with and without entries
  std::array<uint64_t, kRejectionReasons> rejections{};
};

// What a proposal has come to. kUnknown also where this replica's log no longer holds it: another
// replica's may.
enum class Fate { kUnknown, kCommitted, kLost };

struct PeerStatus {
  ReplicaKey key;
  bool observer = false;
  std::string endpoint;
  LogIndex match;
  LogIndex next;
  bool probing = false;
  MonotonicTime last_contact;
};

struct Status {
  ReplicaKey self;
  Role role = Role::kObserver;
  Term term;
  std::optional<ReplicaKey> vote;
  std::optional<ReplicaKey> leader;
  LogPosition last;
  LogIndex durable_index;
  LogIndex commit_index;
  bool leader_serves = false;
  VoterSet voters;
  // Of a leader; by key, voters first.
  std::vector<PeerStatus> peers;
  Counters counters;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_STATUS_H_
