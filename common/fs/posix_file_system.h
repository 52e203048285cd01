#ifndef CONCLAVE_COMMON_FS_POSIX_FILE_SYSTEM_H_
#define CONCLAVE_COMMON_FS_POSIX_FILE_SYSTEM_H_

#include "common/fs/file_system.h"

namespace conclave {

// The operating system's files.
class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_FS_POSIX_FILE_SYSTEM_H_
