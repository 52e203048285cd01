#ifndef CONCLAVE_BROKER_PARTITION_FREE_SPACE_H_
#define CONCLAVE_BROKER_PARTITION_FREE_SPACE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/fs/file_system.h"

namespace conclave::broker {

// Whether the disk of the data directory has room for records. A reserve is left, so that what has
// to be written to make room, or to go on without records, still can be.
//
// Not thread-safe. `fs` outlives it.
class FreeSpace {
 public:
  // `min_bytes`: of room, under which there is none for records.
  FreeSpace(FileSystem& fs, std::string directory, uint64_t min_bytes)
      : fs_(fs), directory_(std::move(directory)), min_bytes_(min_bytes) {}

  // Looks at the disk; every second or so.
  void Look();
  // Before so much is written: looks where an eighth of the reserve may have gone since.
  void Take(uint64_t bytes);

  // OK, or OUT_OF_RESOURCES with what to do, as it was at the last look.
  const absl::Status& Check() const { return refusal_; }

 private:
  FileSystem& fs_;
  const std::string directory_;
  const uint64_t min_bytes_;
  absl::Status refusal_;
  // Written since the last look.
  uint64_t taken_ = 0;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_FREE_SPACE_H_
