// The quorum's cases of what the cluster must survive, as far as the core alone decides them.
#include <gtest/gtest.h>

#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

constexpr Duration kElectionTimeout = Duration::Milliseconds(1000);

v1::RaftMessage AskForVote(const TestCluster& c, int from, int to, Term term) {
  v1::RaftMessage ask = c.Message(from, to, term);
  ask.mutable_vote_request()->set_last_term(1);
  ask.mutable_vote_request()->set_last_index(1);
  return ask;
}

TEST(RaftFaults, R1_VoteIsRememberedOverAPowerLossRightAfterTheReply) {
  TestCluster c(3);
  c.Receive(3, AskForVote(c, 2, 3, Term(2)));
  ASSERT_TRUE(c.Inbox(2).at(0).vote_response().granted());
  c.Crash(3);
  c.Restart(3);
  c.Receive(3, AskForVote(c, 1, 3, Term(2)));
  EXPECT_FALSE(c.Inbox(1).at(0).vote_response().granted());
}

TEST(RaftFaults, R1_BeforeTermAndVoteAreDurableTogetherNoReplyLeaves) {
  TestCluster c(3);
  c.HoldSync(3);
  c.Receive(3, AskForVote(c, 2, 3, Term(2)));
  EXPECT_TRUE(c.Inbox(2).empty());
  c.Crash(3);
  c.Restart(3);
  EXPECT_EQ(c.disk(3).hard_state, (HardState{Term(1), std::nullopt})) << "neither, or both";
  c.Receive(3, AskForVote(c, 1, 3, Term(2)));
  EXPECT_TRUE(c.Inbox(1).at(0).vote_response().granted()) << "the only candidate it ever told so";
  c.Receive(3, AskForVote(c, 2, 3, Term(2)));
  EXPECT_FALSE(c.Inbox(2).at(0).vote_response().granted());
}

// Figure 8 of the paper, (a) to (d): S1 has an entry of term 2 on a majority in term 4, and it is
// still not committed, for S5 may replace it.
TEST(RaftFaults, R2_OldTermEntryIsNotCommittedByCounting) {
  TestCluster c(5, 0, [](Config& config) { config.max_append_bytes = 1; });
  c.Elect(1);  // (a) term 2
  c.Settle();
  for (int id : {3, 4, 5}) c.Isolate(id);
  c.Propose(1, "old");
  c.Settle();  // on S1 and S2
  c.Crash(1);
  for (int id : {3, 4, 5}) c.Rejoin(id);
  for (int id : {1, 2}) c.Isolate(id);
  c.TimeOut(5);  // (b) term 3
  c.OnlyIf([](const v1::RaftMessage& m) { return m.append_request().entries_size() == 0; });
  c.Settle();
  ASSERT_EQ(c.core(5).role(), Role::kLeader);
  c.Crash(5);  // with an entry of term 3 that nobody else has
  c.Restart(1);
  for (int id : {1, 2}) c.Rejoin(id);
  // (c) term 4: the old entry reaches S3, the NOOP of term 4 nobody.
  c.OnlyIf([](const v1::RaftMessage& m) {
    for (const auto& entry : m.append_request().entries()) {
      if (entry.term() >= 4) return false;
    }
    return true;
  });
  c.TimeOut(1);
  c.Settle();  // learns of term 3
  c.Elect(1);
  c.Advance(Duration::Milliseconds(300));
  EXPECT_EQ(c.Terms(3), "1 2 2");
  EXPECT_EQ(c.core(1).term(), Term(4));
  // The entry at 3 is on S1, S2, S3 and S4, and since its restart S1 knows of no commit.
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(0));
  EXPECT_FALSE(c.core(1).leader_serves());
  // (e) The NOOP gets through, and with it the old entry.
  c.OnlyIf(nullptr);
  c.Advance(Duration::Milliseconds(300));
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(4));
  EXPECT_TRUE(c.core(1).leader_serves());
}

TEST(RaftFaults, R3_AWipedControllerElectsNobody) {
  TestCluster c(3);
  c.Isolate(1);
  c.Elect(2);
  const LogPosition x = c.Propose(2, "x");
  c.Settle();
  ASSERT_EQ(c.core(3).commit_index(), x.index);
  c.Wipe(3);
  c.Restart(3);
  c.Crash(2);
  c.Rejoin(1);
  c.Advance(kElectionTimeout * 20);
  EXPECT_NE(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(3).role(), Role::kObserver);
  EXPECT_EQ(c.core(1).term(), Term(1));
  EXPECT_FALSE(c.rejections(3).empty()) << "asked under its old directory id, it refuses by name";
  EXPECT_EQ(c.rejections(3)[0].reason, RejectionReason::kWrongDirectory);

  c.Restart(2);
  c.Advance(kElectionTimeout * 5);
  EXPECT_EQ(c.core(2).role(), Role::kLeader) << "X is on nobody else's disk";
  EXPECT_EQ(*c.committed(1).at(x.index.value() - 1).data, "x");
}

