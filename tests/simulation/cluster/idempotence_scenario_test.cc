// Retries of idempotent producers (KIP-98): what was stored once is found again wherever the log
// goes, and stands there once; names are those of docs/testing.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/producer/producer.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "common/rpc/client.h"
#include "common/rpc/produce_methods.h"
#include "tests/simulation/cluster/client_host.h"
#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

// Of the test's client in the network.
constexpr char kClient[] = "client";

// Two records of the producer under test, named by their sequences.
constexpr int kRecordsOfBatch = 2;

struct Numbers {
  int32_t sequence = 0;
  int16_t epoch = 0;
  // Of the producer under test; others are counted up from it.
  int64_t producer = 0;
};

// Requests to one broker on one stream, which arrive in their order. Ends with it: answers that
// have not come by then are lost.
class Conversation : private MessageHandler<v1::ProduceResponse> {
 public:
  Conversation(Cluster& cluster, int broker)
      : stream_(std::make_unique<Stream>(cluster.transport(), ControlPlane::EndpointTextOf(broker),
                                         produce_methods::kProduceStream, CallOptions{},
                                         cluster.executor(),
                                         static_cast<MessageHandler<v1::ProduceResponse>*>(this))) {
  }

  void Send(const Buffer& batch) {
    v1::ProduceRequest request;
    request.set_correlation_id(sent_++);
    request.set_acks(v1::ACKS_ALL);
    request.set_timeout_ms(static_cast<int32_t>(kTimeout.milliseconds()));
    v1::ProducePartition* partition = request.add_partitions();
    partition->set_topic("t");
    partition->set_batch(batch.ToString());
    stream_->Send(request);
  }
  bool done() const { return answers_.size() == static_cast<size_t>(sent_) || closed_; }
  // By the order of Send.
  const std::map<int64_t, v1::ProducePartitionResult>& answers() const { return answers_; }

 private:
  using Stream = TypedClientStream<v1::ProduceRequest, v1::ProduceResponse>;

  void OnMessage(v1::ProduceResponse response) override {
    ASSERT_EQ(response.partitions_size(), 1);
    EXPECT_TRUE(answers_.emplace(response.correlation_id(), response.partitions(0)).second);
  }
  void OnClosed(absl::Status) override { closed_ = true; }

  std::unique_ptr<Stream> stream_;
  int64_t sent_ = 0;
  bool closed_ = false;
  std::map<int64_t, v1::ProducePartitionResult> answers_;
};

class IdempotenceScenario : public Scenario {
 protected:
  static std::string Value(const Numbers& numbers, int record) {
    return "p" + std::to_string(numbers.producer) + " " + std::to_string(numbers.sequence + record);
  }
  Buffer Batch(const Numbers& numbers) {
    BatchBuilder builder;
    for (int i = 0; i < kRecordsOfBatch; ++i) {
      const std::string value = Value(numbers, i);
      RecordView record;
      record.timestamp_ms = cluster_.executor().clock().WallNow().unix_millis();
      record.value = value;
      builder.Add(record);
    }
    builder.SetProducer(ProducerId(producer_ + numbers.producer), ProducerEpoch(numbers.epoch),
                        numbers.sequence);
    return *builder.Finish();
  }

