#ifndef CONCLAVE_RAFT_CORE_READS_H_
#define CONCLAVE_RAFT_CORE_READS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "raft/core/types.h"

namespace conclave::raft {

// A read may be answered once `index` is applied.
struct ConfirmedRead {
  ReadContext context;
  LogIndex index;
};

// Reads that wait until a majority has answered a round begun after they came (ReadIndex, Ongaro's
// thesis 6.4). Not thread-safe.
class PendingReads {
 public:
  // `round`: the first one that proves leadership for this read. Rounds never fall.
  void Add(ReadContext context, LogIndex commit, uint64_t round) {
    reads_.push_back({context, commit, round});
  }
  size_t size() const { return reads_.size(); }
  bool empty() const { return reads_.empty(); }
  // The newest round that a read waits for; 0 for none.
  uint64_t newest_round() const { return reads_.empty() ? 0 : reads_.back().round; }

  // Takes out what rounds up to `answered` confirm. `floor`: the first index of the leader's own
  // term, which has been committed; before it the commit index may lag what older leaders told.
  std::vector<ConfirmedRead> TakeConfirmed(uint64_t answered, LogIndex floor);
  std::vector<ReadContext> TakeAll();

 private:
  struct Read {
    ReadContext context;
    LogIndex commit;
    uint64_t round;
  };
  std::deque<Read> reads_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_READS_H_
