// Records deleted by offset (KIP-107) in whole simulated clusters: what was answered as deleted is
// served by nobody again, whoever restarts, comes back or leads.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/admin/admin_client.h"
#include "client/consumer/consumer.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"
#include "conclave/v1/admin.pb.h"
#include "conclave/v1/fetch.pb.h"
#include "tests/simulation/cluster/offsets_workload.h"
#include "tests/simulation/cluster/recorder.h"
#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

class DeleteRecords : public Scenario {
 protected:
  // Small segments: an offset in between lies within one.
  void MakeTopic(int records) {
    ASSERT_EQ(cluster_.CreateTopic("t", 1, 3, {{"segment.bytes", "1024"}}), "");
    for (int i = 0; i < records; ++i) {
      SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
    }
    ASSERT_EQ(acknowledged_.size(), static_cast<size_t>(records));
  }
  v1::DeleteRecordsResult Delete(int64_t before, const std::string& topic = "t", int partition = 0,
                                 Duration timeout = kTimeout) {
    AdminClient::Options options;
    options.bootstrap = plane().BrokerEndpoints();
    options.timeout = timeout;
    // The first that is asked may be one that stands still.
    options.attempt_timeout = timeout / 6;
    AdminClient admin(options, cluster_.transport(), cluster_.executor(), Random(7));
    v1::DeleteRecordsRequest request;
    v1::DeleteRecordsPartition* asked = request.add_partitions();
    asked->set_topic(topic);
    asked->set_partition(partition);
    asked->set_before_offset(before);
    std::optional<absl::StatusOr<v1::DeleteRecordsResponse>> answer;
    admin.DeleteRecords(request, [&](absl::StatusOr<v1::DeleteRecordsResponse> response) {
      answer = std::move(response);
    });
    EXPECT_TRUE(
        cluster_.RunUntil(timeout + Duration::Seconds(10), [&] { return answer.has_value(); }));
    if (!answer || !answer->ok()) {
      ADD_FAILURE() << (answer ? Describe(answer->status()) : "no answer");
      return {};
    }
    EXPECT_EQ((*answer)->partitions_size(), 1);
    return (*answer)->partitions(0);
  }
  const PartitionLog& LogOf(int node) {
    return plane().BrokerAt(node).replicas().Find(cluster_.IdOf("t", 0))->log();
  }
  void ExpectStartEverywhere(Offset start) {
    for (int node = kFirstBroker; node < plane().nodes(); ++node) {
      EXPECT_EQ(LogOf(node).log_start(), start) << node;
    }
  }
  v1::FetchPartitionResult FetchAt(int64_t offset) {
    v1::FetchRequest request;
    request.set_decode(true);
    request.set_max_wait_ms(1);
    v1::FetchPartition* asked = request.add_partitions();
    asked->set_topic("t");
    asked->set_offset(offset);
    return Call<v1::FetchRequest, v1::FetchResponse>(fetch_methods::kFetch, request).partitions(0);
  }
  v1::ListOffsetsResult Earliest() {
    v1::ListOffsetsRequest request;
    v1::ListOffsetsPartition* asked = request.add_partitions();
    asked->set_topic("t");
    asked->set_spec(v1::OFFSET_SPEC_EARLIEST);
    return Call<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(fetch_methods::kListOffsets,
                                                                 request)
        .partitions(0);
  }
  void ExpectServedFrom(int64_t start) {
    EXPECT_EQ(FetchAt(start - 1).error().code(), v1::OFFSET_OUT_OF_RANGE);
    const v1::FetchPartitionResult first = FetchAt(start);
    ASSERT_GT(first.records_size(), 0);
    EXPECT_EQ(first.records(0).value(), "v" + std::to_string(start));
    EXPECT_EQ(Earliest().offset(), start);
  }
  void WaitForLeader() {
    ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return cluster_.LeaderOf("t", 0) >= 0; }));
  }
  void WaitUntilWhole() {
    ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [this] { return cluster_.IsWhole("t"); }))
        << cluster_.violation() << plane().WhyNotWhole();
  }

 private:
  template <class Request, class Response>
  Response Call(const Method<Request, Response>& method, const Request& request) {
    std::optional<absl::StatusOr<Response>> answer;
    CallMethod<Request, Response>(
        cluster_.transport(), ControlPlane::EndpointTextOf(cluster_.LeaderOf("t", 0)), method,
        request, {.deadline = cluster_.scheduler().now() + kTimeout}, cluster_.executor(),
        [&](absl::StatusOr<Response> response) { answer = std::move(response); });
    EXPECT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return answer.has_value(); }));
    EXPECT_TRUE(answer->ok()) << answer->status();
    return **answer;
  }
};

