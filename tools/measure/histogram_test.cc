#include "tools/measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/random/random.h"

namespace conclave::tools {
namespace {

TEST(HistogramTest, NothingAddedIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(50), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.Mean(), 0);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1000; value > 0; --value) histogram.Add(value);
  EXPECT_EQ(histogram.Percentile(0), 1u);
  EXPECT_EQ(histogram.Percentile(50), 500u);
  EXPECT_EQ(histogram.Percentile(99), 990u);
  EXPECT_EQ(histogram.Percentile(99.9), 999u);
  EXPECT_EQ(histogram.Percentile(100), 1000u);
  EXPECT_EQ(histogram.min(), 1u);
  EXPECT_EQ(histogram.Mean(), 500.5);
}

TEST(HistogramTest, EveryValueComesBackToThreeDigits) {
  for (int bits = 0; bits <= Histogram::kTopBits; ++bits) {
    for (const int64_t near : {-1, 0, 1}) {
      const int64_t value = (int64_t{1} << bits) + near;
      if (static_cast<uint64_t>(value) > Histogram::kGreatest) continue;
      Histogram histogram;
      histogram.Add(static_cast<uint64_t>(value));
      // So that max() does not hide what the bucket says.
      histogram.Add(Histogram::kGreatest);
      const uint64_t said = histogram.Percentile(50);
      EXPECT_GE(said, static_cast<uint64_t>(value));
      EXPECT_LE(static_cast<double>(said - static_cast<uint64_t>(value)),
                static_cast<double>(value) / 1024)
          << value;
    }
  }
}

TEST(HistogramTest, PercentilesOfRandomValuesAreThoseOfSortedSamples) {
  Random random(17);
  Histogram histogram;
  std::vector<uint64_t> samples;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t value = random.Next() >> (24 + random.Next() % 40);
    samples.push_back(value);
    histogram.Add(value);
  }
  std::sort(samples.begin(), samples.end());
  for (const double percent : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * 20000 - 1e-6));
    const uint64_t sample = samples[rank - 1];
    const uint64_t said = histogram.Percentile(percent);
    EXPECT_GE(said, sample) << percent;
    EXPECT_LE(static_cast<double>(said - sample), static_cast<double>(sample) / 1024) << percent;
  }
}

TEST(HistogramTest, WhatIsTooGreatIsToldByTheMaximum) {
  Histogram histogram;
  histogram.Add(5);
  histogram.Add(uint64_t{1} << 50);
  EXPECT_EQ(histogram.max(), uint64_t{1} << 50);
  EXPECT_EQ(histogram.Percentile(50), 5u);
  EXPECT_EQ(histogram.Percentile(100), Histogram::kGreatest);
}

TEST(HistogramTest, MergedIsAsIfAddedThere) {
  Histogram all;
  Histogram low;
  Histogram high;
  for (uint64_t value = 1; value <= 100; ++value) {
    all.Add(value * 1000);
    (value <= 30 ? low : high).Add(value * 1000);
  }
  Histogram merged;
  merged.Merge(high);
  merged.Merge(Histogram());
  merged.Merge(low);
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_EQ(merged.min(), all.min());
  EXPECT_EQ(merged.max(), all.max());
  EXPECT_EQ(merged.Mean(), all.Mean());
  for (const double percent : {10.0, 50.0, 99.0}) {
    EXPECT_EQ(merged.Percentile(percent), all.Percentile(percent));
  }
}

}  // namespace
}  // namespace conclave::tools
