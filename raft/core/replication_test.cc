#include <gtest/gtest.h>

#include <algorithm>

#include "raft/core/test_cluster.h"

namespace conclave::raft {
namespace {

TEST(RaftReplication, CommitsInOrderEverywhere) {
  TestCluster c(3);
  c.Elect(1);
  c.Propose(1, "a");
  const LogPosition b = c.Propose(1, "b");
  EXPECT_EQ(b, (LogPosition{Term(2), LogIndex(4)}));
  c.Settle();
  for (int id = 1; id <= 3; ++id) {
    ASSERT_EQ(c.committed(id).size(), 4u) << "node " << id;
    EXPECT_EQ(*c.committed(id)[2].data, "a");
    EXPECT_EQ(*c.committed(id)[3].data, "b");
  }
}

TEST(RaftReplication, TheLeaderCountsItselfOnceItHasSynced) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(3);
  c.HoldSync(1);
  c.Propose(1, "a");
  c.Settle();
  EXPECT_EQ(c.core(2).log().durable_index(), LogIndex(3)) << "appends leave before its own sync";
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(2));
  c.Sync(1);
  c.Settle();
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(3));
}

TEST(RaftReplication, AFollowerAcknowledgesOnceItHasSynced) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(3);
  c.HoldSync(2);
  c.Propose(1, "a");
  c.Settle();
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(2));
  c.Crash(2);
  c.Restart(2);
  c.Advance(Duration::Milliseconds(200));
  EXPECT_EQ(c.core(1).commit_index(), LogIndex(3)) << "sent again after it was lost";
}

// Figure 7 of the paper: a new leader of term 8 and six followers whose logs differ from its own in
// every way they can. Columns are log indexes, numbers are terms.
TEST(RaftReplication, Figure7) {
  const std::vector<std::vector<uint64_t>> logs = {
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6},        // the leader to be
      {1, 1, 1, 4, 4, 5, 5, 6, 6},           // a: lacks the last
      {1, 1, 1, 4},                          // b: lacks many
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},     // c: one too many
      {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},  // d: led term 7
      {1, 1, 1, 4, 4, 4, 4},                 // e: lacks and has too many
      {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3},     // f: led terms 2 and 3
  };
  TestCluster c(7);
  for (int id = 1; id <= 7; ++id) {
    RecoveredState state = c.disk(id);  // index 1 is the VOTERS entry, as in every log of ours
    const auto& terms = logs[static_cast<size_t>(id - 1)];
    for (size_t i = 1; i < terms.size(); ++i) state.entries.push_back(TestEntry(i + 1, terms[i]));
    state.hard_state = {Term(7), std::nullopt};
    c.Crash(id);
    c.Format(id, state);
    c.Restart(id);
  }
  c.Elect(1);
  EXPECT_EQ(c.core(1).term(), Term(8));
  c.Advance(Duration::Milliseconds(500));
  for (int id = 1; id <= 7; ++id) {
    EXPECT_EQ(c.Terms(id), "1 1 1 4 4 5 5 6 6 6 8") << "node " << id;
    EXPECT_EQ(c.core(id).commit_index(), LogIndex(11)) << "node " << id;
  }
}

TEST(RaftReplication, AConflictIsFoundATermAtATime) {
  TestCluster c(3);
  RecoveredState behind = c.disk(2);
  RecoveredState ahead = c.disk(1);
  for (uint64_t i = 2; i <= 500; ++i) behind.entries.push_back(TestEntry(i, 2));
  for (uint64_t i = 2; i <= 500; ++i) ahead.entries.push_back(TestEntry(i, 3));
  behind.hard_state = ahead.hard_state = {Term(3), std::nullopt};
  for (int id : {1, 2}) {
    c.Crash(id);
    c.Format(id, id == 1 ? ahead : behind);
    c.Restart(id);
  }
  c.Isolate(3);
  c.Elect(1);
  EXPECT_EQ(c.core(2).log().last_index(), LogIndex(501));
  EXPECT_EQ(c.core(2).commit_index(), LogIndex(501));
  EXPECT_LT(c.core(1).counters().appends_sent, 20u);
}

