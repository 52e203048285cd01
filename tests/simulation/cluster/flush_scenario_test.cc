// Eligible replicas, and what may be lost where it is acknowledged before it is synced (KIP-966).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

constexpr int kRecords = 100;

class FlushScenario : public Scenario {
 protected:
  void MakeTopic(const std::map<std::string, std::string>& configs) {
    ASSERT_EQ(cluster_.CreateTopic("t", 1, 3, configs), "");
  }
  void SendMany(int node) {
    for (int i = 0; i < kRecords; ++i) SendAndWait(node, "v" + std::to_string(i));
    ASSERT_EQ(acknowledged_.size(), static_cast<size_t>(kRecords));
  }
  broker::Replica& ReplicaOn(int node) {
    return *plane().BrokerAt(node).replicas().Find(cluster_.IdOf("t", 0));
  }
  size_t IsrSize() {
    const Partition* state = cluster_.StateOf("t", 0);
    return state == nullptr ? 0 : state->isr.size();
  }
  // The ISR shrinks to the leader, while the last to leave it stands still; the one before that has
  // lost its power. Returns the one that stands still.
  int LeaveAlone(int leader) {
    const std::vector<int> others = Others(leader);
    plane().Crash(others[0]);
    EXPECT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] { return IsrSize() == 2; }));
    plane().Pause(others[1]);
    EXPECT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] { return IsrSize() == 1; }));
    EXPECT_EQ(cluster_.StateOf("t", 0)->elr, std::vector<BrokerId>{BrokerId(others[1])});
    return others[1];
  }
};

TEST_P(FlushScenario, R19UnderFsyncTheLastReplicaStandingLeadsAgainAndHasEverything) {
  MakeTopic({});
  const int last = cluster_.LeaderOf("t", 0);
  SendMany(last);
  const int paused = LeaveAlone(last);
  plane().Crash(last);
  cluster_.RunFor(Duration::Seconds(8));
  plane().Start(last);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == last; }));
  EXPECT_EQ(cluster_.ReadAll("t", 0).size(), static_cast<size_t>(kRecords));
  plane().Resume(paused);
  for (const int other : Others(last)) {
    if (other != paused) plane().Start(other);
  }
  ExpectWholeAndNothingLost();
}

TEST_P(FlushScenario, R19UnderReplicatedACompleteReplicaLeadsInsteadOfOneThatStoppedUncleanly) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "3600000"}});
  const int last = cluster_.LeaderOf("t", 0);
  SendMany(last);
  const int complete = LeaveAlone(last);
  plane().Crash(last);
  cluster_.RunFor(Duration::Seconds(8));
  plane().Start(last);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return plane().IsServing(last); }));
  cluster_.RunFor(Duration::Seconds(5));
  const Partition* state = cluster_.StateOf("t", 0);
  EXPECT_EQ(state->leader, kNoBroker) << "it may have lost what it acknowledged";
  EXPECT_EQ(state->elr, std::vector<BrokerId>{BrokerId(complete)});
  EXPECT_EQ(state->stopped_uncleanly, std::vector<BrokerId>{BrokerId(last)});
  EXPECT_NE(state->note.find("stopped uncleanly"), std::string::npos) << state->note;
  plane().Resume(complete);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == complete; }));
  EXPECT_EQ(cluster_.ReadAll("t", 0).size(), static_cast<size_t>(kRecords));
  for (const int other : Others(last)) {
    if (other != complete) plane().Start(other);
  }
  ExpectWholeAndNothingLost();
}

TEST_P(FlushScenario, UnderReplicatedAnAcknowledgementWaitsForNoSync) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "3600000"}});
  const int leader = cluster_.LeaderOf("t", 0);
  SendMany(leader);
  EXPECT_EQ(cluster_.StateOf("t", 0)->flush_policy, v1::FLUSH_POLICY_REPLICATED);
  EXPECT_GE(ReplicaOn(leader).high_watermark(), Offset(kRecords));
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    EXPECT_LT(ReplicaOn(node).log().durable_offset(), Offset(kRecords)) << node;
  }
  // One loses its power: the others have everything.
  plane().Crash(leader);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) >= 0; }));
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

