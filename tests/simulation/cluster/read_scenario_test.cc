// Readers in whole simulated clusters; names are those of docs/testing.md.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"
#include "conclave/v1/fetch.pb.h"
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

INSTANTIATE_TEST_SUITE_P(Seeds, ReadScenario, testing::Range(1, 7));

}  // namespace
}  // namespace conclave::cluster_sim