  void InitProducer() {
    std::optional<absl::StatusOr<v1::InitProducerIdResponse>> answer;
    CallMethod<v1::InitProducerIdRequest, v1::InitProducerIdResponse>(
        cluster_.transport(), ControlPlane::EndpointTextOf(kFirstBroker),
        produce_methods::kInitProducerId, {}, {.deadline = cluster_.scheduler().now() + kTimeout},
        cluster_.executor(),
        [&](absl::StatusOr<v1::InitProducerIdResponse> response) { answer = std::move(response); });
    ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return answer.has_value(); }));
    ASSERT_TRUE(answer->ok()) << answer->status();
    ASSERT_EQ((*answer)->producer_epoch(), 0);
    producer_ = (*answer)->producer_id();
  }

  // What the broker answers, asked one after the other.
  v1::ProducePartitionResult Ask(int broker, const Numbers& numbers) {
    Conversation conversation(cluster_, broker);
    conversation.Send(Batch(numbers));
    EXPECT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return conversation.done(); }));
    if (conversation.answers().empty()) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return conversation.answers().at(0);
  }
  v1::ErrorCode CodeOf(int broker, const Numbers& numbers) {
    return Ask(broker, numbers).error().code();
  }

  broker::Replica& ReplicaAt(int node) {
    return *plane().BrokerAt(node).replicas().Find(cluster_.IdOf("t", 0));
  }

  // A record of somebody else, a batch that is acknowledged, and then five that are in flight at
  // the same time, stored, and not answered: sequences 2 to 11 at offsets 3 to 12.
  void LoseFiveAnswers(const std::map<std::string, std::string>& configs = {}) {
    ASSERT_EQ(cluster_.CreateTopic("t", 1, 3, configs), "");
    const int leader = cluster_.LeaderOf("t", 0);
    InitProducer();
    SendAndWait(leader, "other");
    EXPECT_EQ(Ask(leader, {.sequence = 0}).base_offset(), 1);
    Conversation conversation(cluster_, leader);
    plane().wire().Cut(ControlPlane::NameOf(leader), kClient);
    for (int i = 1; i <= 5; ++i) conversation.Send(Batch({.sequence = i * kRecordsOfBatch}));
    ASSERT_TRUE(cluster_.RunUntil(
        kTimeout, [&] { return ReplicaAt(leader).high_watermark() == Offset(13); }));
    EXPECT_TRUE(conversation.answers().empty());
    plane().network().BreakStreams(ControlPlane::NameOf(leader), kClient);
    plane().wire().HealAll();
    EXPECT_TRUE(conversation.answers().empty());
  }

  // All five again, in flight at the same time: none is stored again.
  void ExpectRepeatsAreFound(int leader) {
    ASSERT_GE(leader, 0);
    const Offset end = ReplicaAt(leader).log().log_end();
    Conversation conversation(cluster_, leader);
    for (int i = 1; i <= 5; ++i) conversation.Send(Batch({.sequence = i * kRecordsOfBatch}));
    ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [&] { return conversation.done(); }));
    ASSERT_EQ(conversation.answers().size(), 5u);
    for (int i = 1; i <= 5; ++i) {
      const v1::ProducePartitionResult& answer = conversation.answers().at(i - 1);
      EXPECT_EQ(answer.error().code(), v1::NONE) << answer.error().message();
      EXPECT_TRUE(answer.duplicate()) << i;
      EXPECT_EQ(answer.base_offset(), 1 + i * kRecordsOfBatch);
    }
    EXPECT_EQ(ReplicaAt(leader).log().log_end(), end);
  }

  // What is no repeat of the last five is refused by name, and stores nothing.
  void ExpectOthersAreRefused(int leader) {
    const Offset end = ReplicaAt(leader).log().log_end();
    EXPECT_EQ(CodeOf(leader, {.sequence = 0}), v1::OUT_OF_ORDER_SEQUENCE_NUMBER) << "the sixth";
    EXPECT_EQ(CodeOf(leader, {.sequence = 3}), v1::OUT_OF_ORDER_SEQUENCE_NUMBER) << "across two";
    EXPECT_EQ(CodeOf(leader, {.sequence = 14}), v1::OUT_OF_ORDER_SEQUENCE_NUMBER) << "a gap";
    EXPECT_EQ(CodeOf(leader, {.sequence = 12, .epoch = 1}), v1::OUT_OF_ORDER_SEQUENCE_NUMBER)
        << "a new epoch that does not start at 0";
    EXPECT_EQ(CodeOf(leader, {.sequence = 12, .producer = 1000}), v1::UNKNOWN_PRODUCER_ID);
    EXPECT_EQ(ReplicaAt(leader).log().log_end(), end);
  }

  // The producer goes on where it was, and then in a new epoch, after which the old one is refused.
  void ExpectGoesOn(int leader) {
    const Offset end = ReplicaAt(leader).log().log_end();
    const auto expect_new = [&](const Numbers& numbers, Offset at) {
      const v1::ProducePartitionResult answer = Ask(leader, numbers);
      EXPECT_EQ(answer.error().code(), v1::NONE) << answer.error().message();
      EXPECT_FALSE(answer.duplicate());
      EXPECT_EQ(Offset(answer.base_offset()), at);
    };
    expect_new({.sequence = 12}, end);
    expect_new({.sequence = 0, .epoch = 1}, end + 2);
    EXPECT_EQ(CodeOf(leader, {.sequence = 14}), v1::INVALID_PRODUCER_EPOCH);
    EXPECT_EQ(CodeOf(leader, {.sequence = 12}), v1::INVALID_PRODUCER_EPOCH) << "a zombie's repeat";
    EXPECT_EQ(ReplicaAt(leader).log().log_end(), end + 4);
  }

  // Records of the first seven batches that the log still has, each once, in order, as they were.
  void ExpectOneCopy() {
    const auto all = cluster_.ReadAll("t", 0);
    const auto start =
        static_cast<size_t>(ReplicaAt(cluster_.LeaderOf("t", 0)).log().log_start().value());
    for (int sequence = 0; sequence < 12; ++sequence) {
      const size_t offset = 1 + static_cast<size_t>(sequence);
      const std::string value = Value({.sequence = sequence}, 0);
      // The first batch's numbers are used again in the next epoch.
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(sequence < 2 ? 0 : start);
      const auto copies = std::count(from, all.end(), value);
      if (offset >= start) {
        EXPECT_EQ(all.at(offset), value);
      }
      if (sequence >= 2) {
        EXPECT_EQ(copies, offset >= start ? 1 : 0) << value;
      }
    }
  }

  void ExpectAllOfIt(int leader) {
    ExpectRepeatsAreFound(leader);
    ExpectOthersAreRefused(leader);
    ExpectRepeatsAreFound(leader);
    ExpectOneCopy();
  }
  void Conclude() {
    ExpectAllOfIt(cluster_.LeaderOf("t", 0));
    ExpectGoesOn(cluster_.LeaderOf("t", 0));
    ExpectWholeAndNothingLost();
    ExpectOneCopy();
  }

  void AwaitWhole() {
    ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [this] { return cluster_.IsWhole("t"); }))
        << cluster_.violation() << plane().WhyNotWhole();
  }
  // The leader loses power; another leads.
  void FailOver() {
    const int leader = cluster_.LeaderOf("t", 0);
    plane().Crash(leader);
    ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) >= 0; }));
    EXPECT_NE(cluster_.LeaderOf("t", 0), leader);
  }
  // By the loss of whoever leads instead.
  void MakeLead(int node) {
    while (cluster_.LeaderOf("t", 0) != node) {
      FailOver();
      if (testing::Test::HasFatalFailure()) return;
    }
    for (const int other : Others(node)) {
      if (!plane().IsUp(other)) plane().Start(other);
    }
    AwaitWhole();
    ASSERT_EQ(cluster_.LeaderOf("t", 0), node);
  }
  void StopAndStartInTurn() {
    for (int node = kFirstBroker; node < plane().nodes(); ++node) {
      plane().StopBroker(node);
      ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !plane().IsUp(node); }));
      plane().Start(node);
      AwaitWhole();
    }
  }
  template <class End>
  void EndAndStartAll(const End& end) {
    for (int node = 0; node < plane().nodes(); ++node) end(node);
    for (int node = 0; node < plane().nodes(); ++node) plane().Start(node);
    AwaitWhole();
  }
  // Until the batches of the producer have left every log.
  void AwaitRemoval() {
    ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(90), [&] {
      for (int node = kFirstBroker; node < plane().nodes(); ++node) {
        if (plane().IsUp(node) && ReplicaAt(node).log().log_start() <= Offset(13)) return false;
      }
      return true;
    }));
  }

  int64_t producer_ = 0;
};

