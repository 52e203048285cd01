#ifndef CONCLAVE_COMMON_FS_SIM_FILE_SYSTEM_H_
#define CONCLAVE_COMMON_FS_SIM_FILE_SYSTEM_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "common/clock/clock.h"
#include "common/fs/file_system.h"
#include "common/random/random.h"

namespace conclave {

// The disk of the simulation: files in memory, of which it is known what would outlive a loss of
// power. A function of the calls made to it and of the streams of random numbers it is given. Takes
// no time: who wants a sync to take long calls it late.
//
// All paths are relative to one root, which is there. Faults fail calls with the same errors as the
// operating system's files do.
class SimFileSystem : public FileSystem {
 public:
  struct Options {
    // Appends beyond that fail with "No space left on device".
    uint64_t capacity_bytes = std::numeric_limits<uint64_t>::max();
    // How often a file that loses unsynced bytes in a crash has zeros in their place, as where a
    // file system had lengthened it and not yet written the data.
    double zero_tails = 0;
    // By whose wall clock files are written; outlives this. Null: by one that stands at 1970.
    const Clock* clock = nullptr;
  };

  SimFileSystem();
  explicit SimFileSystem(Options options);
  ~SimFileSystem() override;

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

  // Power is lost. Of each file the synced contents survive, and of what was appended since any
  // number of bytes from the front; a truncation that was not synced has happened or not. Of the
  // unsynced changes of names any may survive, in any combination that keeps the order of those
  // that concern the same name or file. Files and locks that were open are dead: their calls fail.
  // Ends all faults but the capacity's.
  void Crash(Random& random);

  // The process ends, however it ends: what it wrote is there, its files and locks are dead.
  void KillProcess();

  // The `nth` sync of a file or directory from now on, from 1, fails. What it should have made
  // durable never will be, whatever later syncs of that file say, as with a kernel that drops the
  // pages it could not write; until they are written again.
  void FailSync(int nth);
  // The `nth` append from now on fails, and changes nothing.
  void FailAppend(int nth);
  void SetCapacity(uint64_t bytes);
  // A byte of a file changes on the medium. The file is there, and longer than `offset`.
  void Rot(const std::string& path, uint64_t offset, uint8_t flipped_bits = 1);

  // After `operations` more that change something (appends, truncations, syncs, changes of names)
  // the machine stands still: every call fails until Crash or KillProcess. For a crash at each step
  // of an operation.
  void StopAfter(uint64_t operations);
  // How many of those there have been.
  uint64_t operations() const;
  // Bytes that files hold.
  uint64_t used_bytes() const;
  // How many bytes from its front a file is sure to have after a crash, whatever that leaves of the
  // rest; 0 if its name is not sure to be there.
  uint64_t DurableSize(const std::string& path) const;

 private:
  class Disk;
  class SimFile;
  class SimLock;

  // Shared with open files and locks, which may outlive this.
  const std::shared_ptr<Disk> disk_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_FS_SIM_FILE_SYSTEM_H_
