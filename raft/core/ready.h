#ifndef CONCLAVE_RAFT_CORE_READY_H_
#define CONCLAVE_RAFT_CORE_READY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "conclave/v1/raft.pb.h"
#include "raft/core/reads.h"
#include "raft/core/rejection.h"
#include "raft/core/types.h"

namespace conclave::raft {

// One atomic batch for storage: all of it becomes durable or none. Applied in the order of the
// members.
struct Write {
  WriteTicket ticket;
  std::optional<HardState> hard_state;
  // Remove this index and all after it.
  std::optional<LogIndex> truncate_from;
  // Contiguous; the first one follows what storage holds after the cut.
  std::vector<Entry> entries;
};

// A message that may leave once `after`, and so every write before it, is durable; at once if it
// already is.
struct DeferredMessage {
  WriteTicket after;
  v1::RaftMessage message;
};

struct LeadershipChange {
  Role role = Role::kFollower;
  Term term;
  // Who leads `term`, as far as known and alive.
  std::optional<ReplicaKey> leader;

  friend bool operator==(const LeadershipChange&, const LeadershipChange&) = default;
};

// What the driver has to do. It owns everything in here.
//
// Order: a write is handed to storage in the order of tickets, before or after sending `messages`
// (they promise nothing about it). Deferred messages wait for their ticket, and die with the
// process. `committed` is in order of index, each entry once in the life of a core; an entry may
// come before this replica's own write of it is durable (a majority has it), so a snapshot is taken
// only of what is durable here.
struct Ready {
  std::vector<v1::RaftMessage> messages;
  std::optional<Write> write;
  std::vector<DeferredMessage> deferred;
  std::vector<Entry> committed;
  // May be answered once `index` is applied.
  std::vector<ConfirmedRead> reads;
  // Leadership was lost before they were confirmed: retriable refusals.
  std::vector<ReadContext> failed_reads;
  // Set when it differs from the last one handed out. One that is gained holds after `committed` of
  // the same Ready; one that is lost was lost before, and `committed` may hold another leader's
  // entries.
  std::optional<LeadershipChange> leadership;
  std::vector<Rejection> rejections;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_READY_H_