TEST_P(IdempotenceScenario, R31FiveInFlightWithoutAnswersAreFoundWhereTheyAre) {
  LoseFiveAnswers();
  Conclude();
}

TEST_P(IdempotenceScenario, R31TheClientSendsFiveAgainAndEachIsThereOnce) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "other");
  ClientHost host(cluster_.scheduler(), plane().network(), "producer");
  ProducerOptions options;
  options.bootstrap = plane().BrokerEndpoints();
  auto producer =
      std::make_unique<Producer>(options, host.transport(), host.executor(), Random(GetParam()));
  std::vector<std::pair<std::string, Delivery>> told;
  const auto send = [&](const std::string& value) {
    ProducerRecord record;
    record.topic = "t";
    record.partition = PartitionIndex(0);
    record.value = value;
    ASSERT_TRUE(
        producer
            ->Send(record,
                   [&told, value](const Delivery& delivery) { told.emplace_back(value, delivery); })
            .ok());
    // A batch of its own.
    cluster_.RunFor(Duration::Milliseconds(1));
  };
  const auto await_told = [&](size_t count) {
    return cluster_.RunUntil(kTimeout * 2, [&, count] { return told.size() == count; });
  };
  send("0");
  ASSERT_TRUE(await_told(1));
  plane().wire().Cut(ControlPlane::NameOf(leader), host.name());
  for (int i = 1; i <= 7; ++i) send(std::to_string(i));
  ASSERT_TRUE(
      cluster_.RunUntil(kTimeout, [&] { return ReplicaAt(leader).high_watermark() >= Offset(7); }));
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(ReplicaAt(leader).log().log_end(), Offset(7)) << "five in flight, and no more";
  EXPECT_EQ(told.size(), 1u);
  plane().network().BreakStreams(ControlPlane::NameOf(leader), host.name());
  plane().wire().HealAll();
  ASSERT_TRUE(await_told(8));
  for (int i = 0; i <= 7; ++i) {
    const auto& [value, delivery] = told.at(static_cast<size_t>(i));
    EXPECT_EQ(value, std::to_string(i));
    EXPECT_TRUE(delivery.status.ok()) << delivery.status;
    EXPECT_EQ(delivery.offset, Offset(1 + i));
    EXPECT_EQ(delivery.duplicate, i >= 1 && i <= 5) << i;
  }
  const std::vector<std::optional<std::string>> expected = {"other", "0", "1", "2", "3",
                                                            "4",     "5", "6", "7"};
  EXPECT_EQ(cluster_.ReadAll("t", 0), expected);
  host.executor().Stop();
  ExpectWholeAndNothingLost();
}

