#ifndef CONCLAVE_CLIENT_CONSUMER_FETCH_BUFFER_H_
#define CONCLAVE_CLIENT_CONSUMER_FETCH_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/record/batch_reader.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"

namespace conclave {

// What was fetched of one partition and not handed out yet, and the position. Sees to it that
// offsets rise without repeats, whatever is put in; where they do not follow one on the other, as
// after compaction, it says so. Not thread-safe.
class FetchBuffer {
 public:
  // Offsets [first, second) that no record was delivered for: the log has none there.
  using Hole = std::pair<Offset, Offset>;

  // What Take hands out.
  struct Taken {
    std::vector<RecordView> records;
    // Keep what the views show.
    std::vector<std::shared_ptr<const BatchReader>> keep;
    std::vector<Hole> holes;
    // Batches that are malformed inside, as their producer sent them: they are passed over.
    std::vector<absl::Status> malformed;
  };

  // Forgets everything and begins at `position`.
  void Reset(Offset position);

  // Of the next record to hand out.
  Offset position() const { return position_; }
  // Where the next fetch goes on.
  Offset fetch_offset() const { return fetch_offset_; }
  size_t bytes() const { return bytes_; }
  // Something is there to take; it may turn out to hold no record at or after the position.
  bool empty() const { return batches_.empty(); }

  // Whole batches, one after the other; the first may begin below the fetch offset. What lies below
  // it is dropped. `next_offset`: the log has nothing between the last of them and that; not above
  // the high watermark. CORRUPT_MESSAGE: nothing of it was taken.
  absl::Status Append(const Buffer& batches, Offset next_offset);

  // Appends up to `max` records to `taken`, and moves the position behind them.
  void Take(size_t max, Taken& taken);

 private:
  void Advance(Offset to, Taken& taken);

  Offset position_;
  Offset fetch_offset_;
  struct Fetched {
    Buffer bytes;
    BatchHeader header;
  };
  std::deque<Fetched> batches_;
  size_t bytes_ = 0;
  // Of the first batch, once it is begun.
  std::shared_ptr<BatchReader> reader_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_CONSUMER_FETCH_BUFFER_H_
