#include "tools/measure/histogram.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace conclave::tools {

Histogram::Histogram() : counts_(kBuckets) {}

size_t Histogram::BucketOf(uint64_t value) {
  value = std::min(value, kGreatest);
  const int bits = std::bit_width(value);
  if (bits <= kLinearBits) return value;
  // The upper kLinearBits of the value, whose first bit is always set, choose among kPerPower.
  const int shift = bits - kLinearBits;
  return static_cast<size_t>(shift) * kPerPower + (value >> shift);
}

uint64_t Histogram::TopOf(size_t bucket) {
  if (bucket < 2 * kPerPower) return bucket;
  const size_t shift = bucket / kPerPower - 1;
  const uint64_t upper = bucket - shift * kPerPower;
  return ((upper + 1) << shift) - 1;
}

void Histogram::Add(uint64_t value) {
  ++counts_[BucketOf(value)];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
  ++count_;
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

double Histogram::Mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

uint64_t Histogram::Percentile(double percent) const {
  CHECK(percent >= 0 && percent <= 100) << percent;
  if (count_ == 0) return 0;
  // What a double cannot hold of 99.9 % of a thousand must not ask for one sample more.
  const double rank = std::ceil(percent / 100 * static_cast<double>(count_) - 1e-6);
  const uint64_t wanted =
      std::clamp<uint64_t>(rank < 1 ? 1 : static_cast<uint64_t>(rank), 1, count_);
  uint64_t passed = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    passed += counts_[bucket];
    // Of the last bucket, what exceeds it too is told by max() alone.
    if (passed >= wanted) return std::min(TopOf(bucket), max_);
  }
  return max_;
}

}  // namespace conclave::tools
