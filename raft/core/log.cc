#include "raft/core/log.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace conclave::raft {

absl::StatusOr<RaftLog> RaftLog::Recover(std::vector<Entry> entries) {
  RaftLog log;
  for (Entry& entry : entries) {
    const LogPosition last = log.last();
    if (entry.index != last.index + 1) {
      return absl::DataLossError(absl::StrCat("the stored Raft log has index ", entry.index.value(),
                                              " where ", last.index.value() + 1, " belongs"));
    }
    if (entry.term < last.term || entry.term == Term(0)) {
      return absl::DataLossError(absl::StrCat("the stored Raft log has term ", entry.term.value(),
                                              " at index ", entry.index.value(), " after term ",
                                              last.term.value()));
    }
    if (entry.data == nullptr) {
      return absl::DataLossError(
          absl::StrCat("the stored Raft log has no data at index ", entry.index.value()));
    }
    if (entry.kind == EntryKind::kVoters) {
      if (auto voters = VoterSet::Parse(*entry.data); !voters.ok()) {
        return absl::DataLossError(absl::StrCat("the stored Raft log has, at index ",
                                                entry.index.value(), ", ",
                                                voters.status().message()));
      }
    }
    log.Append(std::move(entry));
  }
  log.handed_ = log.durable_ = log.last_index();
  return log;
}

LogPosition RaftLog::last() const {
  return entries_.empty() ? LogPosition{} : entries_.back().position();
}

std::optional<Term> RaftLog::TermAt(LogIndex index) const {
  if (index == LogIndex(0)) return Term(0);
  if (index > last_index()) return std::nullopt;
  return entries_[index.value() - 1].term;
}

const Entry& RaftLog::At(LogIndex index) const {
  CHECK(index > LogIndex(0) && index <= last_index()) << "no entry at index " << index;
  return entries_[index.value() - 1];
}

std::vector<Entry> RaftLog::Slice(LogIndex from, LogIndex through, size_t max_bytes) const {
  std::vector<Entry> slice;
  size_t bytes = 0;
  for (LogIndex i = from; i <= through; ++i) {
    const Entry& entry = At(i);
    bytes += entry.Bytes();
    if (!slice.empty() && bytes > max_bytes) break;
    slice.push_back(entry);
  }
  return slice;
}

LogIndex RaftLog::FirstOfTermAt(LogIndex index) const {
  const Term term = At(index).term;
  const auto first = std::partition_point(entries_.begin(), entries_.end(),
                                          [&](const Entry& e) { return e.term < term; });
  return first->index;
}

LogIndex RaftLog::LastAtOrBelow(Term term) const {
  const auto after = std::partition_point(entries_.begin(), entries_.end(),
                                          [&](const Entry& e) { return e.term <= term; });
  return LogIndex(static_cast<uint64_t>(after - entries_.begin()));
}

const VoterSet& RaftLog::voters() const {
  static const VoterSet kNobody;
  return voters_.empty() ? kNobody : voters_.back().voters;
}

void RaftLog::Append(Entry entry) {
  CHECK_EQ(entry.index, last_index() + 1) << "a gap in the Raft log";
  CHECK_GE(entry.term, last().term) << "terms fall in the Raft log at index " << entry.index;
  if (entry.kind == EntryKind::kVoters) {
    auto voters = VoterSet::Parse(*entry.data);
    CHECK(voters.ok()) << voters.status();
    voters_.push_back({entry.index, *std::move(voters)});
  }
  entries_.push_back(std::move(entry));
}

void RaftLog::TruncateFrom(LogIndex index) {
  CHECK_GT(index, commit_) << "truncation of the Raft log from index " << index
                           << " would take back committed entries (commit index " << commit_ << ")";
  if (index > last_index()) return;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index.value() - 1), entries_.end());
  while (!voters_.empty() && voters_.back().index >= index) voters_.pop_back();
  if (index <= handed_) {
    // Storage has, or will have, entries from here on.
    truncate_from_ = truncate_from_ ? std::min(*truncate_from_, index) : index;
    handed_ = index - 1;
  }
  durable_ = std::min(durable_, handed_);
}

void RaftLog::CommitTo(LogIndex index) {
  CHECK_LE(index, last_index()) << "a commit past the end of the Raft log";
  commit_ = std::max(commit_, index);
}

RaftLog::Unwritten RaftLog::TakeUnwritten() {
  Unwritten unwritten;
  unwritten.truncate_from = std::exchange(truncate_from_, std::nullopt);
  unwritten.entries.assign(entries_.begin() + static_cast<std::ptrdiff_t>(handed_.value()),
                           entries_.end());
  handed_ = last_index();
  return unwritten;
}

void RaftLog::MarkDurable(LogIndex index) {
  CHECK_LE(index, handed_) << "durable without having been written";
  durable_ = std::max(durable_, index);
}

}  // namespace conclave::raft
