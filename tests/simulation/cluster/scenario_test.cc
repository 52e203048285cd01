// Faults of systems of this kind, one by one, in whole simulated clusters; names are those of
// docs/testing.md. After each, the invariants have held and the cluster is whole again.
#include "tests/simulation/cluster/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_check.h"
#include "common/rpc/client.h"
#include "common/rpc/replication_methods.h"
#include "conclave/v1/replication.pb.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/offsets_workload.h"
#include "tests/simulation/cluster/recorder.h"

namespace conclave::cluster_sim {
namespace {

TEST_P(Scenario, RecordsAreWrittenReplicatedAndRead) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  for (int i = 0; i < 50; ++i) Send(leader, "v" + std::to_string(i));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return open_ == 0; }));
  EXPECT_EQ(acknowledged_.size(), 50u);
  EXPECT_EQ(cluster_.ReadAll("t", 0).size(), 50u);
  ExpectWholeAndNothingLost();
}

// R14 (KIP-101): what was acknowledged survives on replicas that had not heard that it was
// committed, when all lose power; the one that led comes back last.
TEST_P(Scenario, R14TruncationIsNotByTheOwnHighWatermark) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "first");
  Send(leader, "second");
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return acknowledged_.size() == 2; }));
  for (int node = 0; node < plane().nodes(); ++node) plane().Crash(node);
  for (int node = 0; node < ControlPlane::kControllers; ++node) plane().Start(node);
  for (const int node : Others(leader)) plane().Start(node);
  cluster_.RunFor(Duration::Milliseconds(cluster_.random().Between(0, 10'000)));
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

// R18 (Jepsen on Kafka 0.8): a leader that lost its followers acknowledges nothing.
TEST_P(Scenario, R18NoAcknowledgementUnderTheMinimumIsr) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  for (const int other : Others(leader)) {
    plane().wire().CutBothWays(ControlPlane::NameOf(leader), ControlPlane::NameOf(other));
  }
  for (int i = 0; i < 100; ++i) Send(leader, "alone" + std::to_string(i));
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(30), [this] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->isr.size() == 1;
  }));
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(1), [this] { return open_ == 0; }));
  EXPECT_EQ(acknowledged_.size(), 1u) << "nothing but what was sent before the cut";
  // Once the ISR has shrunk, it is refused before the append.
  errors_.clear();
  SendAndWait(leader, "refused");
  EXPECT_EQ(errors_.back(), v1::NOT_ENOUGH_REPLICAS);
  plane().Crash(leader);
  plane().wire().HealAll();
  cluster_.RunFor(Duration::Seconds(3));
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

// While its controllers reach it and its followers do not, the partition could not be written.
TEST_P(Scenario, ALeaderThatNobodyFollowsHandsOver) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  for (const int other : Others(leader)) {
    plane().wire().Cut(ControlPlane::NameOf(leader), ControlPlane::NameOf(other));
  }
  Send(leader, "uncertain");
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(40), [&] {
    const int next = cluster_.LeaderOf("t", 0);
    return next >= 0 && next != leader;
  })) << cluster_.violation();
  const int next = cluster_.LeaderOf("t", 0);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return plane().ImageOf(next).FindPartition(cluster_.IdOf("t", 0))->isr.size() == 2;
  }));
  EXPECT_EQ(cluster_.LeaderOf("t", 0), next) << "the other one follows it";
  for (int i = 0; i < 10; ++i) SendAndWait(next, "elsewhere" + std::to_string(i));
  EXPECT_GE(acknowledged_.size(), 11u);
  plane().wire().HealAll();
  ExpectWholeAndNothingLost();
}

// R20 (Jepsen on Redpanda): a leader that stood still while another was elected acknowledges
// nothing that is not in the log that goes on.
TEST_P(Scenario, R20AZombieLeaderAcknowledgesNothingThatIsLost) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  const LeaderEpoch epoch = cluster_.StateOf("t", 0)->leader_epoch;
  for (int i = 0; i < 20; ++i) Send(leader, "before" + std::to_string(i));
  cluster_.RunFor(Duration::Microseconds(cluster_.random().Between(0, 5'000)));
  plane().Pause(leader);
  for (int i = 0; i < 20; ++i) Send(leader, "waiting" + std::to_string(i));
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(30), [&] {
    return cluster_.LeaderOf("t", 0) >= 0 && cluster_.LeaderOf("t", 0) != leader;
  }));
  EXPECT_GT(cluster_.StateOf("t", 0)->leader_epoch, epoch);
  SendAndWait(cluster_.LeaderOf("t", 0), "elsewhere");
  cluster_.RunFor(Duration::Seconds(12));
  plane().Resume(leader);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [this] { return open_ == 0; }));
  ExpectWholeAndNothingLost();
}

