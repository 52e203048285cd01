#ifndef CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_
#define CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/records.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

// Between batches and the plain records of simple clients (records.proto).
namespace conclave {

// One batch of all of them. `now` stands for an absent timestamp. INVALID_RECORD if there are
// none, INVALID_TIMESTAMP for a negative one.
absl::StatusOr<Buffer> BatchFromRecords(
    const google::protobuf::RepeatedPtrField<v1::Record>& records, WallTime now,
    Compression codec = Compression::kNone);

// Appends the records of a batch at `from` or later to `out`, in order, with their offsets. A
// malformed batch gives the error of BatchReader, and the records before the damage.
//
// A protobuf string is UTF-8: bytes of a header's key that are not become U+FFFD each.
absl::Status AppendRecords(const Buffer& batch, Offset from,
                           google::protobuf::RepeatedPtrField<v1::Record>& out);

// What of a batch is wanted, and how much work it may make.
struct RecordLimits {
  // Of records, each counted with kRecordWeight beside its bytes. The first record is appended
  // whatever it has, if `at_least_one`.
  size_t max_bytes = 0;
  bool at_least_one = true;
  // Of the batch, uncompressed.
  size_t max_unpacked_bytes = 0;
};
// About what a v1::Record takes in memory beside its bytes.
inline constexpr size_t kRecordWeight = 100;

struct AppendedRecords {
  // Where reading goes on: behind the last record appended, or behind the batch where it came to
  // its end, or where it is malformed.
  Offset next;
  // As RecordLimits counts them.
  size_t bytes = 0;
  // The work it made.
  size_t unpacked_bytes = 0;
  // As of AppendRecords; MESSAGE_TOO_LARGE: beyond max_unpacked_bytes, and nothing was appended.
  absl::Status status;
};

// As AppendRecords, and stops before a record that is beyond the limits.
AppendedRecords AppendRecordsWithin(const RecordLimits& limits, const Buffer& batch, Offset from,
                                    google::protobuf::RepeatedPtrField<v1::Record>& out);

void FillRecord(const RecordView& view, v1::Record& out);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_
