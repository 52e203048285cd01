#include "raft/core/progress.h"

#include <algorithm>

namespace conclave::raft {

void Progress::Sent(LogIndex last, LogIndex commit) {
  told_commit_ = std::max(told_commit_, std::min(commit, last));
  if (last < next_) return;
  if (probing_) {
    probe_sent_ = true;
    return;
  }
  in_flight_.push_back(last);
  next_ = last + 1;
}

void Progress::Heard(uint64_t round, MonotonicTime now) {
  last_contact_ = std::max(last_contact_, now);
  answered_round_ = std::max(answered_round_, round);
}

void Progress::Accepted(LogIndex match, LogIndex received) {
  match_ = std::max(match_, match);
  next_ = std::max(next_, std::max(match, received) + 1);
  probing_ = false;
  probe_sent_ = false;
  // Only what is durable leaves the window, so that a slow disk never holds more than a window.
  while (!in_flight_.empty() && in_flight_.front() <= match_) in_flight_.pop_front();
}

bool Progress::Rejected(LogIndex rejected, LogIndex hint, uint64_t attempt) {
  if (attempt != attempt_ || rejected <= match_ || rejected >= next_) return false;
  next_ = std::max(match_ + 1, std::min(rejected, hint));
  Probe();
  return true;
}

void Progress::Probe() {
  ++attempt_;
  probing_ = true;
  probe_sent_ = false;
  in_flight_.clear();
}

}  // namespace conclave::raft
