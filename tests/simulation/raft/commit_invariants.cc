#include "tests/simulation/raft/commit_invariants.h"

#include <sstream>

#include "tests/simulation/raft/log_matching.h"

namespace conclave::raft::sim {

MaybeViolation CommitInvariants::OnCommitted(const ReplicaKey& replica, Term term,
                                             const Entry& entry, const VoterSet& voters,
                                             const OnDisk& on_disk) {
  std::ostringstream detail;
  LogIndex& delivered = delivered_[replica];
  if (entry.index != delivered + 1) {
    detail << replica << " is given index " << entry.index << " after " << delivered;
    return Violation{kStateMachineSafety, detail.str()};
  }
  delivered = entry.index;
  const uint64_t content = ContentHash(entry);
  if (entry.index <= last_committed()) {
    const Committed& known = committed_[entry.index.value() - 1];
    if (known.term == entry.term && known.content == content) return std::nullopt;
    detail << replica << " has " << entry.position() << " committed, others committed term "
           << known.term << " there";
    return Violation{kStateMachineSafety, detail.str()};
  }
  committed_.push_back({entry.term, content, term});
  size_t copies = 0;
  for (const VoterSet::Member& member : voters.members()) {
    copies += on_disk(member.key, entry.position()) ? 1 : 0;
  }
  if (2 * copies > voters.size()) return std::nullopt;
  detail << replica << " has " << entry.position() << " committed with " << copies
         << " durable copies among " << voters.size() << " voters";
  return Violation{kDurability, detail.str()};
}

MaybeViolation CommitInvariants::OnLeader(const ReplicaKey& replica, Term term,
                                          const RaftLog& log) const {
  // The last that was committed in an older term; by log matching it stands for all before it.
  LogIndex last = last_committed();
  while (last > LogIndex(0) && committed_[last.value() - 1].committed_in >= term) last = last - 1;
  if (last == LogIndex(0)) return std::nullopt;
  const Committed& committed = committed_[last.value() - 1];
  if (log.Holds({.term = committed.term, .index = last})) return std::nullopt;
  std::ostringstream detail;
  detail << replica << " leads term " << term << " without (term " << committed.term << ", index "
         << last << "), which was committed in term " << committed.committed_in;
  return Violation{kLeaderCompleteness, detail.str()};
}

MaybeViolation CommitInvariants::OnReadConfirmed(const ConfirmedRead& read) const {
  const auto asked = reads_.find(read.context);
  if (asked != reads_.end() && read.index >= asked->second) return std::nullopt;
  std::ostringstream detail;
  detail << "read " << read.context << " may be answered at index " << read.index << ", though "
         << (asked == reads_.end() ? LogIndex(0) : asked->second)
         << " was committed when it was asked";
  return Violation{kCurrentReads, detail.str()};
}

}  // namespace conclave::raft::sim
