#include "controller/core/registration.h"

#include <gtest/gtest.h>

#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/core_harness.h"

namespace conclave::controller {
namespace {

class RegistrationTest : public ::testing::Test, protected CoreHarness {
 protected:
  absl::Status Register(const v1::RegisterBrokerRequest& request) {
    return core.RegisterBroker(request, now).status();
  }
  v1::ErrorCode CodeOf(const v1::RegisterBrokerRequest& request) {
    return ErrorCodeOf(Register(request));
  }
};

TEST_F(RegistrationTest, TheEpochIsTheIndexAndTheBrokerStartsFenced) {
  const auto response = Do(core.RegisterBroker(Registration(1), now));
  Commit();
  EXPECT_EQ(response.broker_epoch(), 2);
  EXPECT_TRUE(core.committed().FindBroker(BrokerId(1))->fenced);
  EXPECT_EQ(core.committed().FindBroker(BrokerId(1))->epoch, BrokerEpoch(2));
}

TEST_F(RegistrationTest, ARetryOfTheSameIncarnationGetsTheSameEpoch) {
  Start(1);
  const size_t before = log.size();
  EXPECT_EQ(Do(core.RegisterBroker(Registration(1), now)).broker_epoch(), EpochOf(1).value());
  EXPECT_EQ(log.size(), before);
}

TEST_F(RegistrationTest, R42AnotherClusterIsNamed) {
  auto request = Registration(1);
  const ClusterId other = ClusterId::FromRandom(99, 99);
  request.set_cluster_id(other.ToBytes());
  const absl::Status status = Register(request);
  EXPECT_EQ(ErrorCodeOf(status), v1::INCONSISTENT_CLUSTER_ID);
  EXPECT_NE(status.message().find(other.ToString()), std::string::npos);
  EXPECT_NE(status.message().find(cluster.ToString()), std::string::npos);
  request.set_cluster_id("short");
  EXPECT_EQ(CodeOf(request), v1::INCONSISTENT_CLUSTER_ID);
}

TEST_F(RegistrationTest, WhatNoBrokerMaySayIsRefused) {
  const auto changed = [&](auto change) {
    auto request = Registration(1);
    change(request);
    return CodeOf(request);
  };
  using Request = v1::RegisterBrokerRequest;
  EXPECT_EQ(changed([](Request& r) { r.set_broker_id(-1); }), v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.set_incarnation_id("x"); }), v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.clear_directory_ids(); }), v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.add_directory_ids(r.directory_ids(0)); }),
            v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.set_endpoint("localhost"); }), v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.set_endpoint("localhost:0"); }), v1::INVALID_REQUEST);
  EXPECT_EQ(changed([](Request& r) { r.set_rack(std::string(250, 'r')); }), v1::INVALID_REQUEST);
}

TEST_F(RegistrationTest, ADirectoryIsOneBrokersAlone) {
  Start(1);
  auto request = Registration(2);
  request.add_directory_ids(Registration(1).directory_ids(0));
  const absl::Status status = Register(request);
  EXPECT_EQ(ErrorCodeOf(status), v1::DUPLICATE_BROKER_REGISTRATION);
  EXPECT_NE(status.message().find("host1:7400"), std::string::npos) << status;
  Start(2);
}

TEST_F(RegistrationTest, WhileTheOldStreamIsOpenTryAgain) {
  Start(1);
  const absl::Status status = Register(Registration(1, 2));
  EXPECT_EQ(ErrorCodeOf(status), v1::BROKER_SESSION_ALIVE);
  EXPECT_TRUE(IsRetriable(status));
}

TEST_F(RegistrationTest, OtherDirectoriesUnderALiveIdAreFinal) {
  Start(1);
  EXPECT_EQ(CodeOf(Registration(1, 2, 7)), v1::DUPLICATE_BROKER_REGISTRATION);
  Break(1);
  EXPECT_EQ(CodeOf(Registration(1, 2, 7)), v1::DUPLICATE_BROKER_REGISTRATION);
  EXPECT_FALSE(IsRetriable(v1::DUPLICATE_BROKER_REGISTRATION));
}

TEST_F(RegistrationTest, R20bTheSameBrokerLeadsAgainOnlyUnderANewEpoch) {
  Start(1);
  const TopicId alone = Create("alone", {{1}});
  Start(2);
  const TopicId shared = Create("shared", {{1, 2}});
  Break(1);
  Wait(50);  // Within the grace: nothing has been fenced.
  Tick();
  EXPECT_EQ(Show(alone), "1/0 [1]");
  const size_t before = log.size();
  Do(core.RegisterBroker(Registration(1, 2), now));
  EXPECT_EQ(log.size(), before + 1) << "one commit";
  Commit();
  EXPECT_EQ(Show(alone), "none/1 [1]");
  EXPECT_EQ(Show(shared), "2/1 [2]");
  EXPECT_NE(P(alone).note, "");
  Open(1);
  Beat(1);
  EXPECT_EQ(Show(alone), "1/2 [1]");
  EXPECT_EQ(P(alone).note, "");
  EXPECT_EQ(Show(shared), "2/1 [2]");
}

