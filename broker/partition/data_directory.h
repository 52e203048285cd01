#ifndef CONCLAVE_BROKER_PARTITION_DATA_DIRECTORY_H_
#define CONCLAVE_BROKER_PARTITION_DATA_DIRECTORY_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/offset_checkpoint.h"
#include "broker/log/partition_file.h"
#include "common/fs/file_system.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"

namespace conclave::broker {

// A broker's data directory: a folder "topic-partition" a partition, and what is kept of all of
// them. Every call blocks for the disk.
//
//   topic-0/    a partition's log (docs/formats-log.md)
//   new/        partitions that are being made; emptied at start
//   deleted/    logs of deleted topics, by topic id; removed after a while
//   damaged/    logs that had lost records, while another replica's are copied; removed after that;
//               and "given-up.<id>.<copy>", what an operator had given up of a log; kept for a
//               person to decide
//   stray/      logs that were here at start and that the metadata knows nothing of; kept for a
//               person to decide
//   recovery-points, high-watermarks, clean-stop
//
// Thread-safe but for Open.
class DataDirectory {
 public:
  struct Found {
    std::string directory;
    PartitionIdentity identity;
  };

  // Takes the clean-stop marker, reads the checkpoints, lists the partitions. `path` is there; `fs`
  // outlives this. STORAGE_ERROR names what is in the way.
  static absl::StatusOr<std::unique_ptr<DataDirectory>> Open(FileSystem& fs, std::string path);

  const std::vector<Found>& found() const { return found_; }
  // The broker epoch whose process closed all logs; nullopt: the last one did not.
  std::optional<BrokerEpoch> clean_stop() const { return clean_stop_; }
  // What was durable when a recovery point or a high watermark was stored last; 0 where none was.
  Offset RecoveryPointOf(const PartitionId& id) const;
  const OffsetCheckpoint::Offsets& high_watermarks() const { return high_watermarks_; }

  // Makes the directory of a new partition, whole or not at all. One of the same name, of another
  // topic, has been set aside before.
  absl::StatusOr<std::string> Create(const PartitionIdentity& identity);

  enum class Aside { kDeleted, kStray, kDamaged };
  // Moves a partition's directory to where nobody serves it. Returns the new path.
  absl::StatusOr<std::string> SetAside(const std::string& directory, const PartitionId& id,
                                       Aside where);
  struct AsideLog {
    // Within its folder.
    std::string name;
    PartitionId id;
  };
  // What was set aside there; a name that SetAside does not give is passed over.
  absl::StatusOr<std::vector<AsideLog>> ListAside(Aside where) const;
  absl::Status RemoveAside(Aside where, const std::string& name) const;

  // Where what is given up of a partition's log can be moved: a new name under damaged/, which
  // nobody removes.
  std::string GivenUpPath(const PartitionId& id) const;

  absl::Status WriteRecoveryPoints(const OffsetCheckpoint::Offsets& offsets) const;
  absl::Status WriteHighWatermarks(const OffsetCheckpoint::Offsets& offsets) const;
  absl::Status WriteCleanStop(BrokerEpoch epoch) const;

  const std::string& path() const { return path_; }

 private:
  DataDirectory(FileSystem& fs, std::string path);

  absl::Status Scan();

  FileSystem& fs_;
  const std::string path_;
  std::vector<Found> found_;
  std::optional<BrokerEpoch> clean_stop_;
  OffsetCheckpoint::Offsets recovery_points_;
  OffsetCheckpoint::Offsets high_watermarks_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_DATA_DIRECTORY_H_
