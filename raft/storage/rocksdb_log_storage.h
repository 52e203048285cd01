#ifndef CONCLAVE_RAFT_STORAGE_ROCKSDB_LOG_STORAGE_H_
#define CONCLAVE_RAFT_STORAGE_ROCKSDB_LOG_STORAGE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "raft/core/bootstrap.h"
#include "raft/storage/log_storage.h"

namespace rocksdb {
class Env;
}

namespace conclave::raft {

// The Raft log in a RocksDB directory: docs/formats.md has the keys. Term, vote and entries of one
// Append are one write batch with one sync of RocksDB's write-ahead log.
//
// A damaged database is refused, not cut: only an incomplete record at the very end of the
// write-ahead log, which a crash in the middle of a write leaves and nobody was promised, is passed
// over.
//
// What cannot be told from that, and so costs acknowledged batches in silence:
// - The length in the header of the log's last record (that of the last batch, or of its last
//   32 KiB), damaged so that the record reaches beyond the end of the file. Damage of any other
//   byte of it fails its checksum, and is refused.
// - Zeros from the beginning of a record to the end of the file: a file system may show them where
//   it had lengthened the file and not yet written the data. Where the zeros are damage, the
//   batches under them are lost.
// - A log that ends too early, at any byte, or is not there at all.
// All of them need damage that reaches the end of the file. Before the last whole record everything
// is refused: RocksDB itself would cut there at a damaged length or at zeros (see tail_check.h).
class RocksDbLogStorage : public LogStorage {
 public:
  // What is being made stands under the path with this behind it; a crash may leave it there, and
  // the next Create removes it.
  static constexpr char kSideSuffix[] = ".new";

  // Makes a database that holds `initial`, whole or not at all; its parent directory is there. If
  // `path` has one that holds just that, Create has been here before, and it is left as it is;
  // FailedPrecondition, with nothing changed, if it has anything else. `env` is for tests; null is
  // the operating system's.
  static absl::Status Create(const std::string& path, const RecoveredState& initial,
                             rocksdb::Env* env = nullptr);

  // Opens what Create made. STORAGE_ERROR, naming the path and the damage, if it is not whole.
  static absl::StatusOr<std::unique_ptr<RocksDbLogStorage>> Open(const std::string& path,
                                                                 rocksdb::Env* env = nullptr);
  // The same without writing anything, for inspection; beside a running node it may miss the newest
  // entries. Append is not to be called.
  static absl::StatusOr<std::unique_ptr<RocksDbLogStorage>> OpenReadOnly(
      const std::string& path, rocksdb::Env* env = nullptr);

  ~RocksDbLogStorage() override;

  // What the database holds; called once, before Append. Refuses a log with a gap, or that does not
  // begin at 1.
  absl::StatusOr<RecoveredState> Load();

  absl::Status Append(const std::vector<Write>& writes) override;

 private:
  class Impl;
  explicit RocksDbLogStorage(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_STORAGE_ROCKSDB_LOG_STORAGE_H_
