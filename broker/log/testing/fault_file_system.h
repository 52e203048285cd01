#ifndef CONCLAVE_BROKER_LOG_TESTING_FAULT_FILE_SYSTEM_H_
#define CONCLAVE_BROKER_LOG_TESTING_FAULT_FILE_SYSTEM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/random/random.h"
#include "common/types/time.h"

namespace conclave {

// Files in memory that forget what was not synced. What a crash leaves of unsynced bytes and names
// is drawn from the seed: nothing, all, or a part, with zeros where bytes were allocated and not
// written. For tests on one thread. Files of before a crash are not used after it.
class FaultFileSystem : public FileSystem {
 public:
  explicit FaultFileSystem(uint64_t seed) : random_(seed) {}

  // Writes, truncations, syncs and changes of names so far.
  uint64_t operations() const { return operations_; }
  // The operation after `count` more, and all later ones, fail, as if the process had died there; a
  // write may be done in part.
  void DieAfter(uint64_t count) { die_at_ = operations_ + count; }
  // What is left after a power loss; operations work again.
  void Crash();

  // Appends fail while it is set, changing nothing.
  void SetDiskFull(bool full) { disk_full_ = full; }
  // As many appends as that yet succeed; the others find no room. nullopt: all succeed.
  void SetAppendsLeft(std::optional<int> appends) { appends_left_ = appends; }
  // As many files as that, and directories to sync, may yet be opened; nullopt: any.
  void SetOpensLeft(std::optional<int> opens) { opens_left_ = opens; }
  // The next sync of a file fails.
  void FailNextSync() { fail_next_sync_ = true; }
  uint64_t syncs() const { return syncs_; }
  // When files are written from now on.
  void SetWallTime(WallTime now) { wall_now_ = now; }

  // Changes contents behind everyone's back, durably.
  void Change(const std::string& path, const std::function<void(std::string&)>& change);
  std::string Contents(const std::string& path) const;
  void Erase(const std::string& path);
  std::vector<std::string> Paths() const;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string&) override { return UINT64_MAX; }
  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  friend class FaultFile;

  struct Inode {
    std::string now;
    std::string synced;
    WallTime last_written;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  // A change of names that no directory sync has covered yet.
  struct Pending {
    std::string directory;
    std::function<void(Names&)> apply;
  };

  // Counts an operation; an error if the process is dead.
  absl::Status Operate(const std::string& path);
  absl::Status TakeDescriptor(const std::string& path);
  void ChangeNames(const std::string& path, std::function<void(Names&)> change);
  std::string Survivor(const Inode& inode);

  Random random_;
  Names names_;
  Names synced_names_;
  std::vector<Pending> pending_;
  std::set<std::string> directories_;
  uint64_t operations_ = 0;
  uint64_t syncs_ = 0;
  std::optional<uint64_t> die_at_;
  WallTime wall_now_;
  std::optional<int> opens_left_;
  std::optional<int> appends_left_;
  bool disk_full_ = false;
  bool fail_next_sync_ = false;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_TESTING_FAULT_FILE_SYSTEM_H_
