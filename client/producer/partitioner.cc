#include "client/producer/partitioner.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/hash/murmur2.h"

namespace conclave {

PartitionIndex PartitionForKey(std::string_view key, int32_t partitions) {
  CHECK_GT(partitions, 0);
  return PartitionIndex(static_cast<int32_t>(Murmur2(key) & 0x7fffffff) % partitions);
}

PartitionIndex StickyPartitioner::Choose(const std::vector<PartitionIndex>& available,
                                         size_t record_bytes) {
  CHECK(!available.empty());
  const auto at = std::find(available.begin(), available.end(), current_);
  const bool gone = at == available.end();
  if (gone || used_ >= bytes_) {
    // Another one, where there is another.
    size_t next = random_.Below(available.size() - (gone || available.size() == 1 ? 0 : 1));
    if (!gone && available.size() > 1 && next >= static_cast<size_t>(at - available.begin())) {
      ++next;
    }
    current_ = available[next];
    used_ = 0;
  }
  used_ += record_bytes;
  return current_;
}

}  // namespace conclave
