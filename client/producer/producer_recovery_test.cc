// What a producer does when brokers, leaders and answers are lost.
#include <string>
#include <vector>

#include "client/producer/producer_testing.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;
using client_testing::ProducerTest;

TEST_F(ProducerTest, R31_DroppedAnswersDoubleNothingAndKeepTheOrder) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  WarmUp();
  cluster_.world().hold_answers = true;
  SendSlowly(0, 5);
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.world().arrived.size() == 6; }));
  EXPECT_EQ(cluster_.world().greatest_in_flight, 5);
  EXPECT_TRUE(deliveries_.empty());
  // All five are stored, and none of the answers arrives.
  cluster_.Break(1);
  cluster_.world().hold_answers = false;
  SendSlowly(5, 10);
  ASSERT_TRUE(Done(10));
  std::vector<std::string> all = Numbered(0, 10);
  all.insert(all.begin(), "warm");
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), all);
  for (int i = 0; i < 10; ++i) {
    const Delivery& delivery = deliveries_.at("r" + std::to_string(i));
    EXPECT_EQ(delivery.offset, Offset(i + 1));
    EXPECT_EQ(delivery.duplicate, i < 5) << i;
  }
  EXPECT_EQ(order_, Numbered(0, 10));
  EXPECT_EQ(cluster_.world().inits, 1);
}

TEST_F(ProducerTest, FollowsAHintToTheNewLeaderAtOnce) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  SendSlowly(0, 1);
  ASSERT_TRUE(Done(1));
  cluster_.RunFor(Duration::Seconds(1));
  const int asked = cluster_.world().metadata_requests;
  cluster_.world().MoveLeader("t", 0, 3);
  const MonotonicTime before = cluster_.clock().Now();
  ASSERT_TRUE(Send("r1").ok());
  ASSERT_TRUE(Done(2));
  EXPECT_LT(cluster_.clock().Now() - before, Duration::Milliseconds(20));
  EXPECT_EQ(cluster_.world().metadata_requests, asked);
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 2));
}

TEST_F(ProducerTest, FindsTheNewLeaderWithoutAHint) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().hints = false;
  Make();
  SendSlowly(0, 1);
  ASSERT_TRUE(Done(1));
  cluster_.world().MoveLeader("t", 0, 3);
  SendSlowly(1, 10);
  ASSERT_TRUE(Done(10));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 10));
}

TEST_F(ProducerTest, KeepsTheOrderWhileTheLeaderMovesOverAndOver) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  for (int i = 0; i < 50; ++i) {
    SendSlowly(i * 4, i * 4 + 4);
    if (i % 5 == 4) {
      cluster_.world().TakeLeader("t", 0);
      cluster_.RunFor(Duration::Milliseconds(300));
    }
    cluster_.world().MoveLeader("t", 0, 1 + i % 3);
  }
  ASSERT_TRUE(Done(200));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 200));
  EXPECT_EQ(order_, Numbered(0, 200));
}

TEST_F(ProducerTest, GoesOnWhereABrokerIsStoppedAndStarted) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  SendSlowly(0, 5);
  cluster_.Stop(1);
  SendSlowly(5, 10);
  cluster_.RunFor(Duration::Seconds(2));
  cluster_.Start(1);
  ASSERT_TRUE(Done(10));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 10));
}

TEST_F(ProducerTest, TriesANewLeaderAsSoonAsItIsKnown) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  WarmUp();
  cluster_.Stop(1);
  SendSlowly(0, 5);
  // For so long that a second passes between two tries.
  cluster_.RunFor(Duration::Seconds(10));
  cluster_.world().MoveLeader("t", 0, 3);
  const MonotonicTime moved = cluster_.clock().Now();
  ASSERT_TRUE(Done(5));
  // What it takes to hear of it.
  EXPECT_LT(cluster_.clock().Now() - moved, Duration::Milliseconds(300));
  EXPECT_EQ(order_, Numbered(0, 5));
}

TEST_F(ProducerTest, GivesUpAfterTheDeliveryTimeout) {
  cluster_.world().CreateTopic("t", 1);
  options_.delivery_timeout = Duration::Seconds(10);
  Make();
  SendSlowly(0, 1);
  ASSERT_TRUE(Done(1));
  cluster_.world().TakeLeader("t", 0);
  cluster_.Break(1);
  const MonotonicTime sent = cluster_.clock().Now();
  ASSERT_TRUE(Send("r1").ok());
  ASSERT_TRUE(Done(2));
  EXPECT_GE(cluster_.clock().Now() - sent, Duration::Seconds(10));
  EXPECT_LT(cluster_.clock().Now() - sent, Duration::Seconds(11));
  EXPECT_FALSE(deliveries_.at("r1").outcome_unknown()) << deliveries_.at("r1").status;
  // What comes later is sent all the same, and under the same epoch.
  cluster_.world().MoveLeader("t", 0, 2);
  ASSERT_TRUE(Send("r2").ok());
  ASSERT_TRUE(Done(3));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), (std::vector<std::string>{"r0", "r2"}));
}

TEST_F(ProducerTest, ClosedBeforeTheEndItTellsTheLastFailure) {
  cluster_.world().CreateTopic("t", 1);
  options_.delivery_timeout_name = "--patience";
  Make();
  SendSlowly(0, 1);
  ASSERT_TRUE(Done(1));
  cluster_.Stop(1);
  ASSERT_TRUE(Send("r1").ok());
  bool closed = false;
  producer_->Close(Duration::Seconds(5), [&] { closed = true; });
  ASSERT_TRUE(cluster_.RunUntil([&] { return closed; }));
  const std::string message(deliveries_.at("r1").status.message());
  EXPECT_NE(message.find("closed before"), std::string::npos) << message;
  EXPECT_NE(message.find("last failure: NETWORK_EXCEPTION"), std::string::npos) << message;
}

