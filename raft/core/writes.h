#ifndef CONCLAVE_RAFT_CORE_WRITES_H_
#define CONCLAVE_RAFT_CORE_WRITES_H_

#include <deque>
#include <optional>

#include "common/types/time.h"
#include "raft/core/types.h"

namespace conclave::raft {

// The writes that storage has been given and has not reported durable, oldest first. Tickets become
// durable in order. Not thread-safe.
class WritesInFlight {
 public:
  // The ticket that the next Add will return.
  WriteTicket next() const { return newest_ + 1; }
  WriteTicket durable() const { return durable_; }
  bool empty() const { return writes_.empty(); }

  // `log_end`: the last index that storage has once this is durable. `names_hard_state`: a term or
  // vote goes with it.
  WriteTicket Add(LogIndex log_end, bool names_hard_state, MonotonicTime now);

  // The ticket to wait for until the newest hard state given to storage is durable; nullopt if it
  // is.
  std::optional<WriteTicket> HardStateTicket() const;
  // The oldest write in flight that brings storage to `index`; nullopt if none does.
  std::optional<WriteTicket> TicketFor(LogIndex index) const;
  // Since when the oldest has been waiting.
  std::optional<MonotonicTime> OldestSince() const;

  // The log was cut from `index` on: what older writes hold from there no longer counts.
  void Truncated(LogIndex index);

  // `ticket` and all before it are durable. Returns how far the log is durable by them, 0 if
  // nothing was in flight up to there. A ticket never given out is fatal: the driver lost count.
  LogIndex Complete(WriteTicket ticket);

 private:
  struct Write {
    WriteTicket ticket;
    LogIndex log_end;
    MonotonicTime since;
  };

  WriteTicket newest_;
  WriteTicket durable_;
  WriteTicket hard_state_;
  std::deque<Write> writes_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_WRITES_H_
