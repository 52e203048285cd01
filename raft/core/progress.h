#ifndef CONCLAVE_RAFT_CORE_PROGRESS_H_
#define CONCLAVE_RAFT_CORE_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/types/time.h"
#include "raft/core/types.h"

namespace conclave::raft {

// What a leader knows of one peer (Raft, figure 2: nextIndex and matchIndex). Lives as long as the
// leadership. Not thread-safe.
//
// Probing: where the peer's log departs from ours is unknown; one append at a time. Replicating: it
// is known to hold everything before `next`; appends follow one another, up to a limit.
class Progress {
 public:
  Progress(LogIndex next, MonotonicTime now) : next_(next), last_contact_(now) {}

  // On the peer's disk, and equal to ours, through here. Never falls.
  LogIndex match() const { return match_; }
  // The first entry of the next append.
  LogIndex next() const { return next_; }
  bool probing() const { return probing_; }
  // How often it has begun to probe.
  uint64_t attempt() const { return attempt_; }
  size_t in_flight() const { return in_flight_.size(); }
  // When an answer of this leadership last came.
  MonotonicTime last_contact() const { return last_contact_; }
  // The newest round that the peer has answered (ReadIndex).
  uint64_t answered_round() const { return answered_round_; }
  // The greatest commit index that the peer was told.
  LogIndex told_commit() const { return told_commit_; }

  bool CanSend(size_t max_in_flight) const {
    return probing_ ? !probe_sent_ : in_flight_.size() < max_in_flight;
  }
  // An append with entries through `last` leaves; `last` is next - 1 for one without.
  void Sent(LogIndex last, LogIndex commit);

  void Heard(uint64_t round, MonotonicTime now);
  // The peer accepted. Both are at most the leader's last index.
  void Accepted(LogIndex match, LogIndex received);
  // The peer's log does not hold the entry before an append at `rejected`; its end may agree with
  // ours before `hint`. False for an answer to what was sent before the last step back (`attempt`),
  // or that newer answers have overtaken.
  bool Rejected(LogIndex rejected, LogIndex hint, uint64_t attempt);
  // What was in flight may be lost. `next` stays: if it was, the refusal of the next append tells
  // exactly where to resume.
  void Probe();

 private:
  LogIndex match_;
  LogIndex next_;
  bool probing_ = true;
  uint64_t attempt_ = 1;
  // Probing: one is out. Cleared by an answer; an empty append goes with each heartbeat anyhow.
  bool probe_sent_ = false;
  std::deque<LogIndex> in_flight_;  // last index of each append with entries that is not answered
  MonotonicTime last_contact_;
  uint64_t answered_round_ = 0;
  LogIndex told_commit_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_PROGRESS_H_
