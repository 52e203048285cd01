#include "controller/core/isr_changes.h"

#include <gtest/gtest.h>

#include "common/error/error.h"
#include "controller/core/core_harness.h"
#include "controller/core/producer_ids.h"

namespace conclave::controller {
namespace {

class IsrChangesTest : public ::testing::Test, protected CoreHarness {
 protected:
  void SetUp() override {
    for (int broker : {1, 2, 3}) Start(broker);
    topic_ = Create("t", {{1, 2, 3}, {1, 2, 3}});
  }

  v1::AlterPartitionRequest Proposal(const std::vector<int>& isr, int index = 0) {
    v1::AlterPartitionRequest request;
    request.set_broker_id(1);
    request.set_broker_epoch(EpochOf(1).value());
    v1::PartitionAlteration& partition = *request.add_partitions();
    partition.set_topic_id(topic_.ToBytes());
    partition.set_partition(index);
    partition.set_leader_epoch(P(topic_, index).leader_epoch.value());
    partition.set_partition_epoch(P(topic_, index).partition_epoch.value());
    for (int broker : isr) {
      v1::IsrMember& member = *partition.add_new_isr();
      member.set_broker_id(broker);
      member.set_broker_epoch(
          core.speculative().FindBroker(BrokerId(broker)) == nullptr ? 1 : EpochOf(broker).value());
    }
    return request;
  }

  v1::PartitionAlterationResult Alter(const v1::AlterPartitionRequest& request) {
    auto result = Do(core.AlterPartition(request, now)).partitions(0);
    Commit();
    return result;
  }
  v1::ErrorCode CodeOf(const v1::AlterPartitionRequest& request) {
    const size_t before = log.size();
    const auto code = Alter(request).error().code();
    if (code != v1::NONE) {
      EXPECT_EQ(log.size(), before);
    }
    return code;
  }

