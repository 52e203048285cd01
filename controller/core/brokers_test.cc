#include <gtest/gtest.h>

#include "common/error/error.h"
#include "controller/core/core_harness.h"

// Heartbeats, sessions, controlled shutdown and changes of controller, through the whole core.
namespace conclave::controller {
namespace {

class BrokersTest : public ::testing::Test, protected CoreHarness {
 protected:
  bool IsFenced(int broker) const { return core.committed().FindBroker(BrokerId(broker))->fenced; }

  v1::BrokerHeartbeatReply Stop(int broker) {
    auto heartbeat = HeartbeatOf(broker);
    heartbeat.set_wants_shutdown(true);
    return Beat(heartbeat);
  }
};

TEST_F(BrokersTest, UnfencedOnceReadyAndAwareOfItsRegistration) {
  Do(core.RegisterBroker(Registration(1), now));
  Commit();
  Open(1);
  auto reply = Beat(HeartbeatOf(1, /*ready=*/false));
  EXPECT_TRUE(reply.fenced());
  EXPECT_NE(reply.fenced_reason().find("not recovered"), std::string::npos);
  auto unaware = HeartbeatOf(1);
  unaware.set_metadata_index(static_cast<uint64_t>(EpochOf(1).value()) - 1);
  reply = Beat(unaware);
  EXPECT_TRUE(reply.fenced());
  EXPECT_NE(reply.fenced_reason().find("registration"), std::string::npos);
  reply = Beat(1);
  EXPECT_TRUE(reply.fenced()) << "the reply tells the committed state";
  EXPECT_NE(reply.fenced_reason().find("being committed"), std::string::npos);
  reply = Beat(1);
  EXPECT_FALSE(reply.fenced());
  EXPECT_EQ(reply.commit_index(), log.size());
  EXPECT_EQ(reply.term(), term.value());
}

TEST_F(BrokersTest, HeartbeatsOfStrangersAreRefused) {
  Start(1);
  auto heartbeat = HeartbeatOf(1);
  heartbeat.set_broker_epoch(heartbeat.broker_epoch() + 1);
  EXPECT_EQ(ErrorCodeOf(core.Heartbeat(heartbeat, now).status()), v1::STALE_BROKER_EPOCH);
  heartbeat.set_broker_id(9);
  EXPECT_EQ(ErrorCodeOf(core.Heartbeat(heartbeat, now).status()), v1::BROKER_ID_NOT_REGISTERED);
  heartbeat.set_cluster_id(ClusterId::FromRandom(5, 5).ToBytes());
  EXPECT_EQ(ErrorCodeOf(core.Heartbeat(heartbeat, now).status()), v1::INCONSISTENT_CLUSTER_ID);
}

TEST_F(BrokersTest, ASilentBrokerIsFencedAndItsLeadershipsMove) {
  for (int broker : {1, 2, 3}) Start(broker);
  const TopicId topic = Create("t", {{1, 2, 3}});
  Wait(5000);
  Beat(2);
  Beat(3);
  EXPECT_EQ(core.NextDeadline(), now.time + Duration::Milliseconds(1000));
  Wait(1000);
  const size_t before = log.size();
  Tick();
  EXPECT_EQ(log.size(), before + 1);
  EXPECT_TRUE(IsFenced(1));
  EXPECT_EQ(Show(topic), "2/1 [2 3]");
  // It was stopped and goes on: its epoch is still its own.
  const auto reply = Beat(1);
  EXPECT_NE(reply.fenced_reason().find("no heartbeat"), std::string::npos);
  EXPECT_FALSE(IsFenced(1));
  EXPECT_EQ(Show(topic), "2/1 [2 3]");
}

TEST_F(BrokersTest, ABrokenStreamEndsTheSessionAfterTheGrace) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId topic = Create("t", {{1, 2}});
  Break(1);
  Wait(199);
  Tick();
  EXPECT_FALSE(IsFenced(1));
  Wait(1);
  Tick();
  EXPECT_TRUE(IsFenced(1));
  EXPECT_EQ(Show(topic), "2/1 [2]");
}

TEST_F(BrokersTest, BrokersThatEndTogetherAreFencedInOneBatch) {
  for (int broker : {1, 2, 3}) Start(broker);
  const TopicId topic = Create("t", {{1, 2, 3}});
  Wait(6000);
  const size_t before = log.size();
  Tick();
  EXPECT_EQ(log.size(), before + 1);
  EXPECT_EQ(Show(topic), "none/1 [3]");
  Beat(1);
  EXPECT_EQ(Show(topic), "none/1 [3]") << "1 is not in sync";
  Beat(3);
  EXPECT_EQ(Show(topic), "3/2 [3]");
}

TEST_F(BrokersTest, ABrokerASessionBehindInMetadataIsFencedByName) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId topic = Create("t", {{1, 2}});
  auto behind = HeartbeatOf(1);
  behind.set_metadata_index(log.size() - 1);
  for (int i = 0; i < 12; ++i) {
    EXPECT_FALSE(Beat(behind).fenced());
    Beat(2);
    Wait(500);
    Tick();
  }
  Beat(behind);
  EXPECT_TRUE(IsFenced(1));
  EXPECT_EQ(Show(topic), "2/1 [2]");
  const auto reply = Beat(behind);
  EXPECT_NE(reply.fenced_reason().find("metadata stands at index"), std::string::npos);
  EXPECT_TRUE(IsFenced(1));
  Beat(1);
  EXPECT_FALSE(IsFenced(1));
}

