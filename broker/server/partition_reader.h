#ifndef CONCLAVE_BROKER_SERVER_PARTITION_READER_H_
#define CONCLAVE_BROKER_SERVER_PARTITION_READER_H_

#include <cstddef>
#include <cstdint>

#include "broker/partition/replica_set.h"
#include "common/buffer/buffer.h"
#include "common/types/ids.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave::broker {

// However much a request asks for: what fits into one message with room to spare.
inline constexpr int32_t kMostFetchBytes = 32 << 20;
// What a batch that is decoded here may unpack to, and about what one answer may unpack: the
// largest max.message.bytes. What a client sends may be a thousandth of what it unpacks to.
inline constexpr size_t kMostDecodedBytes = size_t{32} << 20;

// What one partition has for a reader at a position.
struct PartitionRead {
  // With error, bounds, and records; its next_offset is where the next read goes on.
  v1::FetchPartitionResult result;
  // Instead of the result's own.
  Buffer batches;
  // Of record data: of batches as they are stored, of decoded records as RecordLimits counts them.
  size_t bytes = 0;
  // The work of decoding.
  size_t unpacked_bytes = 0;
  // The result holds an error.
  bool failed = false;
};

// Reads below the high watermark, whole batches, `max_bytes` at most but one batch at least;
// nothing with a `max_bytes` of 0. With `decode` records instead, one at least: a batch that is
// malformed inside is reported by the result's error, and passed over by its next_offset; one that
// unpacks to more than kMostDecodedBytes is refused with MESSAGE_TOO_LARGE, and not passed over.
//
// Errors: of FindLeader and CheckEpoch; OFFSET_OUT_OF_RANGE outside [log start, log end]. Between
// the high watermark and the log's end there is nothing to read yet.
PartitionRead ReadPartition(ReplicaSet& replicas, const v1::FetchPartition& partition,
                            Offset position, size_t max_bytes, bool decode);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_PARTITION_READER_H_