// R20b: a leader that comes back at once, without what it had not synced and its followers have,
// writes in another epoch.
TEST_P(Scenario, R20bALeaderThatRestartsAtOnceWritesInANewEpoch) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  const LeaderEpoch epoch = cluster_.StateOf("t", 0)->leader_epoch;
  SendAndWait(leader, "before");
  for (int i = 0; i < 30; ++i) Send(leader, "flying" + std::to_string(i));
  cluster_.RunFor(Duration::Microseconds(cluster_.random().Between(300, 6'000)));
  plane().Crash(leader);
  cluster_.RunFor(Duration::Milliseconds(50));
  plane().Start(leader);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(30), [&] {
    return cluster_.LeaderOf("t", 0) >= 0 && cluster_.StateOf("t", 0)->leader_epoch > epoch;
  }));
  SendAndWait(cluster_.LeaderOf("t", 0), "after");
  ExpectWholeAndNothingLost();
}

// With one broker gone for good the other two serve.
TEST_P(Scenario, TwoOfThreeServe) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  plane().Crash(leader);
  ASSERT_TRUE(
      cluster_.RunUntil(Duration::Seconds(30), [&] { return cluster_.LeaderOf("t", 0) >= 0; }));
  for (int i = 0; i < 20; ++i) SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
  EXPECT_EQ(acknowledged_.size(), 21u);
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

// R37: what a broker still has of a topic that was deleted while it was away is never served, nor
// counted to the topic of the same name that came after.
TEST_P(Scenario, R37ATopicMadeAnewWhileABrokerWasAwayIsEmptyThere) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  const int away = Others(leader).front();
  for (int i = 0; i < 10; ++i) SendAndWait(leader, "old" + std::to_string(i));
  plane().Crash(away);
  ASSERT_EQ(cluster_.DeleteTopic("t"), "");
  plane().Start(away);
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
  EXPECT_EQ(cluster_.ReadAll("t", 0), std::vector<std::optional<std::string>>{"last"});
  const auto strays = plane().DiskOf(away).List("data/stray");
  ASSERT_TRUE(strays.ok());
  EXPECT_EQ(strays->size(), 1u);
}

// R28: a follower whose disk was full follows again once there is room, by itself.
TEST_P(Scenario, R28AFollowerWithAFullDiskComesBackByItself) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  const int full = Others(leader).front();
  plane().DiskOf(full).SetCapacity(plane().DiskOf(full).used_bytes());
  // Several are on their way to it at any time.
  for (int i = 0; i < 200; ++i) {
    Send(leader, "meanwhile" + std::to_string(i));
    cluster_.RunFor(Duration::Milliseconds(cluster_.random().Between(1, 100)));
  }
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return open_ == 0 && state != nullptr && !state->InIsr(BrokerId(full));
  }));
  EXPECT_EQ(acknowledged_.size(), 201u) << "the other two went on";
  plane().DiskOf(full).SetCapacity(std::numeric_limits<uint64_t>::max());
  ExpectWholeAndNothingLost();
}

// Retention while a follower was away: it begins anew where the leader's log begins now, and what
// is kept is there once.
TEST_P(Scenario, AFollowerThatEndsBeforeTheLeadersLogBeginsAnew) {
  ASSERT_EQ(
      cluster_.CreateTopic("t", 1, 3, {{"segment.bytes", "1024"}, {"retention.bytes", "3000"}}),
      "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "first");
  const int away = Others(leader).front();
  plane().Crash(away);
  for (int i = 0; i < 100; ++i) SendAndWait(leader, "v" + std::to_string(i));
  const auto start_at = [&](int node) {
    return plane().BrokerAt(node).replicas().Find(cluster_.IdOf("t", 0))->log().log_start();
  };
  ASSERT_TRUE(
      cluster_.RunUntil(Duration::Seconds(90), [&] { return start_at(leader) > Offset(20); }));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return start_at(Others(leader).back()) == start_at(leader);
  })) << "the other follower removes what the leader has removed";
  plane().Start(away);
  // Nothing is appended meanwhile, and no checkpoint is due for long.
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(15), [this] { return cluster_.IsWhole("t"); }));
  EXPECT_EQ(start_at(away), start_at(leader));
  EXPECT_EQ(cluster_.counters().begun_anew, 1u);
  EXPECT_EQ(cluster_.ReadAll("t", 0).size(), 101u);
  EXPECT_EQ(cluster_.ReadAll("t", 0).back(), "v99");
}

