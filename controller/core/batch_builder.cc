#include "controller/core/batch_builder.h"

#include <utility>

namespace conclave::controller {

void BatchBuilder::Add(v1::MetadataRecord record) {
  // Tag and length of the record within the batch take up to 6 bytes.
  const size_t bytes = record.ByteSizeLong() + 6;
  if (batches_.empty() || bytes_ + bytes > max_batch_bytes_) {
    batches_.emplace_back().set_appended_unix_ms(wall_.unix_millis());
    bytes_ = 0;
  }
  bytes_ += bytes;
  *batches_.back().add_records() = std::move(record);
}

Batches BatchBuilder::Take() {
  bytes_ = 0;
  return std::exchange(batches_, {});
}

}  // namespace conclave::controller
