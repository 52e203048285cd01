#ifndef CONCLAVE_COMMON_FS_FILE_SYSTEM_H_
#define CONCLAVE_COMMON_FS_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/types/time.h"

// The disk as Conclave uses it: the operating system's in production, SimDisk in simulation. Every
// call blocks until done; where that may be long, callers run it on a thread of its own.
//
// Errors carry STORAGE_ERROR and name the operation, the path and the system's reason; where that
// is a full disk or the limit of open files, OUT_OF_RESOURCES, but for syncs. Paths are absolute or
// relative to the process; "/" separates.
namespace conclave {

// An open file that is written at its end. Thread-compatible: Append, Truncate and size belong to
// one thread; ReadAt and Sync may run on others meanwhile.
class File {
 public:
  // Closes without syncing.
  virtual ~File() = default;

  virtual const std::string& path() const = 0;
  virtual uint64_t size() const = 0;

  // Writes at the end, whole or not at all as far as this process sees: after an error the file is
  // cut back to where it was, or, if that fails too, the error says so and the file is not to be
  // used any more. Not durable before a Sync.
  virtual absl::Status Append(const Buffer& bytes) = 0;

  // A hint that so much more is going to be appended: the system may set room aside on the disk, so
  // that appends need not. Changes neither size nor contents, and says nothing of errors, which the
  // appends do. What is not used stays set aside, also when the process ends, until
  // ReleaseReserved, Truncate or the file's removal.
  virtual void Reserve(uint64_t /*bytes*/) {}
  // Gives it back. LastWritten stays.
  virtual void ReleaseReserved() {}

  // Reads up to `length` bytes at `offset`; fewer only at the end of the file.
  virtual absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t length) const = 0;

  // Cuts the file to `size` bytes, at most its own. Not durable before a Sync.
  virtual absl::Status Truncate(uint64_t size) = 0;

  // Writes what stands from byte `from` on over itself, so that the next Sync covers it whatever
  // became of earlier ones. For who takes over from a process whose sync may have failed: Linux
  // keeps pages that it could not write as if it had, readable and passed over by later syncs.
  // A crash meanwhile takes nothing that was durable. LastWritten stays.
  virtual absl::Status Rewrite(uint64_t from) = 0;

  // Makes the contents and length durable: everything appended or truncated before the call. After
  // an error nothing may be assumed durable, and a later success proves nothing about what this
  // call failed to write: the caller gives the file up, or, in a process to come, uses Rewrite.
  virtual absl::Status Sync() = 0;

  // A hint that a Sync follows soon: the system may begin to write. Makes nothing durable, and says
  // nothing of errors, which Sync does.
  virtual void BeginWriteback() {}

  // When the file was last written, by the machine's wall clock, which may have been wrong then; a
  // copy of the file may have another. Never durable.
  virtual absl::StatusOr<WallTime> LastWritten() const = 0;
};

// Held while it lives; keeps other processes from using a directory. The operating system lets go
// of it when the process ends, however it ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  uint64_t size = 0;
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  enum class OpenMode {
    kReadOnly,
    // Read and append; the file must be there.
    kExisting,
    // Read and append; made if it is not there. The new name is not durable before SyncDirectory.
    kCreate,
    // Made anew; an error if it is there.
    kCreateNew,
    // As kCreateNew, for a file that is closed at once: it may take a descriptor that files which
    // stay open leave free.
    kCreateBriefly,
  };
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;

  // Makes one directory; its parent is there. No error if it is there already.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;

  // Makes names in the directory durable: files made, renamed and removed before the call.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Replaces `to` in one step; after a crash `to` is the old file or the new, durable once the
  // directory is synced.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  // NotFoundError if it is not there.
  virtual absl::Status RemoveFile(const std::string& path) = 0;
  // An empty directory.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;

  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;

  // Bytes that may still be written to the disk that holds `path`, a directory.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;

  // Sorted by name, without "." and "..".
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) = 0;

  // Takes the lock that the file stands for, making the file if need be. An error at once if
  // another process, or another lock in this one, holds it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// The whole file. `limit` bounds what a damaged or foreign file can make us read.
absl::StatusOr<std::string> ReadWholeFile(FileSystem& fs, const std::string& path,
                                          uint64_t limit_bytes);

// What is written to the side stands under the file's name with this behind it.
inline constexpr char kSideSuffix[] = ".new";

// Written to the side, synced, renamed, directory synced: after a crash the file is whole, old or
// new. `path` has a directory part.
absl::Status WriteFileAtomically(FileSystem& fs, const std::string& path, std::string_view bytes);

// Makes the directory and those above it that are missing, and syncs the parent of each.
absl::Status CreateDirectories(FileSystem& fs, const std::string& path);

// "a/b" and "c" to "a/b/c".
std::string JoinPath(const std::string& directory, const std::string& name);
// "a/b/c" to "a/b"; "c" to "."; "/c" to "/".
std::string ParentPath(const std::string& path);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_FS_FILE_SYSTEM_H_
