#ifndef CONCLAVE_COMMON_RECORD_BATCH_CHECK_H_
#define CONCLAVE_COMMON_RECORD_BATCH_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/types/time.h"

// What is checked of a batch before it is stored: header and CRC. Records are not walked; what is
// malformed inside them is a reader's to report (BatchReader). Any bytes may be given; none crash.
namespace conclave {

// Checks that a header can stand before a batch: magic, length, offsets and count agree with each
// other. CORRUPT_MESSAGE otherwise. The CRC is not looked at.
absl::Status CheckBatchHeader(const BatchHeader& header);

// One whole batch and nothing behind it: header as above, size, CRC. CORRUPT_MESSAGE otherwise.
absl::StatusOr<BatchHeader> CheckBatch(const Buffer& batch);

struct PlacedBatch {
  // Of its first byte in the buffer.
  size_t position = 0;
  BatchHeader header;
};

// One batch or several, back to back, as a replica receives or reads them. Each is checked, and
// their offsets rise without overlap. CORRUPT_MESSAGE names the position of the first that is not
// in order; a run that ends within a batch is one. Empty for an empty buffer.
absl::StatusOr<std::vector<PlacedBatch>> CheckBatchRun(const Buffer& run);

// What a topic takes from producers.
struct ProduceLimits {
  size_t max_batch_bytes = 0;
  // The broker's clock. Timestamps may be this far ahead of and behind it; absent: any distance.
  WallTime now;
  std::optional<Duration> timestamp_after_max;
  std::optional<Duration> timestamp_before_max;
};

// One batch as a producer sent it. In this order:
//   MESSAGE_TOO_LARGE             larger than max_batch_bytes
//   CORRUPT_MESSAGE               as CheckBatch
//   UNSUPPORTED_COMPRESSION_TYPE  gzip and snappy, which come in a later release, or no codec at
//   all INVALID_RECORD                no records, or fewer or more than offsets; control and
//                                 transactional batches; producer id without epoch or sequence
//   INVALID_TIMESTAMP             negative, first after the greatest, LogAppendTime, out of the
//   window
// Of the window the header shows the first and the greatest timestamp; these are held against it.
absl::StatusOr<BatchHeader> CheckProduced(const Buffer& batch, const ProduceLimits& limits);

// OK for the codecs that this release reads and writes; UNSUPPORTED_COMPRESSION_TYPE otherwise.
absl::Status CheckCodec(const BatchHeader& header);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_BATCH_CHECK_H_
