#ifndef CONCLAVE_RAFT_CORE_BOOTSTRAP_H_
#define CONCLAVE_RAFT_CORE_BOOTSTRAP_H_

#include <vector>

#include "raft/core/types.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {

// What a replica reads from its disk at a start. Default: an empty directory, an observer for ever
// unless a leader replicates to it.
struct RecoveredState {
  HardState hard_state;
  // The whole log, contiguous from index 1.
  std::vector<Entry> entries;
};

// What `storage format` writes on every initial voter, the same everywhere: a log of one VOTERS
// entry at (term 1, index 1), and a hard state of term 1 without a vote. Nothing else founds a
// quorum, so wiped disks cannot found a second history.
RecoveredState FormatInitialVoters(const VoterSet& voters);

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_BOOTSTRAP_H_
