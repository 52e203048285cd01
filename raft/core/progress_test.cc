#include "raft/core/progress.h"

#include <gtest/gtest.h>

namespace conclave::raft {
namespace {

TEST(ProgressTest, ProbesWithOneAppendAtATime) {
  Progress p(LogIndex(10), MonotonicTime());
  EXPECT_TRUE(p.CanSend(16));
  p.Sent(LogIndex(12), LogIndex(0));
  EXPECT_FALSE(p.CanSend(16));
  EXPECT_EQ(p.next(), LogIndex(10)) << "nothing is taken for granted yet";
  EXPECT_TRUE(p.Rejected(LogIndex(9), LogIndex(4), p.attempt()));
  EXPECT_EQ(p.next(), LogIndex(4));
  EXPECT_TRUE(p.CanSend(16));
}

TEST(ProgressTest, ReplicatesAheadUpToItsWindow) {
  Progress p(LogIndex(1), MonotonicTime());
  p.Accepted(LogIndex(0), LogIndex(0));
  p.Sent(LogIndex(1), LogIndex(0));
  p.Sent(LogIndex(2), LogIndex(0));
  EXPECT_EQ(p.next(), LogIndex(3));
  EXPECT_FALSE(p.CanSend(2));
  p.Accepted(LogIndex(0), LogIndex(2));
  EXPECT_FALSE(p.CanSend(2)) << "received is not durable: a slow disk holds the window";
  p.Accepted(LogIndex(1), LogIndex(2));
  EXPECT_TRUE(p.CanSend(2));
}

TEST(ProgressTest, OfManyRefusalsOnTheirWayOnlyTheFirstStepsBack) {
  Progress p(LogIndex(1), MonotonicTime());
  p.Accepted(LogIndex(0), LogIndex(0));
  for (uint64_t i = 1; i <= 5; ++i) p.Sent(LogIndex(i), LogIndex(0));
  const uint64_t attempt = p.attempt();
  EXPECT_TRUE(p.Rejected(LogIndex(2), LogIndex(2), attempt));
  EXPECT_FALSE(p.Rejected(LogIndex(3), LogIndex(2), attempt));
  p.Accepted(LogIndex(2), LogIndex(2));
  EXPECT_FALSE(p.Rejected(LogIndex(4), LogIndex(2), attempt));
  EXPECT_FALSE(p.probing());
}

TEST(ProgressTest, NeverStepsBackBehindWhatIsMatchedWhateverTheHint) {
  Progress p(LogIndex(8), MonotonicTime());
  p.Accepted(LogIndex(5), LogIndex(7));
  EXPECT_TRUE(p.Rejected(LogIndex(7), LogIndex(0), p.attempt()));
  EXPECT_EQ(p.next(), LogIndex(6));
  EXPECT_FALSE(p.Rejected(LogIndex(5), LogIndex(0), p.attempt()));
  EXPECT_FALSE(p.Rejected(LogIndex(99), LogIndex(99), p.attempt()));
  EXPECT_EQ(p.match(), LogIndex(5));
}

}  // namespace
}  // namespace conclave::raft
