#ifndef CONCLAVE_COMMON_RECORD_BATCH_READER_H_
#define CONCLAVE_COMMON_RECORD_BATCH_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/record/record_view.h"

namespace conclave {

// What a batch may unpack to: eight times the largest max.message.bytes there is.
inline constexpr size_t kMaxUnpackedBytes = size_t{256} << 20;

// Walks the records of one batch. The records are not copied where they are uncompressed and in one
// slice; else once. Views stay valid while the reader lives. Moved, not copied. Not thread-safe.
//
// What is malformed inside a batch whose CRC holds was sent that way. The error (INVALID_RECORD,
// UNSUPPORTED_COMPRESSION_TYPE, or MESSAGE_TOO_LARGE where it unpacks to more than is allowed)
// names the offset; the caller reports it and goes on at header().next_offset(): no later record of
// the batch can be trusted.
class BatchReader {
 public:
  // `batch` has been checked as far as the caller trusts its source; any bytes are safe. The CRC is
  // not looked at again. CORRUPT_MESSAGE if the header is none or the size is not the batch's.
  static absl::StatusOr<BatchReader> Open(const Buffer& batch,
                                          size_t max_unpacked_bytes = kMaxUnpackedBytes);

  BatchReader(BatchReader&&) = default;
  BatchReader& operator=(BatchReader&&) = default;

  const BatchHeader& header() const { return header_; }
  // Of all records, uncompressed.
  size_t unpacked_bytes() const { return keep_.size(); }

  // True: `record` is the next one. False: there was none left. After an error it is the same
  // again.
  absl::StatusOr<bool> Next(RecordView& record);

 private:
  BatchReader() = default;

  absl::Status Malformed(const std::string& what);
  absl::Status ReadRecord(std::string_view body, RecordView& record);

  BatchHeader header_;
  // Keeps what the views show: the batch's slice, or a copy of its records.
  Slice keep_;
  std::string_view rest_;
  int32_t read_ = 0;
  int32_t last_delta_ = -1;
  absl::Status failed_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_BATCH_READER_H_