TEST(RaftFaults, R3_AVoteOfAWipedControllerIsNotCounted) {
  TestCluster c(3);
  c.Isolate(2);
  c.Wipe(3);
  c.TimeOut(1);
  v1::RaftMessage vote = c.Message(3, 1, Term(1));  // from the new directory
  vote.mutable_pre_vote_response()->set_granted(true);
  vote.mutable_pre_vote_response()->set_round(1);
  c.Receive(1, vote);
  EXPECT_EQ(c.core(1).role(), Role::kProspective);
}

TEST(RaftFaults, R4_ARejoiningNodeKeepsLeaderAndTerm) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(3);
  c.Advance(kElectionTimeout * 20);
  EXPECT_EQ(c.core(3).term(), Term(2));
  c.Rejoin(3);
  c.Advance(kElectionTimeout * 5);
  for (int id = 1; id <= 3; ++id) {
    EXPECT_EQ(c.core(id).leader(), c.key(1)) << "node " << id;
    EXPECT_EQ(c.core(id).term(), Term(2)) << "node " << id;
  }
}

TEST(RaftFaults, R5_ADeafLeaderIsReplaced) {
  TestCluster c(3);
  c.Elect(1);
  c.Cut(2, 1);
  c.Cut(3, 1);
  c.Advance(kElectionTimeout * 3);
  EXPECT_NE(c.core(1).role(), Role::kLeader);
  const int leader = c.core(2).role() == Role::kLeader ? 2 : 3;
  c.Propose(leader, "t");
  c.Settle();
  EXPECT_EQ(c.core(leader).commit_index(), c.core(leader).log().last_index());
}

TEST(RaftFaults, R6_AReadOfADeposedLeaderIsNeverConfirmed) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(1);  // as good as stopped
  c.Elect(2);
  c.Propose(2, "x");
  c.Settle();
  ASSERT_TRUE(c.core(1).ReadIndex(ReadContext(1), c.now()).ok()) << "it does not know yet";
  c.Rejoin(1);
  c.Advance(Duration::Milliseconds(300));
  EXPECT_TRUE(c.reads(1).empty());
  ASSERT_EQ(c.failed_reads(1).size(), 1u);
}

TEST(RaftFaults, R7_AProposalIsKnownCommittedByIndexAndTermAlone) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(1);
  const LogPosition lost = c.Propose(1, "lost");
  c.Settle();
  c.Elect(2);
  const LogPosition kept = c.Propose(2, "kept");
  c.Settle();
  EXPECT_EQ(c.core(1).FateOf(lost), Fate::kUnknown);
  c.Rejoin(1);
  c.Advance(Duration::Milliseconds(300));
  ASSERT_EQ(c.committed(1).at(lost.index.value() - 1).index, lost.index);
  EXPECT_NE(c.committed(1).at(lost.index.value() - 1).term, lost.term) << "another's entry";
  EXPECT_EQ(c.core(1).FateOf(lost), Fate::kLost);
  EXPECT_EQ(c.core(1).FateOf(kept), Fate::kCommitted);
  EXPECT_EQ(c.core(1).counters().truncations, 1u);
}

TEST(RaftFaults, R20c_TwoWipedControllersFoundNoSecondHistory) {
  TestCluster c(3);
  c.Elect(1);
  const LogPosition x = c.Propose(1, "x");
  c.Settle();
  c.Crash(1);
  for (int id : {2, 3}) {
    c.Wipe(id);
    c.Restart(id);
  }
  c.Advance(kElectionTimeout * 20);
  for (int id : {2, 3}) {
    EXPECT_EQ(c.core(id).role(), Role::kObserver);
    EXPECT_EQ(c.core(id).term(), Term(0));
    EXPECT_EQ(c.core(id).log().last_index(), LogIndex(0));
  }
  c.Restart(1);
  c.Advance(kElectionTimeout * 20);
  EXPECT_NE(c.core(1).role(), Role::kLeader) << "one of three is no majority";
  EXPECT_EQ(c.disk(1).entries.back().index, x.index) << "and the old history is still there";
}

}  // namespace
}  // namespace conclave::raft
