#ifndef CONCLAVE_RAFT_CORE_COMMIT_RULE_H_
#define CONCLAVE_RAFT_CORE_COMMIT_RULE_H_

#include <vector>

#include "raft/core/log.h"
#include "raft/core/types.h"

namespace conclave::raft {

// The commit index of a leader of `term` (Raft 5.4.2): the greatest index that a majority has on
// disk, if its entry is of the leader's own term; else as it was. Entries of older terms are
// committed by the one that follows them, never by being counted: a majority that holds an old
// entry does not keep a newer leader from replacing it (figure 8).
//
// `durable` has one index for each voter, the leader's own included; not empty.
LogIndex NextCommitIndex(const RaftLog& log, std::vector<LogIndex> durable, Term term);

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_COMMIT_RULE_H_
