#include "raft/core/reads.h"

#include <gtest/gtest.h>

#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

TEST(RaftReadIndex, IsConfirmedByAHeartbeatRoundBegunAfterIt) {
  TestCluster c(3);
  c.Elect(1);
  c.Propose(1, "a");
  c.Settle();
  ASSERT_TRUE(c.core(1).ReadIndex(ReadContext(7), c.now()).ok());
  EXPECT_TRUE(c.reads(1).empty());
  c.Settle();
  ASSERT_EQ(c.reads(1).size(), 1u);
  EXPECT_EQ(c.reads(1)[0].context, ReadContext(7));
  EXPECT_EQ(c.reads(1)[0].index, LogIndex(3));
}

TEST(RaftReadIndex, WaitsForAnEntryOfTheLeadersOwnTerm) {
  TestCluster c(3);
  c.Elect(1);
  c.Propose(1, "a");
  c.Settle();
  c.Crash(1);
  // Heartbeats pass, entries do not: the new leader cannot tell yet what was committed.
  c.OnlyIf([](const v1::RaftMessage& m) { return m.append_request().entries_size() == 0; });
  c.Elect(2);
  ASSERT_TRUE(c.core(2).ReadIndex(ReadContext(1), c.now()).ok());
  c.Advance(Duration::Milliseconds(300));
  EXPECT_TRUE(c.reads(2).empty());
  c.OnlyIf(nullptr);
  // Rounds go on, and entries come with the next probe.
  c.core(2).PeerStreamReset(c.key(3), c.now());
  c.Advance(Duration::Milliseconds(300));
  ASSERT_EQ(c.reads(2).size(), 1u);
  EXPECT_EQ(c.reads(2)[0].index, LogIndex(4)) << "its own NOOP, which follows all that was";
}

TEST(RaftReadIndex, AQuorumOfOneAnswersItself) {
  TestCluster c(1);
  c.Elect(1);
  ASSERT_TRUE(c.core(1).ReadIndex(ReadContext(1), c.now()).ok());
  c.Settle();
  EXPECT_EQ(c.reads(1).size(), 1u);
}

TEST(RaftReadIndex, FailsWithTheLeadershipAndIsRefusedWithoutIt) {
  TestCluster c(3);
  EXPECT_EQ(c.core(1).ReadIndex(ReadContext(1), c.now()).code(),
            absl::StatusCode::kFailedPrecondition);
  c.Elect(1);
  c.Isolate(1);
  ASSERT_TRUE(c.core(1).ReadIndex(ReadContext(2), c.now()).ok());
  c.Advance(Duration::Milliseconds(1500));
  ASSERT_EQ(c.failed_reads(1).size(), 1u);
  EXPECT_EQ(c.failed_reads(1)[0], ReadContext(2));
}

TEST(PendingReadsTest, ARoundConfirmsWhatCameBeforeIt) {
  PendingReads reads;
  reads.Add(ReadContext(1), LogIndex(5), 1);
  reads.Add(ReadContext(2), LogIndex(9), 2);
  const auto confirmed = reads.TakeConfirmed(1, LogIndex(7));
  ASSERT_EQ(confirmed.size(), 1u);
  EXPECT_EQ(confirmed[0].index, LogIndex(7)) << "no lower than the leader's first entry";
  EXPECT_EQ(reads.size(), 1u);
}

}  // namespace
}  // namespace conclave::raft
