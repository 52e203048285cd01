#ifndef CONCLAVE_BROKER_LOG_EPOCH_CACHE_H_
#define CONCLAVE_BROKER_LOG_EPOCH_CACHE_H_

#include <optional>
#include <vector>

#include "common/types/ids.h"

namespace conclave {

struct EpochStart {
  LeaderEpoch epoch;
  // Of its first record.
  Offset start;

  friend bool operator==(const EpochStart&, const EpochStart&) = default;
};

struct EpochEnd {
  // -1: none.
  LeaderEpoch epoch{-1};
  Offset end;

  friend bool operator==(const EpochEnd&, const EpochEnd&) = default;
};

// Where each leader epoch that has records begins (KIP-101, 279). Follows from the batches alone.
// Epochs and starts rise. Not thread-safe.
class EpochCache {
 public:
  // A batch of that epoch at that offset was appended. False if it changed nothing: the
  // epoch is the last one, or, in a damaged log, lower.
  bool Note(LeaderEpoch epoch, Offset start);

  // nullopt: no record has an epoch.
  std::optional<EpochStart> last() const;

  // The greatest epoch that is at most the one asked for, and its end: where the next one begins,
  // or the log's end. Without one: -1, and the start of the first epoch, which may lie one below
  // the log's, or the log's end.
  EpochEnd EndOf(LeaderEpoch asked, Offset log_end) const;

  // The epoch of the record at an offset within the log; nullopt below the first epoch.
  std::optional<LeaderEpoch> EpochOf(Offset offset) const;

  // The log ends at `end` now. False if nothing changed.
  bool TruncateTo(Offset end);

  // The log begins at `start` now: what came before is forgotten, but for the epoch of the last
  // record below it. An emptied log is to be as good as it was where logs are compared by their
  // last epochs.
  bool TrimTo(Offset start);

  void Clear() { starts_.clear(); }
  const std::vector<EpochStart>& starts() const { return starts_; }

 private:
  std::vector<EpochStart> starts_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_EPOCH_CACHE_H_
