#include "tests/simulation/raft/sim_disk.h"

#include <glog/logging.h>

namespace conclave::raft::sim {

WriteTicket SimDisk::Complete(size_t count) {
  CHECK(count > 0 && count <= queue_.size());
  WriteTicket newest;
  for (; count > 0; --count) {
    Apply(queue_.front());
    newest = queue_.front().ticket;
    queue_.pop_front();
  }
  return newest;
}

size_t SimDisk::Crash(Random& random) {
  const size_t kept = queue_.empty() ? 0 : random.Below(queue_.size() + 1);
  if (kept > 0) Complete(kept);
  const size_t lost = queue_.size();
  queue_.clear();
  return lost;
}

bool SimDisk::Holds(LogPosition position) const {
  return position.index.value() <= durable_.entries.size() &&
         durable_.entries[position.index.value() - 1].term == position.term;
}

void SimDisk::Apply(const Write& write) {
  if (write.hard_state) {
    durable_.hard_state = *write.hard_state;
    if (forget_votes_) durable_.hard_state.vote.reset();
  }
  std::vector<Entry>& entries = durable_.entries;
  if (write.truncate_from && write.truncate_from->value() <= entries.size()) {
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(write.truncate_from->value() - 1),
                  entries.end());
  }
  for (const Entry& entry : write.entries) {
    CHECK_EQ(entry.index.value(), entries.size() + 1) << "a write leaves a gap in the stored log";
    entries.push_back(entry);
  }
}

}  // namespace conclave::raft::sim