TEST_F(BrokersTest, ControlledShutdownGoesWhenTheMovesAreCommitted) {
  for (int broker : {1, 2, 3}) Start(broker);
  const TopicId topic = Create("t", {{1, 2, 3}, {2, 1, 3}});
  auto heartbeat = HeartbeatOf(1);
  heartbeat.set_wants_shutdown(true);
  EXPECT_FALSE(Do(core.Heartbeat(heartbeat, now)).may_stop());
  EXPECT_FALSE(Do(core.Heartbeat(heartbeat, now)).may_stop()) << "not committed yet";
  Commit();
  EXPECT_EQ(Show(topic, 0), "2/1 [2 3]");
  EXPECT_EQ(Show(topic, 1), "2/0 [2 3]");
  EXPECT_TRUE(Do(core.Heartbeat(heartbeat, now)).may_stop());
  Break(1);
  Wait(200);
  Tick();
  EXPECT_TRUE(IsFenced(1));
  Start(1, 2);
  EXPECT_FALSE(core.committed().FindBroker(BrokerId(1))->stopping);
}

TEST_F(BrokersTest, AStoppingBrokerKeepsWhatNobodyElseCanLead) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId alone = Create("alone", {{1}});
  const TopicId pair = Create("pair", {{1, 2}});
  EXPECT_FALSE(Stop(1).may_stop());
  EXPECT_EQ(Show(alone), "1/0 [1]");
  EXPECT_EQ(Show(pair), "2/1 [1 2]") << "the minimum is 2";
  EXPECT_TRUE(Stop(1).may_stop());
  // It is given nothing new.
  EXPECT_FALSE(core.committed().FindBroker(BrokerId(1))->IsEligible());
  Wait(300);
  Beat(2);
  Break(1);
  Wait(200);
  Tick();
  EXPECT_EQ(Show(alone), "none/1 [1]");
  EXPECT_EQ(Show(pair), "2/1 [2]");
}

TEST_F(BrokersTest, LastOneStoppingIsNotElectedButComesBackAsLeader) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId pair = Create("pair", {{1, 2}});
  Stop(2);
  EXPECT_EQ(Show(pair), "1/0 [1 2]");
  Break(1);
  Wait(200);
  Tick();
  EXPECT_EQ(Show(pair), "none/1 [2]");
  Break(2);
  Start(2, 2);
  EXPECT_EQ(Show(pair), "2/2 [2]");
}

TEST_F(BrokersTest, ANewControllerGivesAFullSession) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId topic = Create("t", {{1, 2}});
  Wait(5900);
  core.Deactivate();
  EXPECT_EQ(core.NextDeadline(), MonotonicTime::Never());
  Activate();
  Wait(5999);
  Tick();
  EXPECT_FALSE(IsFenced(1));
  Beat(2);
  Wait(1);
  Tick();
  EXPECT_TRUE(IsFenced(1));
  EXPECT_EQ(Show(topic), "2/1 [2]");
}

TEST_F(BrokersTest, WhatWasNotCommittedIsGoneWithTheLeadership) {
  Start(1);
  v1::CreateTopicsRequest request;
  request.add_topics()->set_name("lost");
  Do(core.CreateTopics(request, Requester::kUser, now));
  EXPECT_NE(core.speculative().FindTopic("lost"), nullptr);
  EXPECT_EQ(core.committed().FindTopic("lost"), nullptr);
  core.Deactivate();
  EXPECT_EQ(ErrorCodeOf(core.CreateTopics(request, Requester::kUser, now).status()),
            v1::NOT_CONTROLLER);
  EXPECT_TRUE(core.Tick(now).empty());
  log.resize(committed);
  Activate();
  EXPECT_EQ(core.speculative().FindTopic("lost"), nullptr);
}

TEST_F(BrokersTest, ANewControllerFinishesWhatTheLastOneBegan) {
  for (int broker : {1, 2}) Start(broker);
  const TopicId topic = Create("t", {{1, 2}});
  core.Deactivate();
  // The first batch of a fencing that never went on.
  Partition half = P(topic);
  half.leader = kNoBroker;
  half.leader_epoch = LeaderEpoch(1);
  half.partition_epoch = PartitionEpoch(1);
  log.push_back({{LogIndex(log.size() + 1), term},
                 metadata_testing::BatchOf().Change(topic, 0, half).batch()});
  Commit();
  Activate();
  EXPECT_EQ(Show(topic), "1/2 [1 2]");
}

TEST_F(BrokersTest, TheClusterIdIsWrittenOnceAndNeverReplaced) {
  EXPECT_EQ(core.committed().cluster_id(), cluster);
  EXPECT_EQ(log.size(), 1u);
  EXPECT_TRUE(core.Bootstrap(cluster, now)->batches.empty());
  EXPECT_EQ(ErrorCodeOf(core.Bootstrap(ClusterId::FromRandom(1, 1), now).status()),
            v1::INCONSISTENT_CLUSTER_ID);
}

TEST_F(BrokersTest, ASnapshotIsAStart) {
  for (int broker : {1, 2}) Start(broker);
  Create("t", {{1, 2}});
  ControllerCore other(ControllerCore::Options(), Random(2));
  ASSERT_TRUE(other.Restore(core.committed().ToProto(), core.committed().position()).ok());
  EXPECT_TRUE(other.committed() == core.committed());
}

}  // namespace
}  // namespace conclave::controller
