// Readers in whole simulated clusters; names are those of docs/testing.md.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"
#include "common/rpc/group_methods.h"
#include "common/rpc/method.h"
#include "conclave/v1/fetch.pb.h"
#include "conclave/v1/group.pb.h"
#include "tests/history/check.h"
#include "tests/simulation/cluster/consumer_workload.h"
#include "tests/simulation/cluster/recorder.h"
#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

class ReadScenario : public Scenario {
 protected:
  // As the leader that is there answers at once.
  v1::ListOffsetsResult Latest(int leader) {
    v1::ListOffsetsRequest request;
    v1::ListOffsetsPartition* asked = request.add_partitions();
    asked->set_topic("t");
    asked->set_spec(v1::OFFSET_SPEC_LATEST);
    std::optional<absl::StatusOr<v1::ListOffsetsResponse>> answer;
    CallMethod<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(
        cluster_.transport(), ControlPlane::EndpointTextOf(leader), fetch_methods::kListOffsets,
        request, {.deadline = cluster_.scheduler().now() + kTimeout}, cluster_.executor(),
        [&](absl::StatusOr<v1::ListOffsetsResponse> response) { answer = std::move(response); });
    EXPECT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return answer.has_value(); }));
    if (!answer || !answer->ok()) return {};
    return (*answer)->partitions(0);
  }
};

// R36 (sarama#1181): a consumer at the tail, with no policy to fall back on, while the leader is
// killed fifty times. An answer out of range would fail its poll; a jump, either way, breaks it.
TEST_P(ReadScenario, R36AConsumerAtTheTailKeepsItsPositionThroughFiftyKilledLeaders) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  Recorder recorder(cluster_);
  ConsumerWorkload consumer(cluster_, cluster_.random(), recorder, "t", 1);
  consumer.Start();
  for (int round = 0; round < 50; ++round) {
    const int leader = cluster_.LeaderOf("t", 0);
    ASSERT_GE(leader, 0);
    for (int i = 0; i < 3; ++i) {
      Send(leader, std::to_string(round) + ":" + std::to_string(i), v1::ACKS_ALL,
           Duration::Seconds(5));
    }
    // The kill falls while records are appended, committed, or polled.
    cluster_.RunFor(Duration::Microseconds(cluster_.random().Between(0, 20'000)));
    if (cluster_.random().Chance(0.5)) {
      plane().Crash(leader);
    } else {
      plane().Kill(leader);
    }
    ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return cluster_.LeaderOf("t", 0) >= 0; }))
        << cluster_.violation();
    plane().Start(leader);
    ASSERT_TRUE(
        cluster_.RunUntil(kTimeout * 2, [this] { return open_ == 0 && cluster_.IsWhole("t"); }))
        << round << ": " << cluster_.violation() << plane().WhyNotWhole();
  }
  ExpectWholeAndNothingLost();
  EXPECT_TRUE(cluster_.RunUntil(kTimeout, [&] { return consumer.IsAtEnd(); }))
      << cluster_.violation();
  recorder.RecordEnd("t", 1);
  for (const auto& [rule, times] : history::Check(recorder.history()).counts) {
    EXPECT_EQ(rule, 5) << "of sends nothing is recorded, all else holds";
  }
  EXPECT_GT(acknowledged_.size(), 20u);
  cluster_.executor().Stop();
}

// KIP-207: a leader that does not know yet what is committed does not tell where the end is, for it
// could tell less than the leader before did.
TEST_P(ReadScenario, TheEndIsNotToldBeforeTheNewLeaderKnowsWhatIsCommitted) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  for (int i = 0; i < 5; ++i) SendAndWait(leader, "v" + std::to_string(i));
  EXPECT_EQ(Latest(leader).offset(), 5);
  // What the last one wrote is on the followers, and their high watermark is behind: they get no
  // word of the leader's from here on.
  Send(leader, "v5");
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return acknowledged_.size() == 6; }));
  plane().Crash(leader);
  int64_t least = 6;
  bool told = false;
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) >= 0; }));
  for (int i = 0; i < 200 && !told; ++i) {
    const int next = cluster_.LeaderOf("t", 0);
    if (next < 0) {
      cluster_.RunFor(Duration::Milliseconds(1));
      continue;
    }
    const v1::ListOffsetsResult latest = Latest(next);
    if (latest.error().code() == v1::OFFSET_NOT_AVAILABLE) continue;
    ASSERT_EQ(latest.error().code(), v1::NONE) << latest.error().message();
    EXPECT_GE(latest.offset(), least);
    told = true;
  }
  EXPECT_TRUE(told);
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

