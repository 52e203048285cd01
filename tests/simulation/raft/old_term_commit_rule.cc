// Raft's best-known mistake (figure 8, R2): an entry of an older term is committed by counting its
// copies. Linked in place of //raft/core:commit_rule by one test, which shows that it is noticed.
#include <algorithm>
#include <utility>

#include "raft/core/commit_rule.h"
#include "raft/core/quorum.h"

namespace conclave::raft {

LogIndex NextCommitIndex(const RaftLog& log, std::vector<LogIndex> durable, Term) {
  return std::max(log.commit_index(), ReachedByMajority(std::move(durable)));
}

}  // namespace conclave::raft