  TopicId topic_;
};

TEST_F(IsrChangesTest, TheLeaderShrinksAndExpands) {
  auto result = Alter(Proposal({1, 3}));
  EXPECT_EQ(result.error().code(), v1::NONE);
  EXPECT_EQ(result.partition_epoch(), 1);
  EXPECT_EQ(result.leader_epoch(), 0);
  EXPECT_EQ(result.leader(), 1);
  EXPECT_EQ(Show(topic_), "1/0 [1 3]");
  result = Alter(Proposal({3, 2, 1}));
  EXPECT_EQ(result.partition_epoch(), 2);
  EXPECT_EQ(Show(topic_), "1/0 [1 2 3]") << "in assignment order";
}

TEST_F(IsrChangesTest, TheIsrAsItIsRaisesTheEpochSoThatNothingOlderCanBeApplied) {
  const auto late = Proposal({1, 2});
  const auto result = Alter(Proposal({1, 2, 3}));
  EXPECT_EQ(result.error().code(), v1::NONE);
  EXPECT_EQ(result.partition_epoch(), 1);
  EXPECT_EQ(CodeOf(late), v1::INVALID_UPDATE_VERSION);
}

TEST_F(IsrChangesTest, EpochsAreChecked) {
  Alter(Proposal({1, 2}));
  auto request = Proposal({1});
  request.mutable_partitions(0)->set_partition_epoch(0);
  EXPECT_EQ(CodeOf(request), v1::INVALID_UPDATE_VERSION);
  request = Proposal({1});
  request.mutable_partitions(0)->set_leader_epoch(1);
  EXPECT_EQ(CodeOf(request), v1::UNKNOWN_LEADER_EPOCH);
  request.mutable_partitions(0)->set_leader_epoch(-1);
  EXPECT_EQ(CodeOf(request), v1::FENCED_LEADER_EPOCH);
  request = Proposal({1});
  request.set_broker_epoch(1);
  EXPECT_EQ(ErrorCodeOf(core.AlterPartition(request, now).status()), v1::STALE_BROKER_EPOCH);
  request.set_broker_id(9);
  EXPECT_EQ(ErrorCodeOf(core.AlterPartition(request, now).status()), v1::BROKER_ID_NOT_REGISTERED);
}

TEST_F(IsrChangesTest, OnlyTheLeaderMayAndIsNamed) {
  auto request = Proposal({1, 2});
  request.set_broker_id(2);
  request.set_broker_epoch(EpochOf(2).value());
  const auto result = Alter(request);
  EXPECT_EQ(result.error().code(), v1::NOT_LEADER_OR_FOLLOWER);
  EXPECT_EQ(result.error().hint().node_id(), 1);
  EXPECT_EQ(result.error().hint().endpoint(), "host1:7400");
}

TEST_F(IsrChangesTest, TheProposalMustMakeSense) {
  EXPECT_EQ(CodeOf(Proposal({})), v1::INVALID_REQUEST);
  EXPECT_EQ(CodeOf(Proposal({2, 3})), v1::INVALID_REQUEST);
  EXPECT_EQ(CodeOf(Proposal({1, 1})), v1::INVALID_REQUEST);
  EXPECT_EQ(CodeOf(Proposal({1, 8})), v1::INVALID_REQUEST);
  auto request = Proposal({1});
  request.mutable_partitions(0)->set_partition(7);
  EXPECT_EQ(CodeOf(request), v1::UNKNOWN_TOPIC_OR_PARTITION);
  request.mutable_partitions(0)->set_topic_id(metadata_testing::TopicNumber(9).ToBytes());
  EXPECT_EQ(CodeOf(request), v1::UNKNOWN_TOPIC_ID);
}

TEST_F(IsrChangesTest, ALeaderHandsOverToOneThatMayLead) {
  const auto hand_over = [this] {
    auto request = Proposal({});
    request.mutable_partitions(0)->set_hand_over(true);
    return request;
  };
  Alter(Proposal({1, 2}));
  Alter(Proposal({1}));
  ASSERT_EQ(P(topic_).elr, std::vector<BrokerId>{BrokerId(2)});
  const auto late = hand_over();
  const auto result = Alter(hand_over());
  EXPECT_EQ(result.error().code(), v1::NONE) << result.error().message();
  EXPECT_EQ(result.leader(), 2);
  EXPECT_EQ(Show(topic_), "2/1 [2]");
  EXPECT_EQ(P(topic_).elr, std::vector<BrokerId>{BrokerId(1)}) << "it has all that was committed";
  EXPECT_EQ(CodeOf(late), v1::FENCED_LEADER_EPOCH);
}

TEST_F(IsrChangesTest, NobodyIsHandedOverToWhoMayNotLead) {
  Alter(Proposal({1, 2}));
  Alter(Proposal({1}));
  Break(2);
  Wait(200);
  Tick();
  auto request = Proposal({});
  request.mutable_partitions(0)->set_hand_over(true);
  EXPECT_EQ(CodeOf(request), v1::ELIGIBLE_LEADERS_NOT_AVAILABLE);
  EXPECT_EQ(Show(topic_), "1/0 [1]") << "3 left while there was the minimum, and may lack records";
}

TEST_F(IsrChangesTest, R17AnOldIncarnationDoesNotJoin) {
  Alter(Proposal({1, 2}));
  // The leader saw 3 catch up; then 3 was started again, and the proposal comes late.
  const auto late = Proposal({1, 2, 3});
  Break(3);
  Start(3, 2);
  EXPECT_EQ(CodeOf(late), v1::INELIGIBLE_REPLICA);
  EXPECT_EQ(CodeOf(Proposal({1, 2, 3})), v1::NONE);
}

TEST_F(IsrChangesTest, R37ARecreatedTopicIsAnotherTopic) {
  const auto late = Proposal({1, 2});
  v1::DeleteTopicsRequest request;
  request.add_names("t");
  Do(core.DeleteTopics(request, Requester::kUser, now));
  Create("t", {{1, 2, 3}, {1, 2, 3}});
  EXPECT_EQ(CodeOf(late), v1::UNKNOWN_TOPIC_ID);
}

TEST_F(IsrChangesTest, AFencedBrokerDoesNotJoin) {
  Break(3);
  Wait(200);
  Tick();
  EXPECT_EQ(Show(topic_), "1/0 [1 2]");
  EXPECT_EQ(CodeOf(Proposal({1, 2, 3})), v1::INELIGIBLE_REPLICA);
}

TEST_F(IsrChangesTest, AStoppingBrokerDoesNotJoinButMayStay) {
  auto heartbeat = HeartbeatOf(3);
  heartbeat.set_wants_shutdown(true);
  Beat(heartbeat);
  EXPECT_EQ(Show(topic_), "1/0 [1 2]");
  EXPECT_EQ(CodeOf(Proposal({1, 2, 3})), v1::INELIGIBLE_REPLICA);
  heartbeat = HeartbeatOf(2);
  heartbeat.set_wants_shutdown(true);
  Beat(heartbeat);
  EXPECT_EQ(Show(topic_), "1/0 [1 2]") << "the minimum is 2";
  EXPECT_EQ(CodeOf(Proposal({1, 2})), v1::NONE);
}

TEST_F(IsrChangesTest, EachPartitionIsAnsweredByItself) {
  auto request = Proposal({1, 2}, 0);
  *request.add_partitions() = Proposal({2}, 1).partitions(0);
  *request.add_partitions() = Proposal({1}, 0).partitions(0);
  *request.add_partitions() = Proposal({1, 3}, 1).partitions(0);
  const auto response = Do(core.AlterPartition(request, now));
  Commit();
  ASSERT_EQ(response.partitions_size(), 4);
  EXPECT_EQ(response.partitions(0).error().code(), v1::NONE);
  EXPECT_EQ(response.partitions(1).error().code(), v1::INVALID_REQUEST);
  EXPECT_EQ(response.partitions(2).error().code(), v1::INVALID_REQUEST) << "twice";
  EXPECT_EQ(response.partitions(3).error().code(), v1::NONE);
  EXPECT_EQ(Show(topic_, 0), "1/0 [1 2]");
  EXPECT_EQ(Show(topic_, 1), "1/0 [1 3]");
}

TEST_F(IsrChangesTest, WhoIsDroppedUnderTheMinimumIsEligibleUntilTheIsrHasReachedIt) {
  Alter(Proposal({1, 2}));
  EXPECT_TRUE(P(topic_).elr.empty());
  Alter(Proposal({1}));
  EXPECT_EQ(P(topic_).elr, std::vector<BrokerId>{BrokerId(2)});
  Alter(Proposal({1, 3}));
  EXPECT_TRUE(P(topic_).elr.empty());
}

TEST_F(IsrChangesTest, BackToFsyncIsTakenFromTheLeaderOnlyWhereTheTopicSaysSo) {
  v1::AlterConfigsRequest alter;
  alter.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  alter.set_name("t");
  (*alter.mutable_set())["flush.policy"] = "replicated";
  Do(core.AlterConfigs(alter, now));
  Commit();
  EXPECT_EQ(P(topic_, 0).flush_policy, v1::FLUSH_POLICY_REPLICATED);
  EXPECT_EQ(P(topic_, 1).flush_policy, v1::FLUSH_POLICY_REPLICATED);
  auto synced = Proposal({1, 2, 3});
  synced.mutable_partitions(0)->set_synced(true);
  Alter(synced);
  EXPECT_EQ(P(topic_).flush_policy, v1::FLUSH_POLICY_REPLICATED);
  (*alter.mutable_set())["flush.policy"] = "fsync";
  Do(core.AlterConfigs(alter, now));
  Commit();
  EXPECT_EQ(P(topic_).flush_policy, v1::FLUSH_POLICY_REPLICATED) << "not before it is synced";
  synced = Proposal({1, 2, 3});
  synced.mutable_partitions(0)->set_synced(true);
  Alter(synced);
  EXPECT_EQ(P(topic_).flush_policy, v1::FLUSH_POLICY_FSYNC);
}

TEST_F(IsrChangesTest, AnotherMinimumForgetsWhoWasEligible) {
  Alter(Proposal({1, 2}));
  Alter(Proposal({1}));
  ASSERT_EQ(P(topic_).elr.size(), 1u);
  v1::AlterConfigsRequest alter;
  alter.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  alter.set_name("t");
  (*alter.mutable_set())["min.insync.replicas"] = "3";
  Do(core.AlterConfigs(alter, now));
  Commit();
  EXPECT_TRUE(P(topic_).elr.empty());
}

TEST_F(IsrChangesTest, ProducerIdsAreHandedOutOnce) {
  v1::AllocateProducerIdsRequest request;
  request.set_broker_id(1);
  request.set_broker_epoch(EpochOf(1).value());
  EXPECT_EQ(Do(core.AllocateProducerIds(request, now)).first_producer_id(), 0);
  const auto second = Do(core.AllocateProducerIds(request, now));
  EXPECT_EQ(second.first_producer_id(), kProducerIdBlock);
  EXPECT_EQ(second.count(), kProducerIdBlock);
  request.set_broker_epoch(1);
  EXPECT_EQ(ErrorCodeOf(core.AllocateProducerIds(request, now).status()), v1::STALE_BROKER_EPOCH);
}

}  // namespace
}  // namespace conclave::controller