TEST_P(DeleteRecords, WhatIsBelowIsGoneOnEveryReplicaOverPowerCutsAndLeaders) {
  MakeTopic(40);
  const size_t segments = LogOf(cluster_.LeaderOf("t", 0)).segment_count();
  const v1::DeleteRecordsResult deleted = Delete(25);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  EXPECT_EQ(deleted.log_start_offset(), 25);
  // At the moment of the answer, not some time later.
  ExpectStartEverywhere(Offset(25));
  EXPECT_LT(LogOf(cluster_.LeaderOf("t", 0)).segment_count(), segments);
  for (int node = 0; node < plane().nodes(); ++node) plane().Crash(node);
  for (int node = 0; node < plane().nodes(); ++node) plane().Start(node);
  WaitUntilWhole();
  ExpectStartEverywhere(Offset(25));
  ExpectServedFrom(25);
  std::set<int> led;
  for (int round = 0; round < 4; ++round) {
    const int leader = cluster_.LeaderOf("t", 0);
    led.insert(leader);
    plane().Crash(leader);
    WaitForLeader();
    ExpectServedFrom(25);
    plane().Start(leader);
    WaitUntilWhole();
  }
  EXPECT_GE(led.size(), 2u);
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
}

TEST_P(DeleteRecords, TheHighWatermarkIsAsFarAsItGoes) {
  MakeTopic(10);
  const v1::DeleteRecordsResult beyond = Delete(11);
  EXPECT_EQ(beyond.error().code(), v1::OFFSET_OUT_OF_RANGE);
  EXPECT_NE(beyond.error().message().find("the high watermark is 10"), std::string::npos)
      << beyond.error().message();
  EXPECT_EQ(Delete(-2).error().code(), v1::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(Delete(5, "t", 1).error().code(), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(Delete(5, "u").error().code(), v1::UNKNOWN_TOPIC_OR_PARTITION);
  ExpectStartEverywhere(Offset(0));
  EXPECT_EQ(Delete(-1).log_start_offset(), 10);
  ExpectStartEverywhere(Offset(10));
  // Again, and less: nothing to do.
  EXPECT_EQ(Delete(10).log_start_offset(), 10);
  const v1::DeleteRecordsResult less = Delete(3);
  EXPECT_EQ(less.error().code(), v1::NONE);
  EXPECT_EQ(less.log_start_offset(), 10);
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    EXPECT_EQ(LogOf(node).size_bytes(), 0u) << node;
  }
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
  EXPECT_EQ(FetchAt(10).records(0).value(), "last");
}

TEST_P(DeleteRecords, AReplicaThatStandsStillIsNamedAndThenNotWaitedFor) {
  MakeTopic(20);
  const int leader = cluster_.LeaderOf("t", 0);
  const int still = Others(leader).front();
  plane().Pause(still);
  const v1::DeleteRecordsResult late = Delete(15, "t", 0, Duration::Seconds(3));
  EXPECT_EQ(late.error().code(), v1::REQUEST_TIMED_OUT);
  EXPECT_NE(late.error().message().find("broker " + std::to_string(still)), std::string::npos)
      << late.error().message();
  EXPECT_EQ(late.log_start_offset(), 15) << "the leader has moved";
  // Its session ends, and with it its place among the in-sync replicas.
  const v1::DeleteRecordsResult deleted = Delete(15);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  EXPECT_FALSE(cluster_.StateOf("t", 0)->InIsr(BrokerId(still)));
  plane().Resume(still);
  WaitUntilWhole();
  ExpectStartEverywhere(Offset(15));
}

// It has the records still when it comes back, and must not lead before it has removed them.
TEST_P(DeleteRecords, AReplicaThatWasAwayRemovesThemBeforeItIsInSync) {
  MakeTopic(20);
  const int leader = cluster_.LeaderOf("t", 0);
  const int away = Others(leader).front();
  plane().Crash(away);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && !state->InIsr(BrokerId(away));
  }));
  const v1::DeleteRecordsResult deleted = Delete(13);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  plane().Start(away);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->InIsr(BrokerId(away));
  }));
  EXPECT_EQ(LogOf(away).log_start(), Offset(13));
}