class CommittedReadScenario : public Scenario {
 protected:
  template <class Request, class Response>
  absl::StatusOr<Response> Call(int broker, const Method<Request, Response>& method,
                                const Request& request) {
    std::optional<absl::StatusOr<Response>> answer;
    CallMethod<Request, Response>(
        cluster_.transport(), ControlPlane::EndpointTextOf(broker), method, request,
        {.deadline = cluster_.scheduler().now() + kTimeout}, cluster_.executor(),
        [&](absl::StatusOr<Response> response) { answer = std::move(response); });
    EXPECT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return answer.has_value(); }));
    return answer ? *std::move(answer) : absl::StatusOr<Response>(absl::UnknownError("no answer"));
  }

  absl::Status Commit(int broker, int64_t offset) {
    v1::CommitOffsetsRequest request;
    request.set_group("g");
    request.set_member_epoch(-1);
    v1::OffsetCommit* commit = request.add_offsets();
    commit->set_topic("t");
    commit->set_offset(offset);
    const auto answer = Call<v1::CommitOffsetsRequest, v1::CommitOffsetsResponse>(
        broker, group_methods::kCommitOffsets, request);
    return answer.ok() ? StatusFromError(answer->offsets(0).error()) : answer.status();
  }

  absl::StatusOr<int64_t> Committed(int broker) {
    v1::FetchOffsetsRequest request;
    request.set_group("g");
    v1::GroupTopicPartitions* topic = request.add_topics();
    topic->set_topic("t");
    topic->add_partitions(0);
    const auto answer = Call<v1::FetchOffsetsRequest, v1::FetchOffsetsResponse>(
        broker, group_methods::kFetchOffsets, request);
    if (!answer.ok()) return answer.status();
    if (answer->offsets(0).error().code() != v1::NONE) {
      return StatusFromError(answer->offsets(0).error());
    }
    return answer->offsets(0).offset();
  }

  // Asks everybody until one commits; who it was.
  int CommitAnywhere(int64_t offset, int but = -1) {
    const MonotonicTime until = cluster_.scheduler().now() + kTimeout * 2;
    while (cluster_.scheduler().now() < until) {
      for (int broker = kFirstBroker; broker < plane().nodes(); ++broker) {
        if (broker != but && plane().IsUp(broker) && Commit(broker, offset).ok()) return broker;
      }
      cluster_.RunFor(Duration::Milliseconds(100));
    }
    return -1;
  }

  // The partition that has the group's records.
  int PartitionOfGroup(int coordinator) {
    for (int partition = 0; partition < 50; ++partition) {
      const PartitionId id = cluster_.IdOf("__consumer_offsets", partition);
      const broker::Replica* replica = plane().BrokerAt(coordinator).replicas().Find(id);
      if (replica->log().log_end() > Offset(0)) return partition;
    }
    return -1;
  }
};

// R6 for committed offsets: a coordinator that is the only one in sync is confirmed by itself;
// while it is cut off, those that left the ISR under its minimum are eligible (KIP-966), and
// commit.
TEST_P(CommittedReadScenario, R6AnOnlyMemberOfTheIsrReadsNoCommittedOffsets) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int coordinator = CommitAnywhere(1);
  ASSERT_GE(coordinator, 0);
  EXPECT_EQ(*Committed(coordinator), 1);
  const int partition = PartitionOfGroup(coordinator);
  ASSERT_GE(partition, 0);
  // As the coordinator knows it.
  const PartitionId id = cluster_.IdOf("__consumer_offsets", partition);
  const auto state = [&] { return plane().ImageOf(coordinator).FindPartition(id); };
  for (const int other : Others(coordinator)) plane().Crash(other);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return state() != nullptr && state()->isr.size() == 1 && !state()->elr.empty();
  }));
  for (int node = 0; node < plane().nodes(); ++node) {
    if (node == coordinator) continue;
    plane().wire().CutBothWays(ControlPlane::NameOf(coordinator), ControlPlane::NameOf(node));
  }
  for (const int other : Others(coordinator)) plane().Start(other);
  ASSERT_GE(CommitAnywhere(2, coordinator), 0) << cluster_.violation();
  const auto read = Committed(coordinator);
  ASSERT_FALSE(read.ok()) << "it reads " << *read << " after 2 was committed";
  EXPECT_EQ(ErrorCodeOf(read.status()), v1::NOT_ENOUGH_REPLICAS) << read.status();
  plane().wire().HealAll();
  ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return cluster_.IsWhole("t"); }));
  EXPECT_GE(CommitAnywhere(3), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CommittedReadScenario, testing::Range(1, 7));
INSTANTIATE_TEST_SUITE_P(Seeds, ReadScenario, testing::Range(1, 7));

}  // namespace
}  // namespace conclave::cluster_sim
