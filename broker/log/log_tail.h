#ifndef CONCLAVE_BROKER_LOG_LOG_TAIL_H_
#define CONCLAVE_BROKER_LOG_LOG_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/buffer/buffer.h"
#include "common/types/ids.h"

namespace conclave {

class LogTail;

// The bytes that the tails of many logs may hold together. Whatever was appended first goes first.
// Not thread-safe; outlives the tails.
class TailBudget {
 public:
  explicit TailBudget(size_t bytes) : bytes_(bytes) {}

  size_t bytes() const { return bytes_; }
  size_t used() const { return used_; }

 private:
  friend class LogTail;

  uint64_t Join(LogTail* tail);
  void Leave(uint64_t id) { tails_.erase(id); }
  void Took(uint64_t id, uint64_t entry, size_t bytes);
  void Freed(size_t bytes) { used_ -= bytes; }

  struct Taken {
    uint64_t tail;
    uint64_t entry;
  };

  const size_t bytes_;
  size_t used_ = 0;
  uint64_t last_tail_ = 0;
  std::map<uint64_t, LogTail*> tails_;
  // In the order of appends. Some may be gone from their tails.
  std::deque<Taken> order_;
};

// The batches that were appended to a log last, as the slices in which they came: whoever keeps up
// with the log, a follower above all, is served without reading the file. Not thread-safe.
class LogTail {
 public:
  // With nullptr it holds nothing.
  explicit LogTail(TailBudget* budget);
  ~LogTail();
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  // A batch whose CRC holds, as it was written. Where it does not follow the last one, those before
  // are dropped.
  void Append(Offset base, Offset next, const Buffer& batch);
  // What ends beyond `end` is dropped.
  void TruncateTo(Offset end);
  void Clear();

  struct Found {
    // Whole batches.
    Buffer batches;
    Offset next_offset;
  };
  // From the batch that holds `from` on, below `limit`, `max_bytes` at most, but one batch at least
  // if `limit` allows. nullopt: what is asked for begins before the tail, or at its end.
  std::optional<Found> Read(Offset from, size_t max_bytes, Offset limit) const;

 private:
  friend class TailBudget;

  struct Entry {
    uint64_t number;
    Offset base;
    Offset next;
    Buffer batch;
  };

  void DropFirst(uint64_t number);

  TailBudget* const budget_;
  uint64_t id_ = 0;
  uint64_t last_number_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_LOG_TAIL_H_
