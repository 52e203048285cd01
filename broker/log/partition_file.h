#ifndef CONCLAVE_BROKER_LOG_PARTITION_FILE_H_
#define CONCLAVE_BROKER_LOG_PARTITION_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

inline constexpr char kPartitionFile[] = "partition.json";

// Whose log a directory holds. The id tells a topic from one of the same name before it.
struct PartitionIdentity {
  std::string topic;
  TopicId topic_id;
  PartitionIndex partition;

  friend bool operator==(const PartitionIdentity&, const PartitionIdentity&) = default;
};

// "topic-partition", the directory of a partition's log.
std::string PartitionDirectoryName(const std::string& topic, PartitionIndex partition);

absl::Status WritePartitionFile(FileSystem& fs, const std::string& directory,
                                const PartitionIdentity& identity);

// NotFound if there is none; STORAGE_ERROR if it is damaged.
absl::StatusOr<PartitionIdentity> ReadPartitionFile(FileSystem& fs, const std::string& directory);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_PARTITION_FILE_H_