// A repeat of what is not committed yet is answered once it is, and not before.
TEST_P(IdempotenceScenario, R31ARepeatWaitsForTheReplicasOfTheFirst) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  InitProducer();
  SendAndWait(leader, "other");
  for (const int other : Others(leader)) {
    plane().wire().CutBothWays(ControlPlane::NameOf(leader), ControlPlane::NameOf(other));
  }
  Conversation first(cluster_, leader);
  first.Send(Batch({.sequence = 0}));
  ASSERT_TRUE(
      cluster_.RunUntil(kTimeout, [&] { return ReplicaAt(leader).log().log_end() == Offset(3); }));
  Conversation second(cluster_, leader);
  second.Send(Batch({.sequence = 0}));
  cluster_.RunFor(Duration::Seconds(2));
  EXPECT_TRUE(first.answers().empty());
  EXPECT_TRUE(second.answers().empty());
  plane().wire().HealAll();
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return first.done() && second.done(); }));
  for (const Conversation* one : {&first, &second}) {
    ASSERT_EQ(one->answers().size(), 1u);
    const v1::ProducePartitionResult& answer = one->answers().at(0);
    EXPECT_EQ(answer.error().code(), v1::NONE) << answer.error().message();
    EXPECT_EQ(answer.base_offset(), 1);
    EXPECT_EQ(answer.duplicate(), one == &second);
  }
  EXPECT_EQ(cluster_.ReadAll("t", 0).size(), 3u);
  ExpectWholeAndNothingLost();
}

// What is committed is no less so because replicas were lost since.
TEST_P(IdempotenceScenario, R31ARepeatIsAnsweredUnderTheMinimumIsr) {
  LoseFiveAnswers();
  const int leader = cluster_.LeaderOf("t", 0);
  for (const int other : Others(leader)) plane().Crash(other);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->isr.size() == 1;
  }));
  cluster_.RunFor(Duration::Seconds(1));
  ExpectRepeatsAreFound(leader);
  EXPECT_EQ(CodeOf(leader, {.sequence = 12}), v1::NOT_ENOUGH_REPLICAS);
  ExpectRepeatsAreFound(leader);
  for (const int other : Others(leader)) plane().Start(other);
  AwaitWhole();
  Conclude();
}

TEST_P(IdempotenceScenario, R32RepeatsAreFoundAfterFailover) {
  LoseFiveAnswers();
  const int first = cluster_.LeaderOf("t", 0);
  FailOver();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  plane().Start(first);
  AwaitWhole();
  const int second = cluster_.LeaderOf("t", 0);
  FailOver();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  plane().Start(second);
  AwaitWhole();
  Conclude();
}

