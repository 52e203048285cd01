#include "broker/log/index_file.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/buffer/buffer.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr size_t kTailBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<IndexFile>> IndexFile::Open(FileSystem& fs, const std::string& path,
                                                           size_t entry_bytes) {
  auto file = fs.Open(path, FileSystem::OpenMode::kCreate);
  if (!file.ok()) {
    if (ErrorCodeOf(file.status()) == v1::OUT_OF_RESOURCES) return file.status();
    // A link in a circle, say: nothing in it is needed.
    if (fs.RemoveFile(path).ok()) {
      LOG(WARNING) << path << " is made anew from the log: " << file.status().message();
      file = fs.Open(path, FileSystem::OpenMode::kCreate);
    }
  }
  if (!file.ok()) {
    return MakeError(ErrorCodeOf(file.status()),
                     absl::StrCat(std::string(file.status().message()),
                                  ". It is an index, which is made anew where it is missing: move "
                                  "what is in its place away, unless the disk itself fails"));
  }
  const uint64_t stray = (*file)->size() % entry_bytes;
  if (stray != 0) {
    if (absl::Status status = (*file)->Truncate((*file)->size() - stray); !status.ok()) {
      return status;
    }
  }
  return std::unique_ptr<IndexFile>(new IndexFile(*std::move(file), entry_bytes));
}

absl::StatusOr<std::string> IndexFile::Entry(size_t i) const {
  CHECK_LT(i, count());
  const uint64_t at = i * entry_bytes_;
  if (at >= file_->size()) return tail_.substr(at - file_->size(), entry_bytes_);
  auto bytes = file_->ReadAt(at, entry_bytes_);
  if (bytes.ok() && bytes->size() != entry_bytes_) {
    return MakeError(v1::STORAGE_ERROR, absl::StrCat(file_->path(), " ended while it was read"));
  }
  return bytes;
}

absl::StatusOr<std::optional<size_t>> IndexFile::LastWhere(
    const std::function<bool(std::string_view entry)>& before) const {
  size_t low = 0;
  size_t high = count();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const auto entry = Entry(middle);
    if (!entry.ok()) return entry.status();
    if (before(*entry)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  return low - 1;
}

void IndexFile::Append(std::string_view entry) {
  CHECK_EQ(entry.size(), entry_bytes_);
  tail_.append(entry);
  if (tail_.size() < kTailBytes) return;
  if (const absl::Status status = Flush(); !status.ok()) {
    LOG(WARNING) << "index entries stay in memory for now: " << status.message();
  }
}

absl::Status IndexFile::Flush() {
  if (tail_.empty()) return absl::OkStatus();
  if (absl::Status status = file_->Append(Buffer(tail_)); !status.ok()) return status;
  tail_.clear();
  return absl::OkStatus();
}

absl::Status IndexFile::TruncateTo(size_t count) {
  const uint64_t bytes = uint64_t{count} * entry_bytes_;
  if (bytes >= file_->size()) {
    tail_.resize(std::min<uint64_t>(tail_.size(), bytes - file_->size()));
    return absl::OkStatus();
  }
  tail_.clear();
  return file_->Truncate(bytes);
}

}  // namespace conclave
