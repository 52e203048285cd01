#ifndef CONCLAVE_CONTROLLER_CORE_BATCH_BUILDER_H_
#define CONCLAVE_CONTROLLER_CORE_BATCH_BUILDER_H_

#include <cstddef>

#include "common/types/time.h"
#include "conclave/v1/metadata_records.pb.h"
#include "controller/core/change.h"

namespace conclave::controller {

// A batch is one Raft entry, and entries of others wait behind it on the wire and on disk.
inline constexpr size_t kMaxBatchBytes = 1024 * 1024;

// Gathers records into batches of at most about kMaxBatchBytes. Every record added must leave the
// image consistent after those before it, for a batch may end behind any of them.
class BatchBuilder {
 public:
  explicit BatchBuilder(WallTime wall, size_t max_batch_bytes = kMaxBatchBytes)
      : wall_(wall), max_batch_bytes_(max_batch_bytes) {}

  void Add(v1::MetadataRecord record);
  Batches Take();

 private:
  const WallTime wall_;
  const size_t max_batch_bytes_;
  Batches batches_;
  // Of the last batch.
  size_t bytes_ = 0;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_BATCH_BUILDER_H_
