#ifndef CONCLAVE_BROKER_LOG_LOG_SYNC_H_
#define CONCLAVE_BROKER_LOG_LOG_SYNC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

// One sync of one partition's log: which files it covers, and what is durable once it is done. Made
// by the log's thread (PartitionLog::BeginSync), run on any, given back to the log's thread
// (FinishSync). It shares the files, so that the log may go on, truncate or remove them meanwhile.
class LogSync {
 public:
  // Syncs every file in turn, then the directory if names in it are new. Blocks. Const, but run
  // once: after an error nothing of it may be assumed durable, and trying again proves nothing; but
  // after OUT_OF_RESOURCES, where no descriptor could be had, another sync may do it.
  absl::Status Run() const;
  // Before Run, where others are to run as well: lets the disk begin. Makes nothing durable.
  void BeginWriteback() const;

  // The log's end when it began.
  Offset covers() const { return covers_; }
  size_t files() const { return files_.size(); }

 private:
  friend class PartitionLog;

  LogSync(FileSystem& fs, std::string directory) : fs_(&fs), directory_(std::move(directory)) {}

  FileSystem* fs_;
  std::string directory_;
  bool sync_directory_ = false;
  std::vector<std::shared_ptr<File>> files_;
  Offset covers_;
  // Of the log, at the time; a truncation raises it.
  uint64_t generation_ = 0;
  // Bases of the segments whose files these are, and whether with indexes.
  std::vector<std::pair<Offset, bool>> segments_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_LOG_SYNC_H_
