#ifndef CONCLAVE_COMMON_RECORD_BATCH_BUILDER_H_
#define CONCLAVE_COMMON_RECORD_BATCH_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"

namespace conclave {

// Encodes records into one batch. Offsets count from 0; the broker sets the base offset. Records
// are written as they come, behind room for the header; only compression touches them again. Not
// thread-safe; one batch a builder.
class BatchBuilder {
 public:
  explicit BatchBuilder(Compression codec = Compression::kNone);

  // Room for a batch of so many bytes.
  void Reserve(size_t bytes) {
    if (bytes > capacity_) Grow(bytes);
  }

  // Copies what the record shows; its offset is not looked at. Timestamps may go back.
  void Add(const RecordView& record);

  int32_t count() const { return header_.count; }
  // Of the batch if it were finished now, uncompressed.
  size_t uncompressed_bytes() const { return size_; }
  // What adding the record would add to it, or a little more.
  static size_t RecordBytesAtMost(const RecordView& record);

  // Idempotence (KIP-98). May come at any time before Finish; a retry keeps what it was sent with.
  void SetProducer(ProducerId id, ProducerEpoch epoch, int32_t base_sequence);

  // One record at least has been added. UNSUPPORTED_COMPRESSION_TYPE for gzip and snappy, which
  // come in a later release. The builder is spent.
  absl::StatusOr<Buffer> Finish();

 private:
  void Grow(size_t capacity);
  void WriteHeader(char* batch, size_t size);

  BatchHeader header_;
  const Compression codec_;
  // No string: that would write zeros first.
  std::shared_ptr<char[]> bytes_;
  size_t size_ = kBatchHeaderBytes;
  size_t capacity_ = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_BATCH_BUILDER_H_
