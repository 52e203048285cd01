#ifndef CONCLAVE_BROKER_PARTITION_PARTITION_TABLE_H_
#define CONCLAVE_BROKER_PARTITION_PARTITION_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "common/metadata/partition.h"

namespace conclave::broker {

// Something of each partition, by its id, for look-ups of every batch and acknowledgement: in an
// ordered map of a thousand partitions each is ten cache misses. The order of a hash map differs
// from process to process and must not show in what a broker does, so this one is walked through in
// the order of the ids alone. Not thread-safe.
template <typename T>
class PartitionTable {
 public:
  // nullptr: it is not there. Valid until another one is added.
  T* Find(const PartitionId& id) {
    const auto found = map_.find(id);
    return found == map_.end() ? nullptr : &found->second;
  }
  // Made if it is not there.
  T& operator[](const PartitionId& id) { return map_[id]; }
  void Erase(const PartitionId& id) { map_.erase(id); }
  void Clear() { map_.clear(); }

  bool empty() const { return map_.empty(); }
  bool Contains(const PartitionId& id) const { return map_.contains(id); }
  // Sorts: for what is rare.
  std::vector<PartitionId> Ids() const {
    std::vector<PartitionId> ids;
    ids.reserve(map_.size());
    for (const auto& [id, value] : map_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

 private:
  struct Hash {
    size_t operator()(const PartitionId& id) const { return absl::HashOf(id.topic, id.index); }
  };

  absl::flat_hash_map<PartitionId, T, Hash> map_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_PARTITION_TABLE_H_
