#ifndef CONCLAVE_TOOLS_MEASURE_HISTOGRAM_H_
#define CONCLAVE_TOOLS_MEASURE_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace conclave::tools {

// Counts of values from 0 to 2^40 - 1 (as nanoseconds: 18 minutes), in buckets that are linear
// within each power of two, as HdrHistogram's are. What it says of a percentile is at most 1/1024
// above the true sample: three significant digits. Memory is fixed: 248 KiB. Not thread-safe.
class Histogram {
 public:
  static constexpr int kTopBits = 40;
  static constexpr uint64_t kGreatest = (uint64_t{1} << kTopBits) - 1;

  Histogram();

  // Greater values count as kGreatest in percentiles; max() is the true one.
  void Add(uint64_t value);
  // As if everything added there had been added here.
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ > 0 ? min_ : 0; }
  uint64_t max() const { return max_; }
  double Mean() const;
  // The least value that `percent` of all values do not exceed, to three digits, and no greater
  // than max(). 0 where there are none. `percent` from 0 to 100.
  uint64_t Percentile(double percent) const;

 private:
  // Values below 2^11 have a bucket each; above, each power of two has 2^10.
  static constexpr int kLinearBits = 11;
  static constexpr size_t kPerPower = size_t{1} << (kLinearBits - 1);
  static constexpr size_t kBuckets = (kTopBits - kLinearBits + 2) * kPerPower;

  static size_t BucketOf(uint64_t value);
  // The greatest value that falls into it.
  static uint64_t TopOf(size_t bucket);

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t min_ = 0;
  uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_MEASURE_HISTOGRAM_H_
