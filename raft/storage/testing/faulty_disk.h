#ifndef CONCLAVE_RAFT_STORAGE_TESTING_FAULTY_DISK_H_
#define CONCLAVE_RAFT_STORAGE_TESTING_FAULTY_DISK_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/random/random.h"

namespace rocksdb {
class Env;
}

namespace conclave::raft::testing {

// The files of a disk: path to contents.
using DiskImage = std::map<std::string, std::string>;

// It is there from the start.
inline constexpr char kDataDirectory[] = "/data";

// A disk in memory under a RocksDB environment of its own, which knows what of it would outlive a
// loss of power: bytes up to their file's last sync, and names up to their directory's.
// Thread-safe, for RocksDB flushes in the background.
class FaultyDisk {
 public:
  // A disk that holds `image`, all of it durable.
  explicit FaultyDisk(const DiskImage& image = {});
  ~FaultyDisk();

  // To be given to RocksDB; lives as long as this.
  rocksdb::Env* env();

  // Called after every write, sync and change of names, with what it was, on the thread that did
  // it.
  void OnStep(std::function<void(const std::string& step)> observer);

  // What there is for a process that starts after another was killed: all that was written.
  DiskImage Contents() const;

  enum class Loss {
    // Nothing survives that was not synced.
    kEverythingUnsynced,
    // Of each file some of the unsynced bytes survive, cut at any byte; of the changes of names
    // since the directory's sync, the first few.
    kTorn,
  };
  DiskImage AfterPowerLoss(Loss loss, Random& random) const;

  // The `nth` sync of a file from now on, from 1, fails; those after it succeed and make nothing of
  // that file durable, as with a kernel that drops the pages it could not write. `retriable` makes
  // it an error from which RocksDB would resume by itself.
  void FailSync(int nth, bool retriable);

 private:
  class State;
  class TrackedFile;
  class TrackedDirectory;
  class TrackingFileSystem;

  const std::shared_ptr<State> state_;
  const std::unique_ptr<rocksdb::Env> memory_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace conclave::raft::testing

#endif  // CONCLAVE_RAFT_STORAGE_TESTING_FAULTY_DISK_H_
