#include "broker/log/epoch_cache.h"

#include <algorithm>

namespace conclave {

bool EpochCache::Note(LeaderEpoch epoch, Offset start) {
  if (epoch.value() < 0) return false;
  if (!starts_.empty()) {
    // Neither falls in a sound log. The epoch in a batch is outside its CRC, so it may have rotted.
    if (epoch <= starts_.back().epoch || start <= starts_.back().start) return false;
  }
  starts_.push_back({epoch, start});
  return true;
}

std::optional<EpochStart> EpochCache::last() const {
  if (starts_.empty()) return std::nullopt;
  return starts_.back();
}

EpochEnd EpochCache::EndOf(LeaderEpoch asked, Offset log_end) const {
  const auto next =
      std::upper_bound(starts_.begin(), starts_.end(), asked,
                       [](LeaderEpoch epoch, const EpochStart& s) { return epoch < s.epoch; });
  const Offset end = next == starts_.end() ? log_end : next->start;
  if (next == starts_.begin()) return {LeaderEpoch(-1), end};
  return {std::prev(next)->epoch, end};
}

std::optional<LeaderEpoch> EpochCache::EpochOf(Offset offset) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), offset,
                                     [](Offset at, const EpochStart& s) { return at < s.start; });
  if (next == starts_.begin()) return std::nullopt;
  return std::prev(next)->epoch;
}

bool EpochCache::TruncateTo(Offset end) {
  const size_t before = starts_.size();
  while (!starts_.empty() && starts_.back().start >= end) starts_.pop_back();
  return starts_.size() != before;
}

bool EpochCache::TrimTo(Offset start) {
  bool changed = false;
  while (starts_.size() > 1 && starts_[1].start < start) {
    starts_.erase(starts_.begin());
    changed = true;
  }
  if (!starts_.empty() && starts_.front().start + 1 < start) {
    starts_.front().start = start - 1;
    changed = true;
  }
  return changed;
}

}  // namespace conclave