TEST(RaftReplication, AppendsAreBoundedByBytesButOneEntryAlwaysGoes) {
  TestCluster c(3, 0, [](Config& config) { config.max_append_bytes = 1000; });
  c.Elect(1);
  size_t largest = 0, entries = 0;
  c.OnlyIf([&](const v1::RaftMessage& m) {
    if (m.append_request().entries_size() > 1) largest = std::max(largest, m.ByteSizeLong());
    entries = std::max<size_t>(entries, m.append_request().entries_size());
    return true;
  });
  for (int i = 0; i < 100; ++i) c.Propose(1, std::string(100, 'x'));
  c.Propose(1, std::string(1 << 20, 'y'));
  c.Settle();
  EXPECT_EQ(c.core(3).commit_index(), LogIndex(103));
  EXPECT_GT(entries, 1u);
  EXPECT_LT(largest, 1300u);
}

TEST(RaftReplication, TheWindowOfAppendsInFlightIsBounded) {
  TestCluster c(2, 0, [](Config& config) {
    config.max_append_bytes = 1;
    config.max_in_flight_appends = 3;
  });
  c.Elect(1);
  c.HoldSync(2);
  for (int i = 0; i < 50; ++i) c.Propose(1, "x");
  c.Settle();
  EXPECT_EQ(c.core(2).log().last_index(), LogIndex(2 + 3));
  c.Sync(2);
  c.Settle();
  EXPECT_EQ(c.core(2).commit_index(), LogIndex(52));
}

TEST(RaftReplication, WhatIsLostIsSentAgainAfterAHeartbeat) {
  TestCluster c(3);
  c.Elect(1);
  c.Isolate(2);
  for (int i = 0; i < 5; ++i) {
    c.Propose(1, "x");
    c.Settle();
  }
  c.Rejoin(2);
  c.Advance(Config().heartbeat_interval);
  EXPECT_EQ(c.core(2).commit_index(), LogIndex(7));
}

TEST(RaftReplication, ProposalsAreRefusedByName) {
  TestCluster c(3, 0, [](Config& config) {
    config.max_proposal_bytes = 100;
    config.max_uncommitted_bytes = 1000;
  });
  EXPECT_EQ(c.core(1).Propose("x", c.now()).status().code(), absl::StatusCode::kFailedPrecondition);
  c.Elect(1);
  EXPECT_EQ(c.core(1).Propose(std::string(101, 'x'), c.now()).status().code(),
            absl::StatusCode::kInvalidArgument);
  c.Isolate(1);
  absl::Status status;
  int accepted = 0;
  while (status.ok()) {
    status = c.core(1).Propose(std::string(100, 'x'), c.now()).status();
    accepted += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(accepted, 7);
  c.Rejoin(1);
  c.Advance(Duration::Milliseconds(200));
  EXPECT_TRUE(c.core(1).Propose("x", c.now()).ok()) << "room again once they are committed";
}

TEST(RaftReplication, AnAppendThatContradictsCommittedEntriesIsRefusedAndChangesNothing) {
  TestCluster c(3);
  c.Elect(1);
  v1::RaftMessage forged = c.Message(3, 2, Term(9));
  v1::RaftEntry* entry = forged.mutable_append_request()->add_entries();
  entry->set_index(1);
  entry->set_term(9);
  entry->set_kind(v1::RAFT_ENTRY_KIND_DATA);
  c.Receive(2, forged);
  ASSERT_EQ(c.rejections(2).size(), 1u);
  EXPECT_EQ(c.rejections(2)[0].reason, RejectionReason::kContradictsCommitted);
  EXPECT_EQ(c.core(2).term(), Term(2));
  EXPECT_EQ(c.core(2).log().last_index(), LogIndex(2));
}

TEST(RaftReplication, ASecondLeaderInATermIsRefusedByName) {
  TestCluster c(3);
  c.Elect(1);
  for (int id : {1, 2}) {
    v1::RaftMessage forged = c.Message(3, id, Term(2));
    forged.mutable_append_request();
    c.Receive(id, forged);
    ASSERT_EQ(c.rejections(id).size(), 1u);
    EXPECT_EQ(c.rejections(id)[0].reason, RejectionReason::kSecondLeader);
  }
  EXPECT_EQ(c.core(1).role(), Role::kLeader);
}

}  // namespace
}  // namespace conclave::raft
