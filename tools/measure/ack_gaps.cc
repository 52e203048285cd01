#include "tools/measure/ack_gaps.h"

namespace conclave::tools {

void AckGaps::Begin(int32_t partition, MonotonicTime now, WallTime wall) {
  last_[partition] = {now, wall};
}

void AckGaps::Acknowledged(int32_t partition, MonotonicTime now, WallTime wall) {
  const auto [at, first] = last_.try_emplace(partition, Last{now, wall});
  if (first) return;
  Add({partition, at->second.wall, now - at->second.at});
  at->second = {now, wall};
}

void AckGaps::End(MonotonicTime now) {
  for (const auto& [partition, last] : last_) Add({partition, last.wall, now - last.at});
  last_.clear();
}

void AckGaps::Add(const Gap& gap) {
  if (gap.length > longest_.length) longest_ = gap;
  if (gap.length >= threshold_) gaps_.push_back(gap);
}

}  // namespace conclave::tools
