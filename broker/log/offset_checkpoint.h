#ifndef CONCLAVE_BROKER_LOG_OFFSET_CHECKPOINT_H_
#define CONCLAVE_BROKER_LOG_OFFSET_CHECKPOINT_H_

#include <compare>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

// Two of them a data directory: below its recovery point a log is known to be on disk; below its
// high watermark it was committed.
inline constexpr char kRecoveryPointsFile[] = "recovery-points";
inline constexpr char kHighWatermarksFile[] = "high-watermarks";

struct CheckpointKey {
  TopicId topic_id;
  PartitionIndex partition;

  friend auto operator<=>(const CheckpointKey&, const CheckpointKey&) = default;
};

// An offset for each partition of a data directory, in one file.
class OffsetCheckpoint {
 public:
  using Offsets = std::map<CheckpointKey, Offset>;

  // `name` is one of the two above; `fs` outlives this.
  OffsetCheckpoint(FileSystem& fs, const std::string& data_directory, const std::string& name);

  absl::Status Write(const Offsets& offsets) const;

  // Empty if there is no file yet. STORAGE_ERROR if it is damaged: of recovery points nothing is
  // known then, so 0 is the safe one; of high watermarks, too.
  absl::StatusOr<Offsets> Read() const;

 private:
  FileSystem& fs_;
  const std::string path_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_OFFSET_CHECKPOINT_H_
