#include "raft/core/commit_rule.h"

#include <utility>

#include "raft/core/quorum.h"

namespace conclave::raft {

LogIndex NextCommitIndex(const RaftLog& log, std::vector<LogIndex> durable, Term term) {
  const LogIndex held = ReachedByMajority(std::move(durable));
  if (held <= log.commit_index() || log.TermAt(held) != term) return log.commit_index();
  return held;
}

}  // namespace conclave::raft
