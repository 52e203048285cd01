#ifndef CONCLAVE_RAFT_CORE_TYPES_H_
#define CONCLAVE_RAFT_CORE_TYPES_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "common/types/ids.h"
#include "common/types/strong_int.h"

// The nouns of the Raft core. Plain values; safe to copy between threads.
namespace conclave::raft {

// One disk of one controller (KIP-853). The same node with a wiped disk is another replica.
struct ReplicaKey {
  NodeId node = kNoNode;
  DirectoryId directory;

  friend constexpr auto operator<=>(const ReplicaKey&, const ReplicaKey&) = default;
};

// A place in the log and the term written there: names an entry for ever (Raft 5.3, log matching).
// Ordered as candidates are compared, by term, then index (Raft 5.4.1). {0, 0} is before the first.
struct LogPosition {
  Term term;
  LogIndex index;

  friend constexpr auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

// What a replica must not forget over a crash (Raft, figure 2: currentTerm and votedFor).
struct HardState {
  Term term;
  // Whom it voted for in `term`, itself included.
  std::optional<ReplicaKey> vote;

  friend bool operator==(const HardState&, const HardState&) = default;
};

enum class EntryKind {
  kNoop,    // a new leader's first entry (Raft 8)
  kVoters,  // data is a serialized v1::VoterSet
  kData,    // data is opaque here
};

struct Entry {
  LogIndex index;
  Term term;
  EntryKind kind = EntryKind::kNoop;
  // Never null. Shared, because the log, writes, and committed entries hold the same bytes.
  std::shared_ptr<const std::string> data;

  // What it counts for in limits in bytes; the constant covers its other fields on the wire.
  size_t Bytes() const { return data->size() + 32; }
  LogPosition position() const { return {.term = term, .index = index}; }
};

// Names a write of a Ready. Rises by one with each, from 1; 0 is "none".
using WriteTicket = StrongInt<struct WriteTicketTag, uint64_t>;

// Chosen by the caller of ReadIndex to tell its reads apart.
using ReadContext = StrongInt<struct ReadContextTag, uint64_t>;

enum class Role {
  kObserver,  // not in the voter set: follows, and takes no part in votes or majorities
  kFollower,
  kProspective,  // asks whether it would be elected (pre-vote, KIP-996)
  kCandidate,    // asks to be elected
  kLeader,
};

inline const char* RoleName(Role role) {
  switch (role) {
    case Role::kObserver:
      return "observer";
    case Role::kFollower:
      return "follower";
    case Role::kProspective:
      return "prospective";
    case Role::kCandidate:
      return "candidate";
    case Role::kLeader:
      return "leader";
  }
  return "unknown";
}

inline std::ostream& operator<<(std::ostream& out, Role role) { return out << RoleName(role); }

inline std::ostream& operator<<(std::ostream& out, const ReplicaKey& key) {
  return out << key.node << "#" << key.directory;
}

inline std::ostream& operator<<(std::ostream& out, const LogPosition& p) {
  return out << "(term " << p.term << ", index " << p.index << ")";
}

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_TYPES_H_
