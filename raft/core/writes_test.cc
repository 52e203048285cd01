#include "raft/core/writes.h"

#include <gtest/gtest.h>

namespace conclave::raft {
namespace {

constexpr MonotonicTime kNow = MonotonicTime::FromNanoseconds(1);

TEST(WritesInFlightTest, CompleteInOrderAndTogether) {
  WritesInFlight writes;
  EXPECT_EQ(writes.Add(LogIndex(3), false, kNow), WriteTicket(1));
  EXPECT_EQ(writes.Add(LogIndex(5), true, kNow), WriteTicket(2));
  EXPECT_EQ(writes.Add(LogIndex(9), false, kNow), WriteTicket(3));
  EXPECT_EQ(writes.TicketFor(LogIndex(4)), WriteTicket(2));
  EXPECT_EQ(writes.HardStateTicket(), WriteTicket(2));
  EXPECT_EQ(writes.Complete(WriteTicket(2)), LogIndex(5));
  EXPECT_EQ(writes.HardStateTicket(), std::nullopt);
  EXPECT_EQ(writes.TicketFor(LogIndex(10)), std::nullopt);
  EXPECT_EQ(writes.Complete(WriteTicket(3)), LogIndex(9));
  EXPECT_TRUE(writes.empty());
}

TEST(WritesInFlightTest, ASyncBegunBeforeATruncationDoesNotCountAfterIt) {
  WritesInFlight writes;
  writes.Add(LogIndex(9), false, kNow);
  writes.Truncated(LogIndex(6));
  writes.Add(LogIndex(7), false, kNow);
  EXPECT_EQ(writes.Complete(WriteTicket(1)), LogIndex(5));
  EXPECT_EQ(writes.Complete(WriteTicket(2)), LogIndex(7));
}

TEST(WritesInFlightDeathTest, ATicketNeverGivenOutIsTheDriversMistake) {
  WritesInFlight writes;
  EXPECT_DEATH(writes.Complete(WriteTicket(1)), "never given");
}

}  // namespace
}  // namespace conclave::raft
