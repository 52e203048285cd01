#ifndef CONCLAVE_CLIENT_PRODUCER_PARTITIONER_H_
#define CONCLAVE_CLIENT_PRODUCER_PARTITIONER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/random/random.h"
#include "common/types/ids.h"

namespace conclave {

// The partition of a key, of all partitions whether they have a leader or not:
// (murmur2(key) & 0x7fffffff) mod partitions, as Kafka's Java client has it. `partitions` > 0.
PartitionIndex PartitionForKey(std::string_view key, int32_t partitions);

// Spreads records without a key over a topic (KIP-794): it stays with a partition until a batch's
// bytes have gone there, then draws another. Not thread-safe.
class StickyPartitioner {
 public:
  // `bytes`: how much goes to a partition before it changes.
  StickyPartitioner(const Random& random, size_t bytes) : random_(random), bytes_(bytes) {}

  // For a record of so many bytes. `available`: partitions that have a leader, or all where none
  // has; not empty. One that is no longer among them is left at once.
  PartitionIndex Choose(const std::vector<PartitionIndex>& available, size_t record_bytes);

  // The partition it is with; -1 before the first. Choose would stay with it, if it is available,
  // unless it is full: so whoever knows that may call Stay instead, which is cheaper.
  PartitionIndex current() const { return current_; }
  bool full() const { return used_ >= bytes_; }
  PartitionIndex Stay(size_t record_bytes) {
    used_ += record_bytes;
    return current_;
  }

 private:
  Random random_;
  const size_t bytes_;
  PartitionIndex current_{-1};
  size_t used_ = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PARTITIONER_H_
