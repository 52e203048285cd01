#include "common/fs/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/process/file_descriptor.h"
#include "common/process/open_files.h"

namespace conclave {
namespace {

absl::Status IoError(const char* operation, const std::string& path, int error) {
  const std::string text = absl::StrCat(operation, " ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == ENOSPC || error == EDQUOT) {
    return MakeError(v1::OUT_OF_RESOURCES, absl::StrCat(text, "; make room"));
  }
  if (error == EMFILE || error == ENFILE) {
    return MakeError(v1::OUT_OF_RESOURCES,
                     absl::StrCat(text, "; raise the limit of open files (ulimit -n)"));
  }
  return MakeError(v1::STORAGE_ERROR, text);
}

// Whatever kept it from the disk: what was to be durable is not, and trying again proves nothing.
absl::Status SyncError(const char* operation, const std::string& path, int error) {
  return MakeError(v1::STORAGE_ERROR,
                   absl::StrCat(operation, " ", path, ": ", std::strerror(error)));
}

// What a file holds of the disk beyond its size and is worth a cut.
constexpr uint64_t kMuchReserved = 256 << 10;
// What is read and written at a time: in the processor's cache it is cheap.
constexpr uint64_t kRewriteBytes = 256 << 10;

class PosixFile : public File {
 public:
  PosixFile(std::string path, FileDescriptor fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }

  absl::Status Append(const Buffer& bytes) override {
    std::vector<iovec> parts;
    parts.reserve(bytes.slices().size());
    for (const Slice& slice : bytes.slices()) {
      parts.push_back({const_cast<char*>(slice.data()), slice.size()});
    }
    const uint64_t start = size_;
    uint64_t at = start;
    for (size_t next = 0; next < parts.size();) {
      const int count = static_cast<int>(std::min<size_t>(parts.size() - next, IOV_MAX));
      const ssize_t written = pwritev(fd_.get(), &parts[next], count, static_cast<off_t>(at));
      if (written < 0) {
        if (errno == EINTR) continue;
        return UndoAppend(start, errno);
      }
      at += static_cast<uint64_t>(written);
      next = Advance(parts, next, static_cast<size_t>(written));
    }
    size_ = at;
    return absl::OkStatus();
  }

  void Reserve(uint64_t bytes) override {
    // Never the last of the disk, which others may need sooner.
    struct statvfs disk;
    if (fstatvfs(fd_.get(), &disk) != 0) return;
    if (disk.f_bavail * disk.f_frsize < disk.f_blocks * disk.f_frsize / 8 + bytes) return;
    fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(uint64_t{size_}),
              static_cast<off_t>(bytes));
  }

  void ReleaseReserved() override {
    struct stat info;
    const uint64_t size = size_;
    if (fstat(fd_.get(), &info) != 0) return;
    // The blocks of the file system's own tree of extents are counted, too.
    if (static_cast<uint64_t>(info.st_blocks) * 512 < size + kMuchReserved) return;
    // Cutting to the size that it has is what gives room back, and counts as writing.
    if (ftruncate(fd_.get(), static_cast<off_t>(size)) == 0) SetLastWritten(info.st_mtim);
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t length) const override {
    std::string bytes(length, '\0');
    size_t have = 0;
    while (have < length) {
      const ssize_t n =
          pread(fd_.get(), bytes.data() + have, length - have, static_cast<off_t>(offset + have));
      if (n < 0) {
        if (errno == EINTR) continue;
        return IoError("read", path_, errno);
      }
      if (n == 0) break;
      have += static_cast<size_t>(n);
    }
    bytes.resize(have);
    return bytes;
  }

  absl::Status Truncate(uint64_t size) override {
    if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
      return IoError("truncate", path_, errno);
    }
    size_ = size;
    return absl::OkStatus();
  }

  absl::Status Rewrite(uint64_t from) override {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) return IoError("stat", path_, errno);
    for (uint64_t at = from; at < size_;) {
      const auto bytes = ReadAt(at, std::min<uint64_t>(size_ - at, kRewriteBytes));
      if (!bytes.ok()) return bytes.status();
      // Somebody else has cut it.
      if (bytes->empty()) return IoError("rewrite", path_, EIO);
      if (absl::Status status = WriteOver(at, *bytes); !status.ok()) return status;
      at += bytes->size();
    }
    SetLastWritten(info.st_mtim);
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (fdatasync(fd_.get()) != 0) return SyncError("sync", path_, errno);
    return absl::OkStatus();
  }

  void BeginWriteback() override { sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE); }

  absl::StatusOr<WallTime> LastWritten() const override {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) return IoError("stat", path_, errno);
    return WallTime::FromUnixMillis(int64_t{info.st_mtim.tv_sec} * 1000 +
                                    info.st_mtim.tv_nsec / 1'000'000);
  }

 private:
  // Drops `written` bytes from the parts; returns the first that still has some.
  static size_t Advance(std::vector<iovec>& parts, size_t next, size_t written) {
    while (next < parts.size() && written >= parts[next].iov_len) {
      written -= parts[next].iov_len;
      ++next;
    }
    if (next < parts.size()) {
      parts[next].iov_base = static_cast<char*>(parts[next].iov_base) + written;
      parts[next].iov_len -= written;
    }
    return next;
  }

  void SetLastWritten(const timespec& when) {
    const timespec times[2] = {{0, UTIME_OMIT}, when};
    futimens(fd_.get(), times);
  }

  absl::Status WriteOver(uint64_t at, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (written < 0) {
        if (errno == EINTR) continue;
        return IoError("rewrite", path_, errno);
      }
      at += static_cast<uint64_t>(written);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status UndoAppend(uint64_t start, int error) {
    const absl::Status failed = IoError("append to", path_, error);
    if (ftruncate(fd_.get(), static_cast<off_t>(start)) == 0) return failed;
    return MakeError(v1::STORAGE_ERROR, absl::StrCat(std::string(failed.message()),
                                                     "; and it could not be cut back to ", start,
                                                     " bytes: ", std::strerror(errno)));
  }

  const std::string path_;
  const FileDescriptor fd_;
  std::atomic<uint64_t> size_;
};

