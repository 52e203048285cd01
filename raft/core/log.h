#ifndef CONCLAVE_RAFT_CORE_LOG_H_
#define CONCLAVE_RAFT_CORE_LOG_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "raft/core/types.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {

// The replicated log in memory (Raft 5.3), from index 1, and how far of it storage has.
//
//   1 ........ durable ........ handed ........ last
//     on disk    |  in a write    |  not yet in
//                |  under way     |  any write
//
// durable <= handed <= last, commit <= last. `commit` stands in no order to `durable`: a majority
// may hold an entry that this replica's disk does not.
//
// Not thread-safe.
class RaftLog {
 public:
  // What the next write has to do to storage: first cut, then append.
  struct Unwritten {
    std::optional<LogIndex> truncate_from;
    std::vector<Entry> entries;
  };

  RaftLog() = default;

  // Takes entries read from storage, all durable. DataLoss, naming the place, if they are not
  // contiguous from 1, terms fall or are 0, or a VOTERS entry does not parse.
  static absl::StatusOr<RaftLog> Recover(std::vector<Entry> entries);

  LogIndex last_index() const { return LogIndex(entries_.size()); }
  LogPosition last() const;
  LogIndex commit_index() const { return commit_; }
  // Through here the log is on this replica's disk.
  LogIndex durable_index() const { return durable_; }

  // 0 for index 0; nullopt past the end.
  std::optional<Term> TermAt(LogIndex index) const;
  bool Holds(LogPosition position) const { return TermAt(position.index) == position.term; }
  // index is in [1, last].
  const Entry& At(LogIndex index) const;
  // Entries from `from` on, at least one where there is one, then as many as fit in `max_bytes`.
  std::vector<Entry> Slice(LogIndex from, LogIndex through, size_t max_bytes) const;

  // The first index of the run of equal terms that holds `index`, in [1, last].
  LogIndex FirstOfTermAt(LogIndex index) const;
  // The last index whose entry has a term of at most `term`; 0 for none.
  LogIndex LastAtOrBelow(Term term) const;

  // Voters by the last VOTERS entry, committed or not; empty without one.
  const VoterSet& voters() const;

  // `entry` follows last_index(), its term does not fall, and a VOTERS entry's data parses:
  // checked.
  void Append(Entry entry);
  // Removes index and all after it. Fatal at or below the commit index: what is committed is
  // never taken back.
  void TruncateFrom(LogIndex index);
  // Never past the end: checked. Never back: a lower one changes nothing.
  void CommitTo(LogIndex index);

  bool HasUnwritten() const { return truncate_from_.has_value() || handed_ < last_index(); }
  Unwritten TakeUnwritten();
  // Raises durable_index(); `index` is at most what was handed out: checked.
  void MarkDurable(LogIndex index);

 private:
  struct VotersAt {
    LogIndex index;
    VoterSet voters;
  };

  std::vector<Entry> entries_;    // entries_[i] has index i + 1
  std::vector<VotersAt> voters_;  // ascending by index
  LogIndex commit_;
  LogIndex durable_;
  LogIndex handed_;
  // The lowest cut that storage has not been told of.
  std::optional<LogIndex> truncate_from_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_LOG_H_
