#ifndef CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_
#define CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_

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

void FillRecord(const RecordView& view, v1::Record& out);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_RECORD_CONVERSION_H_
