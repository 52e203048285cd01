#ifndef CONCLAVE_RAFT_STORAGE_FORMAT_H_
#define CONCLAVE_RAFT_STORAGE_FORMAT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "raft/core/types.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {

// Reads `id@host:port#directory-id,…`, the same text on every initial voter. The error names the
// part that is wrong.
absl::StatusOr<VoterSet> ParseInitialVoters(const std::string& text);

// The inverse, in ascending order of ids.
std::string InitialVotersText(const VoterSet& voters);

// Makes the Raft log, at `path`, of a controller that founds a quorum with `voters`, and is one of
// them. Whole or not at all; refused if there is a log already that is not just that one.
absl::Status FormatVoterLog(const std::string& path, const VoterSet& voters,
                            const ReplicaKey& self);

// Makes the empty log of a controller that follows a quorum without being of it.
absl::Status FormatObserverLog(const std::string& path);

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_STORAGE_FORMAT_H_
