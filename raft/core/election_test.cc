#include <gtest/gtest.h>

#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

constexpr Duration kMax = Duration::Milliseconds(1000);

int Leaders(TestCluster& c, int nodes) {
  int leaders = 0;
  for (int id = 1; id <= nodes; ++id) leaders += c.core(id).role() == Role::kLeader ? 1 : 0;
  return leaders;
}

TEST(RaftElection, AClusterElectsOneLeaderByItself) {
  TestCluster c(3);
  c.Advance(Duration::Seconds(5));
  EXPECT_EQ(Leaders(c, 3), 1);
  EXPECT_EQ(c.core(1).term(), c.core(2).term());
  EXPECT_EQ(c.core(1).leader(), c.core(2).leader());
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(2)) << "the leader's NOOP";
}

TEST(RaftElection, AQuorumOfOneElectsItselfOnceItsVoteIsDurable) {
  TestCluster c(1);
  c.HoldSync(1);
  c.TimeOut(1);
  EXPECT_EQ(c.core(1).role(), Role::kCandidate);
  c.Sync(1);
  c.Settle();
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  EXPECT_TRUE(c.core(1).leader_serves());
}

TEST(RaftElection, TheElectionWaitsForTheCandidatesOwnDisk) {
  TestCluster c(3);
  c.HoldSync(1);
  c.Isolate(3);
  c.TimeOut(1);
  c.Settle();
  EXPECT_EQ(c.core(1).role(), Role::kCandidate) << "pre-votes need no disk";
  EXPECT_EQ(c.core(2).term(), Term(1)) << "the new term leaves once it is durable";
  c.Sync(1);
  c.Settle();
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
}

TEST(RaftElection, AVoteLeavesOnceItIsDurable) {
  TestCluster c(3);
  c.Isolate(3);
  c.HoldSync(2);
  c.TimeOut(1);
  c.Settle();
  EXPECT_EQ(c.core(1).role(), Role::kCandidate);
  c.Sync(2);
  c.Settle();
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.disk(2).hard_state, (HardState{Term(2), c.key(1)}));
}

TEST(RaftElection, OneVoteATerm) {
  TestCluster c(3);
  c.Isolate(3);
  v1::RaftMessage ask = c.Message(3, 1, Term(5));
  ask.mutable_vote_request()->set_last_term(1);
  ask.mutable_vote_request()->set_last_index(1);
  c.Mend(1, 3);
  c.Receive(1, ask);
  EXPECT_TRUE(c.Inbox(3).at(0).vote_response().granted());
  v1::RaftMessage rival = c.Message(2, 1, Term(5));
  *rival.mutable_vote_request() = ask.vote_request();
  c.Receive(1, rival);
  EXPECT_FALSE(c.Inbox(2).at(0).vote_response().granted());
  c.Receive(1, ask);
  EXPECT_TRUE(c.Inbox(3).at(1).vote_response().granted()) << "the same one may ask again";
}

TEST(RaftElection, OnlyAnUpToDateLogIsElected) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(3);
  c.Propose(1, "a");
  c.Settle();
  c.Rejoin(3);
  c.TimeOut(3);
  c.Settle();
  EXPECT_EQ(c.core(3).role(), Role::kFollower);
  EXPECT_EQ(c.core(3).term(), Term(2)) << "and it raised no term";
  c.Crash(1);
  c.Elect(2);
}

TEST(RaftElection, LowerTermsAreRefusedWithOurs) {
  TestCluster c(3);
  c.Elect(1);
  v1::RaftMessage old = c.Message(2, 1, Term(1));
  old.mutable_append_request()->set_prev_index(1);
  old.mutable_append_request()->set_prev_term(1);
  c.Receive(1, old);
  ASSERT_EQ(c.Inbox(2).size(), 1u);
  EXPECT_EQ(c.Inbox(2)[0].term(), 2u);
  EXPECT_FALSE(c.Inbox(2)[0].append_response().accepted());
}

// --- Pre-vote ----------------------------------------------------------------------------------