TEST_F(RegistrationTest, TheOldIncarnationIsRefusedFromThenOn) {
  Start(1);
  const auto old_beat = HeartbeatOf(1);
  const BrokerEpoch old_epoch = EpochOf(1);
  Break(1);
  Do(core.RegisterBroker(Registration(1, 2), now));
  EXPECT_EQ(ErrorCodeOf(core.Heartbeat(old_beat, now).status()), v1::STALE_BROKER_EPOCH);
  EXPECT_EQ(ErrorCodeOf(core.StreamOpened(BrokerId(1), old_epoch, now)), v1::STALE_BROKER_EPOCH);
  // The old stream's end comes late, and says nothing of the new incarnation.
  Open(1);
  core.StreamBroken(BrokerId(1), old_epoch, now);
  EXPECT_EQ(CodeOf(Registration(1, 3)), v1::BROKER_SESSION_ALIVE);
}

TEST_F(RegistrationTest, AReplacedDiskTakesItsReplicasOutEvenAsTheLast) {
  Start(1);
  Start(2);
  const TopicId alone = Create("alone", {{1}});
  const TopicId shared = Create("shared", {{1, 2}});
  Break(1);
  Wait(250);
  Tick();
  EXPECT_EQ(Show(alone), "none/1 [1]");
  Start(1, 2, 7);
  EXPECT_EQ(Show(alone), "none/1 []");
  EXPECT_NE(P(alone).note.find("possible loss"), std::string::npos);
  EXPECT_EQ(P(alone).replicas[0].directory, metadata_testing::DirectoryOf(BrokerId(1), 7));
  EXPECT_EQ(P(shared).replicas[0].directory, metadata_testing::DirectoryOf(BrokerId(1), 7));
  EXPECT_EQ(Show(shared), "2/1 [2]");
  // The operator goes on without what was lost.
  v1::AlterConfigsRequest request;
  request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  request.set_name("alone");
  (*request.mutable_set())["unclean.leader.election.enable"] = "true";
  Do(core.AlterConfigs(request, now));
  Commit();
  EXPECT_EQ(Show(alone), "1/2 [1]");
}

