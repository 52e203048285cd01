#include "raft/core/reads.h"

#include <algorithm>

namespace conclave::raft {

std::vector<ConfirmedRead> PendingReads::TakeConfirmed(uint64_t answered, LogIndex floor) {
  std::vector<ConfirmedRead> confirmed;
  while (!reads_.empty() && reads_.front().round <= answered) {
    const Read& read = reads_.front();
    confirmed.push_back({read.context, std::max(read.commit, floor)});
    reads_.pop_front();
  }
  return confirmed;
}

std::vector<ReadContext> PendingReads::TakeAll() {
  std::vector<ReadContext> contexts;
  for (const Read& read : reads_) contexts.push_back(read.context);
  reads_.clear();
  return contexts;
}

}  // namespace conclave::raft