class PosixLock : public FileLock {
 public:
  explicit PosixLock(FileDescriptor fd) : fd_(std::move(fd)) {}

 private:
  const FileDescriptor fd_;
};

int Flags(FileSystem::OpenMode mode) {
  switch (mode) {
    case FileSystem::OpenMode::kReadOnly:
      return O_RDONLY;
    case FileSystem::OpenMode::kExisting:
      return O_RDWR;
    case FileSystem::OpenMode::kCreate:
      return O_RDWR | O_CREAT;
    case FileSystem::OpenMode::kCreateNew:
    case FileSystem::OpenMode::kCreateBriefly:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

bool StaysOpen(FileSystem::OpenMode mode) {
  return mode == FileSystem::OpenMode::kExisting || mode == FileSystem::OpenMode::kCreate ||
         mode == FileSystem::OpenMode::kCreateNew;
}

}  // namespace

absl::StatusOr<std::unique_ptr<File>> PosixFileSystem::Open(const std::string& path,
                                                            OpenMode mode) {
  // Who opens a pipe would wait for its other end; of a file it means nothing.
  FileDescriptor fd(open(path.c_str(), Flags(mode) | O_CLOEXEC | O_NONBLOCK, 0644));
  if (fd.get() < 0) return IoError("open", path, errno);
  if (StaysOpen(mode) && !LeavesDescriptors(fd.get(), DescriptorsBesideLogs())) {
    if (mode == OpenMode::kCreateNew) unlink(path.c_str());
    return IoError("open", path, EMFILE);
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return IoError("stat", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return MakeError(v1::STORAGE_ERROR, absl::StrCat("open ", path, ": it is no regular file"));
  }
  return std::make_unique<PosixFile>(path, std::move(fd), static_cast<uint64_t>(info.st_size));
}

absl::Status PosixFileSystem::CreateDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat info;
  if (error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::OkStatus();
  }
  return IoError("make directory", path, error);
}

absl::Status PosixFileSystem::SyncDirectory(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return IoError("open directory", path, errno);
  if (fsync(fd.get()) != 0) return SyncError("sync directory", path, errno);
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return IoError("rename", absl::StrCat(from, " to ", to), errno);
}

absl::Status PosixFileSystem::RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  return IoError("remove", path, errno);
}

absl::Status PosixFileSystem::RemoveDirectory(const std::string& path) {
  if (rmdir(path.c_str()) == 0) return absl::OkStatus();
  return IoError("remove directory", path, errno);
}

absl::StatusOr<bool> PosixFileSystem::Exists(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return IoError("stat", path, errno);
}

absl::StatusOr<uint64_t> PosixFileSystem::FreeBytes(const std::string& path) {
  struct statvfs info;
  if (statvfs(path.c_str(), &info) != 0) return IoError("statvfs", path, errno);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

absl::StatusOr<std::vector<DirectoryEntry>> PosixFileSystem::List(const std::string& path) {
  struct Closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  const std::unique_ptr<DIR, Closer> directory(opendir(path.c_str()));
  if (directory == nullptr) return IoError("list", path, errno);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) {
      if (errno != 0) return IoError("list", path, errno);
      break;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    const std::string inner = JoinPath(path, name);
    // A link that leads nowhere, or in a circle, is a file that cannot be opened.
    if (stat(inner.c_str(), &info) != 0 && lstat(inner.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;  // Removed meanwhile.
      return IoError("stat", inner, errno);
    }
    entries.push_back({name, S_ISDIR(info.st_mode), static_cast<uint64_t>(info.st_size)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0) return IoError("open lock file", path, errno);
  // flock belongs to the open file, so that two locks in one process exclude each other too.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return MakeError(v1::STORAGE_ERROR,
                       absl::StrCat(path,
                                    " is locked: another process uses this directory; stop "
                                    "it first (fuser ",
                                    path, " names it)"));
    }
    return IoError("lock", path, errno);
  }
  return std::make_unique<PosixLock>(std::move(fd));
}

}  // namespace conclave
