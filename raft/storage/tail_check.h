#ifndef CONCLAVE_RAFT_STORAGE_TAIL_CHECK_H_
#define CONCLAVE_RAFT_STORAGE_TAIL_CHECK_H_

#include <cstddef>
#include <optional>
#include <string_view>

// RocksDB's write-ahead logs and manifests are sequences of records, and a crash leaves the last
// one incomplete. RocksDB takes a record for that one when it reaches beyond the end of the file,
// or is zeros; also where a length was damaged, and hundreds of whole records follow, which it then
// drops without a word (also under kTolerateCorruptedTailRecords, also with paranoid checks). Since
// a record is begun only after the one before it is synced, whole records behind such a place prove
// that it is damage.
namespace conclave::raft {

// Where a file departs from what a crash can leave.
struct TailDamage {
  // The record that is incomplete.
  size_t at;
  // The whole one behind it.
  size_t whole_at;
};

// `file`: a write-ahead log or manifest. Other damage, a checksum that does not match for example,
// is RocksDB's to find.
std::optional<TailDamage> FindTailDamage(std::string_view file);

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_STORAGE_TAIL_CHECK_H_