TEST(RaftPreVote, WhoHeardFromALiveLeaderRefuses) {
  TestCluster c(3);
  c.Elect(1);
  c.Cut(1, 3);
  c.Advance(Duration::Seconds(10));
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(3).term(), Term(2)) << "cut one way, it never raises a term";
  EXPECT_GT(c.core(3).counters().campaigns, 5u);
  EXPECT_GT(c.core(2).counters().pre_votes_refused, 5u);
}

TEST(RaftPreVote, ALateGrantOfAnEarlierAttemptDoesNotCount) {
  TestCluster c(3);
  c.Isolate(1);
  c.TimeOut(1);
  c.TimeOut(1);
  v1::RaftMessage late = c.Message(2, 1, Term(1));
  late.mutable_pre_vote_response()->set_granted(true);
  late.mutable_pre_vote_response()->set_round(1);
  c.Receive(1, late);
  EXPECT_EQ(c.core(1).role(), Role::kProspective);
  late.mutable_pre_vote_response()->set_round(2);
  c.Receive(1, late);
  EXPECT_EQ(c.core(1).role(), Role::kCandidate);
}

TEST(RaftPreVote, ABrokenStreamFromTheLeaderStartsAnElectionWithinAHeartbeat) {
  TestCluster c(3);
  c.Elect(1);
  c.Advance(Duration::Milliseconds(300));
  c.Crash(1);
  c.core(2).PeerStreamReset(c.key(1), c.now());
  c.core(3).PeerStreamReset(c.key(1), c.now());
  c.Advance(Duration::Milliseconds(210));
  EXPECT_EQ(Leaders(c, 0) + (c.core(2).role() == Role::kLeader ? 1 : 0) +
                (c.core(3).role() == Role::kLeader ? 1 : 0),
            1);
}

TEST(RaftPreVote, ABrokenStreamAloneDeposesNobody) {
  TestCluster c(3);
  c.Elect(1);
  c.Advance(Duration::Milliseconds(150));
  c.core(2).PeerStreamReset(c.key(1), c.now());
  c.Advance(Duration::Seconds(3));
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(2).term(), Term(2));
  EXPECT_EQ(c.core(2).leader(), c.key(1));
}

// --- Resignation -------------------------------------------------------------------------------

TEST(RaftCheckQuorum, ALeaderWithoutAMajorityResigns) {
  TestCluster c(5);
  c.Elect(1);
  for (int id : {3, 4, 5}) c.Isolate(id);
  c.Advance(kMax - Duration::Milliseconds(1));
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  c.Advance(Duration::Milliseconds(200));
  EXPECT_NE(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(1).counters().quorum_resignations, 1u);
  EXPECT_EQ(c.core(1).term(), Term(2));
}

TEST(RaftCheckQuorum, AMinorityThatIsSilentIsNoReason) {
  TestCluster c(5);
  c.Elect(1);
  for (int id : {4, 5}) c.Isolate(id);
  c.Advance(Duration::Seconds(5));
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
}

TEST(RaftStalledSync, ALeaderWhoseWriteStallsResignsAndDoesNotStandAgain) {
  TestCluster c(3);
  c.Elect(1);
  c.HoldSync(1);
  c.Propose(1, "a");
  c.Advance(Duration::Milliseconds(900));
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(3)) << "a majority has it without the leader";
  c.Advance(Duration::Seconds(3));
  EXPECT_NE(c.core(1).role(), Role::kLeader);
  EXPECT_EQ(c.core(1).counters().stall_resignations, 1u);
  EXPECT_EQ(c.core(2).role() == Role::kLeader, c.core(3).role() != Role::kLeader);
}

TEST(RaftStalledSync, AStalledFollowerStaysInTouchButAcknowledgesNothing) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(3);
  c.HoldSync(2);
  c.Propose(1, "a");
  c.Advance(Duration::Seconds(3));
  EXPECT_EQ(c.core(1).role(), Role::kLeader) << "heartbeats are answered meanwhile";
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(2));
  c.Sync(2);
  c.Settle();
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(3));
}

}  // namespace
}  // namespace conclave::raft