// What was cut off a log is not taken for stored, and what took its place is known where it is.
TEST_P(IdempotenceScenario, R32AfterTruncationWhatWasCutOffIsNoRepeat) {
  LoseFiveAnswers();
  const int deposed = cluster_.LeaderOf("t", 0);
  for (int node = 0; node < plane().nodes(); ++node) {
    if (node == deposed) continue;
    plane().wire().CutBothWays(ControlPlane::NameOf(deposed), ControlPlane::NameOf(node));
  }
  Conversation tail(cluster_, deposed);
  tail.Send(Batch({.sequence = 12}));
  tail.Send(Batch({.sequence = 0, .producer = 1}));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout,
                                [&] { return ReplicaAt(deposed).log().log_end() == Offset(17); }));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return cluster_.LeaderOf("t", 0) >= 0 && cluster_.LeaderOf("t", 0) != deposed;
  }));
  const int leader = cluster_.LeaderOf("t", 0);
  ExpectRepeatsAreFound(leader);
  SendAndWait(leader, "elsewhere");
  const v1::ProducePartitionResult again = Ask(leader, {.sequence = 12});
  EXPECT_EQ(again.error().code(), v1::NONE) << again.error().message();
  EXPECT_FALSE(again.duplicate());
  EXPECT_EQ(again.base_offset(), 14);
  plane().wire().HealAll();
  AwaitWhole();
  for (const auto& [request, answer] : tail.answers()) {
    EXPECT_NE(answer.error().code(), v1::NONE) << request;
  }
  EXPECT_GE(cluster_.counters().truncations, 1u);

  MakeLead(deposed);
  EXPECT_EQ(ReplicaAt(deposed).log().log_end(), Offset(16));
  for (const int32_t sequence : {4, 6, 8, 10, 12}) {
    const v1::ProducePartitionResult found = Ask(deposed, {.sequence = sequence});
    EXPECT_EQ(found.error().code(), v1::NONE) << found.error().message();
    EXPECT_TRUE(found.duplicate()) << sequence;
    EXPECT_EQ(found.base_offset(), sequence == 12 ? 14 : 1 + sequence);
  }
  EXPECT_EQ(CodeOf(deposed, {.sequence = 2, .producer = 1}), v1::UNKNOWN_PRODUCER_ID)
      << "its only batch was cut off";
  const v1::ProducePartitionResult fresh = Ask(deposed, {.sequence = 0, .producer = 1});
  EXPECT_EQ(fresh.error().code(), v1::NONE) << fresh.error().message();
  EXPECT_FALSE(fresh.duplicate());
  EXPECT_EQ(fresh.base_offset(), 16);
  ExpectOneCopy();
  ExpectWholeAndNothingLost();
}

TEST_P(IdempotenceScenario, R32RepeatsAreFoundAfterRetentionTookThem) {
  LoseFiveAnswers({{"segment.bytes", "1024"}, {"retention.bytes", "3000"}});
  for (int i = 0; i < 100; ++i) SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
  AwaitRemoval();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  StopAndStartInTurn();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  EndAndStartAll([this](int node) { plane().Crash(node); });
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  FailOver();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  ExpectGoesOn(cluster_.LeaderOf("t", 0));
}

// A replica whose log begins where the leader's does has never seen them, or has dropped them.
TEST_P(IdempotenceScenario, R32RepeatsAreFoundByAReplicaThatBeganAnewAfterRetention) {
  LoseFiveAnswers({{"segment.bytes", "1024"}, {"retention.bytes", "3000"}});
  const int away = Others(cluster_.LeaderOf("t", 0)).front();
  plane().Crash(away);
  for (int i = 0; i < 100; ++i) SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
  AwaitRemoval();
  plane().Start(away);
  AwaitWhole();
  EXPECT_EQ(cluster_.counters().begun_anew, 1u);
  MakeLead(away);
  ExpectAllOfIt(away);
  EndAndStartAll([this](int node) { plane().Crash(node); });
  MakeLead(away);
  ExpectAllOfIt(away);
  ExpectGoesOn(away);
}

TEST_P(IdempotenceScenario, R32RepeatsAreFoundAfterRestarts) {
  LoseFiveAnswers();
  StopAndStartInTurn();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  EndAndStartAll([this](int node) { plane().Kill(node); });
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  EndAndStartAll([this](int node) { plane().Crash(node); });
  Conclude();
}

// Others go on meanwhile, and all it wrote grows too old for the log.
TEST_P(IdempotenceScenario, R32RepeatsAreFoundAfterALongIdleTime) {
  LoseFiveAnswers({{"segment.bytes", "1024"}, {"retention.ms", "60000"}});
  for (int i = 0; i < 60; ++i) {
    SendAndWait(cluster_.LeaderOf("t", 0), "v" + std::to_string(i));
    cluster_.RunFor(Duration::Seconds(10));
  }
  AwaitRemoval();
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  EndAndStartAll([this](int node) { plane().Crash(node); });
  ExpectAllOfIt(cluster_.LeaderOf("t", 0));
  ExpectGoesOn(cluster_.LeaderOf("t", 0));
}

INSTANTIATE_TEST_SUITE_P(Seeds, IdempotenceScenario, testing::Range(1, 11));

}  // namespace
}  // namespace conclave::cluster_sim
