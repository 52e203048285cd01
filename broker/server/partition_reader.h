#ifndef CONCLAVE_BROKER_SERVER_PARTITION_READER_H_
#define CONCLAVE_BROKER_SERVER_PARTITION_READER_H_

#include <cstddef>

#include "broker/partition/replica_set.h"
#include "common/types/ids.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave::broker {

// What one partition has for a reader at a position.
struct PartitionRead {
  // With error, bounds, and batches or records; its next_offset is where the next read goes on.
  v1::FetchPartitionResult result;
  // Of record data.
  size_t bytes = 0;
  // The result holds an error.
  bool failed = false;
};

// Reads below the high watermark, whole batches, `max_bytes` at most but one batch at least. With
// `decode` records instead: a batch that is malformed inside is reported by the result's error, and
// passed over by its next_offset.
//
// Errors: of FindLeader and CheckEpoch; OFFSET_OUT_OF_RANGE outside [log start, log end]. Between
// the high watermark and the log's end there is nothing to read yet.
PartitionRead ReadPartition(ReplicaSet& replicas, const v1::FetchPartition& partition,
                            Offset position, size_t max_bytes, bool decode);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_PARTITION_READER_H_
