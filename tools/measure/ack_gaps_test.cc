#include "tools/measure/ack_gaps.h"

#include <gtest/gtest.h>

namespace conclave::tools {
namespace {

MonotonicTime At(int64_t ms) { return MonotonicTime::FromNanoseconds(ms * 1'000'000); }
WallTime Wall(int64_t ms) { return WallTime::FromUnixMillis(1'000'000 + ms); }

TEST(AckGapsTest, EachPartitionHasItsOwn) {
  AckGaps gaps(Duration::Milliseconds(100));
  gaps.Begin(0, At(0), Wall(0));
  gaps.Begin(1, At(0), Wall(0));
  for (int64_t ms = 10; ms <= 1000; ms += 10) {
    gaps.Acknowledged(0, At(ms), Wall(ms));
    // Silent from 200 to 700, while the other goes on.
    if (ms <= 200 || ms >= 700) gaps.Acknowledged(1, At(ms), Wall(ms));
  }
  ASSERT_EQ(gaps.gaps().size(), 1u);
  EXPECT_EQ(gaps.gaps()[0].partition, 1);
  EXPECT_EQ(gaps.gaps()[0].begin, Wall(200));
  EXPECT_EQ(gaps.gaps()[0].length, Duration::Milliseconds(500));
  EXPECT_EQ(gaps.longest().length, Duration::Milliseconds(500));
}

TEST(AckGapsTest, TheWaitForTheFirstCountsFromTheBeginning) {
  AckGaps gaps(Duration::Milliseconds(100));
  gaps.Begin(3, At(50), Wall(50));
  gaps.Acknowledged(3, At(150), Wall(150));
  ASSERT_EQ(gaps.gaps().size(), 1u);
  EXPECT_EQ(gaps.gaps()[0].length, Duration::Milliseconds(100));
}

TEST(AckGapsTest, TheLongestIsToldBelowTheThreshold) {
  AckGaps gaps(Duration::Seconds(10));
  EXPECT_EQ(gaps.longest().length, Duration());
  gaps.Acknowledged(0, At(0), Wall(0));
  gaps.Acknowledged(0, At(30), Wall(30));
  gaps.Acknowledged(0, At(40), Wall(40));
  EXPECT_TRUE(gaps.gaps().empty());
  EXPECT_EQ(gaps.longest().length, Duration::Milliseconds(30));
  EXPECT_EQ(gaps.longest().begin, Wall(0));
}

TEST(AckGapsTest, WhatIsOpenAtTheEndCounts) {
  AckGaps gaps(Duration::Milliseconds(100));
  gaps.Begin(0, At(0), Wall(0));
  gaps.Begin(1, At(0), Wall(0));
  gaps.Acknowledged(0, At(90), Wall(90));
  gaps.End(At(150));
  gaps.End(At(900));
  ASSERT_EQ(gaps.gaps().size(), 1u);
  EXPECT_EQ(gaps.gaps()[0].partition, 1);
  EXPECT_EQ(gaps.gaps()[0].begin, Wall(0));
  EXPECT_EQ(gaps.longest().length, Duration::Milliseconds(150));
}

}  // namespace
}  // namespace conclave::tools
