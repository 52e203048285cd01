#ifndef CONCLAVE_BROKER_LOG_INDEX_FILE_H_
#define CONCLAVE_BROKER_LOG_INDEX_FILE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"

namespace conclave {

// A file of sorted entries of one size. The newest few wait in memory and are written together;
// what an index says is checked against the log by whoever uses it, so that entries may be lost.
// Thread-compatible; the file may be synced on another thread meanwhile.
class IndexFile {
 public:
  // Made if it is not there. A size that no whole number of entries has is cut to one.
  static absl::StatusOr<std::unique_ptr<IndexFile>> Open(FileSystem& fs, const std::string& path,
                                                         size_t entry_bytes);

  size_t count() const { return (file_->size() + tail_.size()) / entry_bytes_; }

  // The bytes of entry `i`, below count().
  absl::StatusOr<std::string> Entry(size_t i) const;

  // The last entry for which `before` holds; it holds for a first part of them.
  absl::StatusOr<std::optional<size_t>> LastWhere(
      const std::function<bool(std::string_view entry)>& before) const;

  // Kept in memory; written with others. A write that fails is tried again with the next.
  void Append(std::string_view entry);

  // Writes what waits.
  absl::Status Flush();

  // Keeps the first `count` entries.
  absl::Status TruncateTo(size_t count);

  const std::shared_ptr<File>& file() const { return file_; }

 private:
  IndexFile(std::shared_ptr<File> file, size_t entry_bytes)
      : file_(std::move(file)), entry_bytes_(entry_bytes) {}

  const std::shared_ptr<File> file_;
  const size_t entry_bytes_;
  std::string tail_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_INDEX_FILE_H_
