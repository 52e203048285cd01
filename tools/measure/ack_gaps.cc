#include "tools/measure/ack_gaps.h"

namespace conclave::tools {

void AckGaps::Begin(int32_t partition, MonotonicTime now, WallTime wall) {
  last_[partition] = {now, wall};
}

void AckGaps::Acknowledged(int32_t partition, MonotonicTime now, WallTime wall) {
  const auto [at, first] = last_.try_emplace(partition, Last{now, wall});
  if (first) return;
  const Gap gap{partition, at->second.wall, now - at->second.at};
  at->second = {now, wall};
  if (gap.length > longest_.length) longest_ = gap;
  if (gap.length >= threshold_) gaps_.push_back(gap);
}

}  // namespace conclave::tools