// Nothing else would sync them for an hour.
TEST_P(DeleteRecords, RecordsThatWereNeverSyncedAreDeletedToo) {
  ASSERT_EQ(
      cluster_.CreateTopic("t", 1, 3, {{"flush.policy", "replicated"}, {"flush.ms", "3600000"}}),
      "");
  for (int i = 0; i < 20; ++i) SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
  const v1::DeleteRecordsResult deleted = Delete(15);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  EXPECT_EQ(deleted.log_start_offset(), 15);
  ExpectStartEverywhere(Offset(15));
  ExpectServedFrom(15);
}

// A batch is copied as a whole, also to a replica that begins anew.
TEST_P(DeleteRecords, WithinABatchAReplicaThatBeginsAnewGetsAllThatIsLeft) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3, {{"segment.bytes", "1024"}}), "");
  const int leader = cluster_.LeaderOf("t", 0);
  const int away = Others(leader).front();
  plane().Crash(away);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && !state->InIsr(BrokerId(away));
  }));
  for (int i = 0; i < 30; i += 3) {
    bool stored = false;
    const auto value = [i](int more) { return "v" + std::to_string(i + more); };
    cluster_.Produce(leader, "t", 0, {value(0), value(1), value(2)}, v1::ACKS_ALL, kTimeout,
                     [&](const absl::Status& status, const auto&) { stored = status.ok(); });
    ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return stored; }));
  }
  const v1::DeleteRecordsResult deleted = Delete(16);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  plane().Start(away);
  WaitUntilWhole();
  ExpectStartEverywhere(Offset(16));
  plane().Crash(leader);
  WaitForLeader();
  ExpectServedFrom(16);
  plane().Start(leader);
  ExpectWholeAndNothingLost();
}

// The leader dies while it waits for the others: the client asks the next one.
TEST_P(DeleteRecords, ALeaderThatDiesMeanwhileIsReplaced) {
  MakeTopic(20);
  const int leader = cluster_.LeaderOf("t", 0);
  cluster_.scheduler().After(Duration::Microseconds(cluster_.random().Between(0, 8'000)),
                             [this, leader] { plane().Crash(leader); });
  const v1::DeleteRecordsResult deleted = Delete(17);
  EXPECT_EQ(deleted.error().code(), v1::NONE) << deleted.error().message();
  WaitForLeader();
  ExpectServedFrom(17);
  if (!plane().IsUp(leader)) plane().Start(leader);
  WaitUntilWhole();
  ExpectStartEverywhere(Offset(17));
}

TEST_P(DeleteRecords, AConsumerBelowIsResetByItsPolicyAndToldSo) {
  MakeTopic(20);
  EXPECT_EQ(Delete(12).log_start_offset(), 12);
  std::vector<ConsumerEvent> events;
  ConsumerOptions options;
  options.bootstrap = plane().BrokerEndpoints();
  options.reset = ResetPolicy::kEarliest;
  options.on_event = [&](const ConsumerEvent& event) { events.push_back(event); };
  Consumer consumer(options, cluster_.transport(), cluster_.executor(), Random(5));
  consumer.Assign({{{"t", PartitionIndex(0)}, StartAt::At(Offset(5))}});
  std::vector<Offset> read;
  consumer.Poll(100, MonotonicTime::Never(), [&](const Consumer::PollResult& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    for (const RecordView& record : result->at(0).records) read.push_back(record.offset);
  });
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !read.empty(); }));
  EXPECT_EQ(read.front(), Offset(12));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ConsumerEvent::Kind::kReset);
  EXPECT_EQ(events[0].from, Offset(5));
  EXPECT_EQ(events[0].to, Offset(12));
}

TEST_P(DeleteRecords, TheClustersOwnTopicsAreRefused) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  Recorder recorder(cluster_);
  OffsetsWorkload offsets(cluster_, cluster_.random(), recorder, "t");
  offsets.Start();
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return offsets.counters().committed > 0; }));
  const v1::DeleteRecordsResult refused = Delete(-1, "__consumer_offsets");
  EXPECT_EQ(refused.error().code(), v1::INVALID_TOPIC) << refused.error().message();
  offsets.Stop();
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return offsets.idle(); }));
  cluster_.executor().Stop();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeleteRecords, testing::Range(1, 9));

}  // namespace
}  // namespace conclave::cluster_sim
