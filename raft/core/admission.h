#ifndef CONCLAVE_RAFT_CORE_ADMISSION_H_
#define CONCLAVE_RAFT_CORE_ADMISSION_H_

#include <optional>
#include <vector>

#include "conclave/v1/raft.pb.h"
#include "raft/core/config.h"
#include "raft/core/rejection.h"
#include "raft/core/types.h"

namespace conclave::raft {

// Terms and indexes above these are refused: no cluster reaches them, and below them arithmetic on
// them cannot overflow.
inline constexpr Term kGreatestTerm{uint64_t{1} << 62};
inline constexpr LogIndex kGreatestIndex{uint64_t{1} << 62};

// A message that may be acted on: addressed to us, and well-formed by itself. Whether it fits the
// state is for the core to say. `message` points to what was admitted.
struct Admitted {
  ReplicaKey from;
  Term term;
  const v1::RaftMessage* message = nullptr;
  // Of an append request.
  LogPosition prev;
  std::vector<Entry> entries;
};

// Whether any message may be acted on: every field that is read later is checked here. Exactly one
// of the two results is set.
struct AdmissionResult {
  std::optional<Admitted> admitted;
  std::optional<Rejection> rejection;
};
AdmissionResult Admit(const Config& config, const v1::RaftMessage& message);

// The wire form of an entry.
v1::RaftEntry ToProto(const Entry& entry);
// nullopt for an unknown kind, an index or term of 0 or too great, or VOTERS data that no voter set
// can be read from.
std::optional<Entry> FromProto(const v1::RaftEntry& entry);

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_ADMISSION_H_