// A stranger who says that it is a later process of a follower does not take its place.
TEST_P(Scenario, AForgedReplicationStreamLocksNobodyOut) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  class Ended : public MessageHandler<replication_methods::LeaderMessage> {
   public:
    void OnMessage(replication_methods::LeaderMessage) override { heard = true; }
    void OnClosed(absl::Status status) override { ended = std::move(status); }
    bool heard = false;
    std::optional<absl::Status> ended;
  } forger;
  v1::FollowerMessage message;
  v1::FollowerHello* hello = message.mutable_hello();
  hello->set_cluster_id(ControlPlane::cluster_id().ToBytes());
  hello->set_broker_id(Others(leader).front());
  hello->set_broker_epoch(int64_t{1} << 62);
  hello->set_leader_id(leader);
  v1::FollowerPosition* position = message.add_positions();
  position->set_topic_id(cluster_.IdOf("t", 0).topic.ToBytes());
  position->set_leader_epoch(cluster_.StateOf("t", 0)->leader_epoch.value());
  position->set_session(1000);
  position->set_last_epoch(-1);
  auto stream =
      std::make_unique<TypedClientStream<v1::FollowerMessage, replication_methods::LeaderMessage>>(
          cluster_.transport(), ControlPlane::EndpointTextOf(leader),
          replication_methods::kReplicate, CallOptions{}, cluster_.executor(), &forger);
  stream->Send(message);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return forger.ended.has_value(); }));
  EXPECT_EQ(ErrorCodeOf(*forger.ended), v1::METADATA_BEHIND);
  EXPECT_FALSE(forger.heard);
  for (int i = 0; i < 10; ++i) SendAndWait(leader, "v" + std::to_string(i));
  ExpectWholeAndNothingLost();
}

// What is no coordinator's record in its log is passed over by the one that loads it.
TEST_P(Scenario, JunkAmongTheRecordsOfGroupsIsPassedOver) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  Recorder recorder(cluster_);
  OffsetsWorkload offsets(cluster_, cluster_.random(), recorder, "t");
  offsets.Start();
  const auto more = [&](uint64_t count) {
    const uint64_t goal = offsets.counters().committed + count;
    return cluster_.RunUntil(kTimeout * 2,
                             [&, goal] { return offsets.counters().committed >= goal; });
  };
  ASSERT_TRUE(more(5));
  for (int partition = 0; partition < 50; ++partition) {
    const int leader = cluster_.LeaderOf("__consumer_offsets", partition);
    ASSERT_GE(leader, 0) << partition;
    broker::Replica* replica =
        plane().BrokerAt(leader).replicas().Find(cluster_.IdOf("__consumer_offsets", partition));
    BatchBuilder builder;
    RecordView record;
    record.key = record.value = "junk";
    builder.Add(record);
    const Buffer junk = *builder.Finish();
    ASSERT_TRUE(replica->Append(junk, *CheckBatch(junk)).ok());
    plane().BrokerAt(leader).replicas().Touch(*replica);
  }
  ASSERT_TRUE(more(5));
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    plane().Crash(node);
    plane().Start(node);
  }
  ASSERT_TRUE(more(5)) << "the coordinators that came after read the log";
  offsets.Stop();
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return offsets.idle(); }));
  EXPECT_EQ(recorder.Check(), "");
  cluster_.executor().Stop();
}

// A clean stop loses no acknowledgement, and its process leads nothing when it goes.
TEST_P(Scenario, ACleanStopMovesLeadershipFirst) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  for (int i = 0; i < 20; ++i) Send(leader, "before" + std::to_string(i));
  plane().StopBroker(leader);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(30), [&] { return !plane().IsUp(leader); }));
  EXPECT_NE(cluster_.LeaderOf("t", 0), leader);
  EXPECT_TRUE(*plane().DiskOf(leader).Exists("data/clean-stop"));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return open_ == 0; }));
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Scenario, testing::Range(1, 21));

}  // namespace
}  // namespace conclave::cluster_sim
