#ifndef CONCLAVE_RAFT_CORE_REJECTION_H_
#define CONCLAVE_RAFT_CORE_REJECTION_H_

#include <string>

#include "raft/core/types.h"

namespace conclave::raft {

// Why a message was refused without any effect and without an answer. An answer that says no (a
// vote not granted, an append that does not fit) is no rejection.
enum class RejectionReason {
  kMalformed,       // fields missing, out of range, or contradicting one another
  kWrongCluster,    // another cluster id
  kWrongNode,       // addressed to another node id: the transport misrouted it
  kWrongDirectory,  // addressed to another directory id: this disk was wiped or exchanged
  kFromSelf,
  kSecondLeader,          // an append from another than this term's leader
  kContradictsCommitted,  // an append that differs from a committed entry: two histories exist.
                          // Nothing was changed. The driver ends the process.
  kTooManyObservers,
};
inline constexpr int kRejectionReasons = 8;

inline const char* RejectionName(RejectionReason reason) {
  switch (reason) {
    case RejectionReason::kMalformed:
      return "malformed";
    case RejectionReason::kWrongCluster:
      return "wrong cluster";
    case RejectionReason::kWrongNode:
      return "wrong node";
    case RejectionReason::kWrongDirectory:
      return "wrong directory";
    case RejectionReason::kFromSelf:
      return "from self";
    case RejectionReason::kSecondLeader:
      return "second leader in a term";
    case RejectionReason::kContradictsCommitted:
      return "contradicts a committed entry";
    case RejectionReason::kTooManyObservers:
      return "too many observers";
  }
  return "unknown";
}

struct Rejection {
  RejectionReason reason = RejectionReason::kMalformed;
  // As far as the message tells; node kNoNode if it does not.
  ReplicaKey from;
  // For a person: what was expected and what came.
  std::string detail;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_REJECTION_H_