TEST_F(ProducerTest, TheErrorNamesTheTimeoutAsTheUserKnowsIt) {
  cluster_.world().CreateTopic("t", 1);
  options_.delivery_timeout = Duration::Seconds(3);
  options_.delivery_timeout_name = "--patience";
  Make();
  cluster_.world().TakeLeader("t", 0);
  ASSERT_TRUE(Send("r0").ok());
  ASSERT_TRUE(Done(1));
  const std::string message(deliveries_.at("r0").status.message());
  EXPECT_NE(message.find("3000 ms (--patience)"), std::string::npos) << message;
}

TEST_F(ProducerTest, ABlackHoleEndsInAnUnknownOutcomeAndANewEpoch) {
  cluster_.world().CreateTopic("t", 1);
  options_.delivery_timeout = Duration::Seconds(5);
  Make();
  SendSlowly(0, 1);
  ASSERT_TRUE(Done(1));
  // The requests arrive and the answers do not; then the broker is gone and another leads.
  cluster_.wire().Cut(FakeCluster::NameOf(1), FakeCluster::kClient);
  SendSlowly(1, 4);
  ASSERT_TRUE(Done(4));
  for (const char* value : {"r1", "r2", "r3"}) {
    EXPECT_EQ(CodeOf(value), v1::REQUEST_TIMED_OUT) << value;
    EXPECT_TRUE(deliveries_.at(value).outcome_unknown());
  }
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 4));
  cluster_.wire().HealAll();
  cluster_.Break(1);
  cluster_.world().MoveLeader("t", 0, 2);
  SendSlowly(4, 8);
  ASSERT_TRUE(Done(8));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 8));
  EXPECT_EQ(cluster_.world().inits, 2);
  EXPECT_EQ(cluster_.world().arrived.back().producer_epoch, ProducerEpoch(1));
  EXPECT_EQ(cluster_.world().arrived.back().producer_id, ProducerId(100));
}

TEST_F(ProducerTest, ARefusedBatchDoesNotTakeTheOthersWithIt) {
  cluster_.world().CreateTopic("t", 2);
  int seen = 0;
  cluster_.world().before_append = [&](const TopicPartition& partition, const BatchHeader&) {
    v1::Error error;
    if (partition.partition == PartitionIndex(0) && ++seen == 3) {
      error.set_code(v1::INVALID_TIMESTAMP);
      error.set_message("as the test says");
    }
    return error;
  };
  Make();
  WarmUp();
  SendSlowly(0, 5);
  SendSlowly(5, 8, 1);
  ASSERT_TRUE(Done(8));
  EXPECT_EQ(CodeOf("r1"), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(cluster_.world().At("t", 0).Values(),
            (std::vector<std::string>{"warm", "r0", "r2", "r3", "r4"}));
  EXPECT_EQ(cluster_.world().At("t", 1).Values(), Numbered(5, 8));
  ExpectAcknowledgedStored();
}

TEST_F(ProducerTest, AForgottenProducerGoesOnInANewEpoch) {
  cluster_.world().CreateTopic("t", 2);
  Make();
  SendSlowly(0, 2);
  SendSlowly(2, 4, 1);
  ASSERT_TRUE(Done(4));
  cluster_.world().At("t", 0).ForgetProducers();
  SendSlowly(4, 8);
  SendSlowly(8, 10, 1);
  ASSERT_TRUE(Done(10));
  for (const auto& [value, delivery] : deliveries_) EXPECT_TRUE(delivery.status.ok()) << value;
  EXPECT_EQ(cluster_.world().At("t", 0).Values(),
            (std::vector<std::string>{"r0", "r1", "r4", "r5", "r6", "r7"}));
  EXPECT_EQ(cluster_.world().inits, 2);
  ExpectAcknowledgedStored();
}

TEST_F(ProducerTest, AppendedButNotConfirmedIsAskedForAgainAndFoundOnce) {
  cluster_.world().CreateTopic("t", 1);
  int failures = 3;
  cluster_.world().after_append = [&](const TopicPartition&, const BatchHeader&) {
    v1::Error error;
    if (failures-- > 0) error.set_code(v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    return error;
  };
  Make();
  SendSlowly(0, 5);
  ASSERT_TRUE(Done(5));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 5));
  ExpectAcknowledgedStored();
}

TEST_F(ProducerTest, AsksForNoLeaderOnceNothingWaitsForIt) {
  cluster_.world().CreateTopic("t", 1);
  options_.delivery_timeout = Duration::Seconds(10);
  Make();
  WarmUp();
  cluster_.world().TakeLeader("t", 0);
  ASSERT_TRUE(Send("r0").ok());
  ASSERT_TRUE(Done(1));
  EXPECT_EQ(CodeOf("r0"), v1::NOT_LEADER_OR_FOLLOWER);
  cluster_.RunFor(Duration::Seconds(2));
  const int asked = cluster_.world().metadata_requests;
  cluster_.RunFor(Duration::Seconds(60));
  EXPECT_EQ(cluster_.world().metadata_requests, asked);
  cluster_.world().MoveLeader("t", 0, 2);
  ASSERT_TRUE(Send("r1").ok());
  ASSERT_TRUE(Done(2));
  EXPECT_TRUE(deliveries_.at("r1").status.ok());
}

}  // namespace
}  // namespace conclave
