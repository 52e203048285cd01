#include <gtest/gtest.h>

#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

TEST(RaftObserver, AnnouncesItselfAndIsReplicatedTo) {
  TestCluster c(3, 1);
  c.Elect(1);
  c.Propose(1, "a");
  c.Advance(Duration::Seconds(1));
  EXPECT_EQ(c.core(4).role(), Role::kObserver);
  EXPECT_EQ(c.core(4).commit_index(), LogIndex(3));
  EXPECT_EQ(c.core(4).leader(), c.key(1));
  const Status status = c.core(1).GetStatus();
  ASSERT_EQ(status.peers.size(), 3u);
  EXPECT_TRUE(status.peers[2].observer);
  EXPECT_EQ(status.peers[2].endpoint, "c4:7300");
  EXPECT_EQ(status.peers[2].match, LogIndex(3));
}

TEST(RaftObserver, CountsNowhere) {
  TestCluster c(3, 1);
  c.Elect(1);
  c.Advance(Duration::Seconds(1));
  for (int id : {2, 3}) c.Isolate(id);
  const LogPosition a = c.Propose(1, "a");
  c.Settle();
  EXPECT_EQ(c.core(4).log().durable_index(), a.index);
  EXPECT_LT(c.core(1).commit_index(), a.index) << "it has the entry, and is no majority";
  c.Advance(Duration::Milliseconds(1500));
  EXPECT_NE(c.core(1).role(), Role::kLeader) << "its answers keep no leader in office";
}

TEST(RaftObserver, NeverVotesAndNeverStands) {
  TestCluster c(3, 1);
  c.Elect(1);
  c.Advance(Duration::Seconds(1));
  for (int id : {1, 2, 3}) c.Crash(id);
  c.Advance(Duration::Seconds(20));
  EXPECT_EQ(c.core(4).role(), Role::kObserver);
  EXPECT_EQ(c.core(4).counters().campaigns, 0u);
  v1::RaftMessage ask = c.Message(1, 4, Term(9));
  ask.mutable_vote_request()->set_last_term(8);
  ask.mutable_vote_request()->set_last_index(99);
  c.Receive(4, ask);
  EXPECT_FALSE(c.Inbox(1).back().vote_response().granted());
  EXPECT_EQ(c.core(4).vote(), std::nullopt);
}

TEST(RaftObserver, IsForgottenAfterASilenceAndComesBack) {
  TestCluster c(3, 1);
  c.Elect(1);
  c.Advance(Duration::Seconds(1));
  c.Isolate(4);
  c.Advance(Duration::Seconds(6));
  EXPECT_EQ(c.core(1).GetStatus().peers.size(), 2u);
  c.Rejoin(4);
  c.Propose(1, "a");
  c.Advance(Duration::Seconds(1));
  EXPECT_EQ(c.core(4).commit_index(), c.core(1).commit_index());
}

TEST(RaftObserver, TooManyAreRefusedByName) {
  TestCluster c(1, 3, [](Config& config) { config.max_observers = 2; });
  c.Elect(1);
  c.Advance(Duration::Seconds(1));
  EXPECT_EQ(c.core(1).GetStatus().peers.size(), 2u);
  ASSERT_FALSE(c.rejections(1).empty());
  EXPECT_EQ(c.rejections(1)[0].reason, RejectionReason::kTooManyObservers);
}

}  // namespace
}  // namespace conclave::raft