TEST_F(RegistrationTest, AStopIsCleanIfTheMarkerNamesTheEpochLastRegistered) {
  Start(1);
  Start(2);
  const TopicId topic = Create("t", {{1, 2}}, {{"flush.policy", "replicated"}});
  EXPECT_EQ(P(topic).flush_policy, v1::FLUSH_POLICY_REPLICATED);
  const auto restart = [&](uint64_t incarnation, BrokerEpoch clean_stop) {
    Break(2);
    Break(1);
    Wait(6'500);
    Tick();
    EXPECT_EQ(P(topic).leader, kNoBroker);
    auto registration = Registration(1, incarnation);
    registration.set_clean_stop_epoch(clean_stop.value());
    Do(core.RegisterBroker(registration, now));
    Commit();
  };
  restart(2, EpochOf(1));
  EXPECT_FALSE(P(topic).HasStoppedUncleanly(BrokerId(1)));
  Open(1);
  Beat(1);
  EXPECT_EQ(P(topic).leader, BrokerId(1));
  restart(3, EpochOf(2));
  EXPECT_TRUE(P(topic).HasStoppedUncleanly(BrokerId(1))) << "an older marker tells nothing";
  EXPECT_FALSE(P(topic).InIsr(BrokerId(1)));
  EXPECT_FALSE(P(topic).InElr(BrokerId(1)));
}

TEST_F(RegistrationTest, TheFurthestOfThoseThatStoppedUncleanlyLeadsByWhatHeartbeatsSay) {
  Start(1);
  Start(2);
  const TopicId topic = Create("t", {{1, 2}}, {{"flush.policy", "replicated"}});
  Break(1);
  Break(2);
  Wait(6'500);
  Tick();
  Start(1, 2);
  Start(2, 2);
  EXPECT_EQ(P(topic).leader, kNoBroker);
  EXPECT_EQ(P(topic).stopped_uncleanly.size(), 2u);
  const auto end_of = [&](int broker, int64_t end) {
    auto heartbeat = HeartbeatOf(broker);
    v1::ReplicaEnd& said = *heartbeat.add_replica_ends();
    said.set_topic_id(topic.ToBytes());
    said.set_log_end_offset(end);
    return heartbeat;
  };
  Beat(end_of(1, 10));
  EXPECT_EQ(P(topic).leader, kNoBroker);
  Beat(end_of(2, 11));
  EXPECT_EQ(Show(topic), "2/2 [2]");
  EXPECT_NE(P(topic).note.find("possible loss"), std::string::npos);
  const size_t before = log.size();
  Beat(end_of(1, 10));
  EXPECT_EQ(log.size(), before) << "said once more, it changes nothing";
}

TEST_F(RegistrationTest, DamageThatAHeartbeatTellsComesBeforeItsUnfencing) {
  Start(1);
  const TopicId topic = Create("t", {{1}});
  Break(1);
  Do(core.RegisterBroker(Registration(1, 2), now));
  Commit();
  Open(1);
  auto heartbeat = HeartbeatOf(1);
  v1::DamagedReplica& damaged = *heartbeat.add_damaged();
  damaged.set_topic_id(topic.ToBytes());
  damaged.set_what("offsets 3 to 5");
  Beat(heartbeat);
  EXPECT_EQ(P(topic).leader, kNoBroker);
  EXPECT_TRUE(P(topic).isr.empty());
  EXPECT_NE(P(topic).note.find("offsets 3 to 5"), std::string::npos);

  v1::ElectLeadersRequest elect;
  elect.set_topic("t");
  EXPECT_EQ(ErrorCodeOf(core.ElectLeaders(elect, now).status()), v1::INVALID_REQUEST);
  elect.set_type(v1::ELECTION_TYPE_PREFERRED);
  EXPECT_EQ(Do(core.ElectLeaders(elect, now)).partitions(0).error().code(),
            v1::ELIGIBLE_LEADERS_NOT_AVAILABLE);
  elect.set_type(v1::ELECTION_TYPE_UNCLEAN);
  const auto elected = Do(core.ElectLeaders(elect, now));
  Commit();
  EXPECT_EQ(elected.partitions(0).error().code(), v1::NONE);
  EXPECT_EQ(elected.partitions(0).leader(), 1);
  EXPECT_EQ(P(topic).leader, BrokerId(1));
  EXPECT_EQ(Do(core.ElectLeaders(elect, now)).partitions(0).error().code(),
            v1::ELECTION_NOT_NEEDED);
  elect.add_partitions(1);
  EXPECT_EQ(ErrorCodeOf(core.ElectLeaders(elect, now).status()), v1::UNKNOWN_TOPIC_OR_PARTITION);
}

TEST_F(RegistrationTest, OneDiskOfTwoLostIsTheSameMachine) {
  auto both = Registration(1);
  both.add_directory_ids(metadata_testing::DirectoryOf(BrokerId(1), 7).ToBytes());
  Do(core.RegisterBroker(both, now));
  Commit();
  Open(1);
  Beat(1);
  const TopicId topic = Create("t", {{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}});
  int lost = 0;
  for (int i = 0; i < 8; ++i) {
    lost +=
        P(topic, i).replicas[0].directory == metadata_testing::DirectoryOf(BrokerId(1), 7) ? 1 : 0;
  }
  ASSERT_GT(lost, 0);
  ASSERT_LT(lost, 8);
  Break(1);
  Start(1, 2);
  int led = 0;
  for (int i = 0; i < 8; ++i) led += P(topic, i).leader == BrokerId(1) ? 1 : 0;
  EXPECT_EQ(led, 8 - lost);
}

TEST_F(RegistrationTest, ABrokerThatHoldsNothingCanBeUnregistered) {
  Start(1);
  Start(2);
  const auto code = [&](int broker) {
    return ErrorCodeOf(core.UnregisterBroker(BrokerId(broker), now).status());
  };
  Create("t", {{1}});
  EXPECT_EQ(code(3), v1::BROKER_ID_NOT_REGISTERED);
  EXPECT_EQ(code(2), v1::BROKER_SESSION_ALIVE);
  for (int broker : {1, 2}) {
    Break(broker);
    Wait(1000);
    Tick();
  }
  EXPECT_EQ(code(1), v1::INVALID_REQUEST);
  Do(core.UnregisterBroker(BrokerId(2), now));
  Commit();
  EXPECT_EQ(core.committed().FindBroker(BrokerId(2)), nullptr);
  Start(2, 5);
  EXPECT_FALSE(core.committed().FindBroker(BrokerId(2))->fenced);
}

TEST_F(RegistrationTest, ThousandsOfPartitionsMoveInBoundedConsistentBatches) {
  for (int broker : {1, 2, 3}) Start(broker);
  for (int topic = 0; topic < 5; ++topic) {
    v1::CreateTopicsRequest request;
    v1::NewTopic& t = *request.add_topics();
    t.set_name("t" + std::to_string(topic));
    t.set_partitions(9000);
    Do(core.CreateTopics(request, Requester::kUser, now));
  }
  Commit();
  Break(1);
  const size_t before = log.size();
  Do(core.RegisterBroker(Registration(1, 2), now));
  EXPECT_GT(log.size(), before + 1);
  EXPECT_EQ(core.speculative().FindBroker(BrokerId(1))->epoch,
            BrokerEpoch(static_cast<int64_t>(log.size())));
  for (size_t i = before; i < log.size(); ++i) {
    EXPECT_LE(log[i].batch.ByteSizeLong(), kMaxBatchBytes + 1024);
  }
  EXPECT_TRUE(core.speculative().PartitionsLedBy(BrokerId(1)).empty());
  EXPECT_TRUE(core.speculative().PartitionsLedBy(kNoBroker).empty());
  Commit();
}

}  // namespace
}  // namespace conclave::controller
