#include "raft/core/writes.h"

#include <glog/logging.h>

#include <algorithm>

namespace conclave::raft {

WriteTicket WritesInFlight::Add(LogIndex log_end, bool names_hard_state, MonotonicTime now) {
  ++newest_;
  if (names_hard_state) hard_state_ = newest_;
  writes_.push_back({newest_, log_end, now});
  return newest_;
}

std::optional<WriteTicket> WritesInFlight::HardStateTicket() const {
  if (hard_state_ <= durable_) return std::nullopt;
  return hard_state_;
}

std::optional<WriteTicket> WritesInFlight::TicketFor(LogIndex index) const {
  for (const Write& write : writes_) {
    if (write.log_end >= index) return write.ticket;
  }
  return std::nullopt;
}

std::optional<MonotonicTime> WritesInFlight::OldestSince() const {
  if (writes_.empty()) return std::nullopt;
  return writes_.front().since;
}

void WritesInFlight::Truncated(LogIndex index) {
  for (Write& write : writes_) write.log_end = std::min(write.log_end, index - 1);
}

LogIndex WritesInFlight::Complete(WriteTicket ticket) {
  CHECK_LE(ticket, newest_) << "storage reports a write durable that it was never given";
  LogIndex log_end;
  while (!writes_.empty() && writes_.front().ticket <= ticket) {
    log_end = std::max(log_end, writes_.front().log_end);
    writes_.pop_front();
  }
  durable_ = std::max(durable_, ticket);
  return log_end;
}

}  // namespace conclave::raft