TEST_P(FlushScenario, UnderReplicatedRecordsAreSyncedInTime) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "2000"}});
  SendMany(cluster_.LeaderOf("t", 0));
  cluster_.RunFor(Duration::Seconds(5));
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    EXPECT_EQ(ReplicaOn(node).log().durable_offset(), Offset(kRecords)) << node;
  }
  ExpectWholeAndNothingLost();
}

TEST_P(FlushScenario, BackToFsyncCountsOnceEverythingIsSynced) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "3600000"}});
  SendMany(cluster_.LeaderOf("t", 0));
  ASSERT_EQ(cluster_.Alter("t", {{"flush.policy", "fsync"}}), "");
  ASSERT_TRUE(cluster_.RunUntil(
      kTimeout, [&] { return cluster_.StateOf("t", 0)->flush_policy == v1::FLUSH_POLICY_FSYNC; }));
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    EXPECT_EQ(ReplicaOn(node).log().durable_offset(), Offset(kRecords)) << node;
  }
  for (int node = 0; node < plane().nodes(); ++node) plane().Crash(node);
  for (int node = 0; node < plane().nodes(); ++node) plane().Start(node);
  ExpectWholeAndNothingLost();
}

TEST_P(FlushScenario, ToReplicatedAndBackUnderLoadLosesNothing) {
  MakeTopic({{"flush.ms", "1000"}});
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) {
      Send(cluster_.LeaderOf("t", 0), std::to_string(round) + "/" + std::to_string(i));
    }
    ASSERT_EQ(cluster_.Alter("t", {{"flush.policy", round % 2 == 0 ? "replicated" : "fsync"}}), "");
  }
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return open_ == 0 && cluster_.StateOf("t", 0)->flush_policy == v1::FLUSH_POLICY_FSYNC;
  }));
  EXPECT_EQ(acknowledged_.size(), 80u);
  for (int node = kFirstBroker; node < plane().nodes(); ++node) plane().Crash(node);
  for (int node = kFirstBroker; node < plane().nodes(); ++node) plane().Start(node);
  ExpectWholeAndNothingLost();
}

// More than the policy survives: what is left of the records is what the furthest replica has, and
// nobody hears that all is well.
TEST_P(FlushScenario, WhenAllLosePowerUnderReplicatedTheFurthestLeadsOnceAllAreBack) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "3600000"}});
  const int leader = cluster_.LeaderOf("t", 0);
  SendMany(leader);
  for (int node = kFirstBroker; node < plane().nodes(); ++node) plane().Crash(node);
  cluster_.ExcuseLoss("t", 0);
  // The sessions of all of them end.
  cluster_.RunFor(Duration::Seconds(20));
  plane().Start(kFirstBroker);
  plane().Start(kFirstBroker + 1);
  cluster_.RunFor(Duration::Seconds(10));
  const Partition before = *cluster_.StateOf("t", 0);
  const bool last_is_waited_for = before.leader == kNoBroker;
  plane().Start(kFirstBroker + 2);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [this] { return cluster_.IsWhole("t"); }));
  const Partition* after = cluster_.StateOf("t", 0);
  if (last_is_waited_for) {
    EXPECT_NE(before.note.find("stopped uncleanly"), std::string::npos) << before.note;
  }
  EXPECT_NE(after->note.find("possible loss"), std::string::npos) << after->note;
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
}

// Processes that are killed leave what they wrote with the operating system: nothing is lost.
TEST_P(FlushScenario, WhenAllAreKilledUnderReplicatedNothingIsLost) {
  MakeTopic({{"flush.policy", "replicated"}, {"flush.ms", "3600000"}});
  SendMany(cluster_.LeaderOf("t", 0));
  for (int node = 0; node < plane().nodes(); ++node) plane().Kill(node);
  for (int node = 0; node < plane().nodes(); ++node) {
    cluster_.RunFor(Duration::Milliseconds(cluster_.random().Between(0, 3'000)));
    plane().Start(node);
  }
  ExpectWholeAndNothingLost();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FlushScenario, testing::Range(1, 11));

}  // namespace
}  // namespace conclave::cluster_sim
