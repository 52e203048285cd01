#include "client/producer/producer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/testing/fake_cluster.h"
#include "common/error/error.h"
#include "common/record/batch_reader.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;

class ProducerTest : public testing::Test {
 protected:
  void Make() {
    options_.bootstrap = cluster_.bootstrap();
    producer_ =
        std::make_unique<Producer>(options_, cluster_.transport(), cluster_.executor(), Random(5));
  }
  static ProducerRecord Record(const std::string& value, int partition = 0) {
    ProducerRecord record;
    record.topic = "t";
    record.partition = PartitionIndex(partition);
    record.value = value;
    return record;
  }
  absl::Status Send(const std::string& value, int partition = 0) {
    return SendRecord(Record(value, partition));
  }
  absl::Status SendRecord(ProducerRecord record) {
    const std::string value = record.value.value_or("");
    return producer_->Send(std::move(record), [this, value](const Delivery& delivery) {
      order_.push_back(value);
      EXPECT_TRUE(deliveries_.emplace(value, delivery).second) << value << " told twice";
    });
  }
  // Sends one record each millisecond, so that each is a batch of its own.
  void SendSlowly(int from, int to, int partition = 0) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(Send("r" + std::to_string(i), partition).ok());
      cluster_.RunFor(Duration::Milliseconds(1));
    }
  }
  // Afterwards the partition's leader and the producer's id are known.
  void WarmUp(int partition = 0) {
    bool done = false;
    ASSERT_TRUE(
        producer_->Send(Record("warm", partition), [&](const Delivery&) { done = true; }).ok());
    ASSERT_TRUE(cluster_.RunUntil([&] { return done; }));
    cluster_.RunFor(Duration::Milliseconds(10));
  }
  bool Done(size_t count, Duration limit = Duration::Seconds(60)) {
    return cluster_.RunUntil([&] { return deliveries_.size() == count; }, limit);
  }
  v1::ErrorCode CodeOf(const std::string& value) {
    return ErrorCodeOf(deliveries_.at(value).status);
  }
  static std::vector<std::string> Numbered(int from, int to) {
    std::vector<std::string> values;
    for (int i = from; i < to; ++i) values.push_back("r" + std::to_string(i));
    return values;
  }
  // Every acknowledged record stands at the offset it was told, in its partition.
  void ExpectAcknowledgedStored() {
    for (const auto& [value, delivery] : deliveries_) {
      if (!delivery.status.ok()) continue;
      const auto values = cluster_.world().At("t", delivery.partition.partition.value()).Values();
      ASSERT_LT(static_cast<size_t>(delivery.offset.value()), values.size());
      EXPECT_EQ(values[static_cast<size_t>(delivery.offset.value())], value);
    }
  }

  FakeCluster cluster_;
  ProducerOptions options_;
  std::unique_ptr<Producer> producer_;
  std::map<std::string, Delivery> deliveries_;
  std::vector<std::string> order_;
};

TEST_F(ProducerTest, SendsAndTellsWhere) {
  cluster_.world().CreateTopic("t", 3);
  Make();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Send("r" + std::to_string(i), i % 3).ok());
  ASSERT_TRUE(Done(30));
  EXPECT_EQ(deliveries_.at("r4").partition, (TopicPartition{"t", PartitionIndex(1)}));
  EXPECT_EQ(deliveries_.at("r4").offset, Offset(1));
  EXPECT_EQ(deliveries_.at("r4").timestamp_ms,
            cluster_.world().At("t", 1).batches()[0].header.base_timestamp_ms);
  ExpectAcknowledgedStored();
  EXPECT_EQ(producer_->buffered_bytes(), 0u);
  EXPECT_EQ(cluster_.world().inits, 1);
}

TEST_F(ProducerTest, RecordsGatherWhileRequestsAreUnderWay) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().answer_delay = Duration::Milliseconds(50);
  Make();
  SendSlowly(0, 100);
  ASSERT_TRUE(Done(100));
  EXPECT_LT(cluster_.world().At("t", 0).batches().size(), 30u);
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 100));
  EXPECT_EQ(cluster_.world().greatest_in_flight, 5);
}

TEST_F(ProducerTest, LingersToFillABatch) {
  cluster_.world().CreateTopic("t", 1);
  options_.linger = Duration::Milliseconds(200);
  Make();
  SendSlowly(0, 100);
  ASSERT_TRUE(Done(100));
  EXPECT_EQ(cluster_.world().At("t", 0).batches().size(), 1u);
}

TEST_F(ProducerTest, GathersPartitionsIntoOneRequest) {
  cluster_.world().CreateTopic("t", 30);
  Make();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Send("r" + std::to_string(i), i).ok());
  ASSERT_TRUE(Done(30));
  EXPECT_EQ(cluster_.world().produce_requests, 3);
}

TEST_F(ProducerTest, CompressesAndKeepsEveryByte) {
  for (const Compression codec : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    cluster_.world().CreateTopic("t", 1);
    options_.compression = codec;
    Make();
    ProducerRecord record = Record(std::string("\0\xff\r\n", 4));
    record.key = "";
    record.headers = {{"h", std::nullopt}, {"g", "x"}};
    record.timestamp_ms = 77;
    ASSERT_TRUE(SendRecord(record).ok());
    ASSERT_TRUE(Done(1));
    const auto& batch = cluster_.world().At("t", 0).batches().at(0);
    EXPECT_EQ(batch.header.compression(), codec);
    auto reader = BatchReader::Open(batch.bytes);
    ASSERT_TRUE(reader.ok());
    RecordView view;
    ASSERT_TRUE(*reader->Next(view));
    EXPECT_EQ(view.key, std::string_view());
    EXPECT_EQ(view.value, std::string_view("\0\xff\r\n", 4));
    EXPECT_EQ(view.timestamp_ms, 77);
    ASSERT_EQ(view.headers.size(), 2u);
    EXPECT_EQ(view.headers[0].value, std::nullopt);
    deliveries_.clear();
  }
}

TEST_F(ProducerTest, KeysChooseTheirPartitionAndOthersSpread) {
  cluster_.world().CreateTopic("t", 10);
  options_.batch_bytes = 2000;
  Make();
  ProducerRecord keyed;
  keyed.topic = "t";
  keyed.key = "foobar";
  keyed.value = "keyed";
  ASSERT_TRUE(SendRecord(keyed).ok());
  for (int i = 0; i < 1000; ++i) {
    ProducerRecord record;
    record.topic = "t";
    record.value = "v" + std::to_string(i);
    ASSERT_TRUE(SendRecord(record).ok());
  }
  ASSERT_TRUE(Done(1001));
  EXPECT_EQ(deliveries_.at("keyed").partition.partition, PartitionIndex(6));
  std::map<PartitionIndex, int> spread;
  for (const auto& [value, delivery] : deliveries_) ++spread[delivery.partition.partition];
  EXPECT_EQ(spread.size(), 10u);
}

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
    EXPECT_EQ(deliveries_.at("r" + std::to_string(i)).offset, Offset(i + 1));
  }
  EXPECT_EQ(order_, Numbered(0, 10));
  EXPECT_EQ(cluster_.world().inits, 1);
}

TEST_F(ProducerTest, ManyDroppedAnswersAndBreaksDoubleNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FakeCluster cluster(3, seed);
    cluster.world().CreateTopic("t", 2);
    Random random(seed);
    ProducerOptions options;
    options.bootstrap = cluster.bootstrap();
    Producer producer(options, cluster.transport(), cluster.executor(), Random(seed));
    std::map<int, std::vector<std::string>> told;
    int done = 0;
    for (int i = 0; i < 200; ++i) {
      if (random.Chance(0.1)) cluster.world().drop_answers = static_cast<int>(random.Between(1, 5));
      if (random.Chance(0.05)) cluster.Break(static_cast<int>(random.Between(1, 3)));
      if (random.Chance(0.05)) {
        cluster.world().MoveLeader("t", i % 2, static_cast<int>(random.Between(1, 3)));
      }
      const std::string value = std::to_string(i);
      const int partition = i % 2;
      ProducerRecord record = Record(value, partition);
      ASSERT_TRUE(producer
                      .Send(std::move(record),
                            [&told, &done, value, partition](const Delivery& delivery) {
                              EXPECT_TRUE(delivery.status.ok()) << delivery.status;
                              told[partition].push_back(value);
                              ++done;
                            })
                      .ok());
      cluster.RunFor(Duration::Milliseconds(random.Between(0, 3)));
    }
    ASSERT_TRUE(cluster.RunUntil([&] { return done == 200; })) << "seed " << seed;
    for (int p = 0; p < 2; ++p) EXPECT_EQ(cluster.world().At("t", p).Values(), told[p]);
  }
}

TEST_F(ProducerTest, TheSameSeedGivesTheSameHistory) {
  uint64_t hash[2];
  for (uint64_t& h : hash) {
    FakeCluster cluster(3, 9);
    cluster.world().CreateTopic("t", 5);
    ProducerOptions options;
    options.bootstrap = cluster.bootstrap();
    Producer producer(options, cluster.transport(), cluster.executor(), Random(9));
    for (int i = 0; i < 100; ++i) {
      ProducerRecord record;
      record.topic = "t";
      record.value = std::string(10'000, 'x');
      ASSERT_TRUE(producer.Send(std::move(record), nullptr).ok());
      if (i % 10 == 0) cluster.Break(1 + i / 10 % 3);
      cluster.RunFor(Duration::Milliseconds(1));
    }
    cluster.RunFor(Duration::Seconds(5));
    h = cluster.scheduler().trace_hash();
  }
  EXPECT_EQ(hash[0], hash[1]);
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

TEST_F(ProducerTest, ATopicThatComesLateIsWaitedForAndAnUnknownOneFails) {
  Make();
  const MonotonicTime before = cluster_.clock().Now();
  ASSERT_TRUE(Send("r0").ok());
  cluster_.RunFor(Duration::Seconds(2));
  cluster_.world().CreateTopic("t", 1);
  ASSERT_TRUE(Done(1));
  EXPECT_TRUE(deliveries_.at("r0").status.ok());
  ProducerRecord record = Record("lost");
  record.topic = "nothing";
  ASSERT_TRUE(SendRecord(record).ok());
  ASSERT_TRUE(Done(2));
  EXPECT_EQ(CodeOf("lost"), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_FALSE(deliveries_.at("lost").outcome_unknown());
  EXPECT_LT(cluster_.clock().Now() - before, Duration::Seconds(9));
  ASSERT_TRUE(Send("r1", 7).ok());
  ASSERT_TRUE(Done(3));
  EXPECT_EQ(CodeOf("r1"), v1::INVALID_PARTITIONS);
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

TEST_F(ProducerTest, RefusesWhatTheBufferDoesNotHoldAndTellsWhenThereIsRoom) {
  cluster_.world().CreateTopic("t", 1);
  options_.buffer_bytes = 10'000;
  Make();
  cluster_.world().hold_answers = true;
  const std::string big(2000, 'x');
  int taken = 0;
  absl::Status status;
  while ((status = producer_->Send(Record(big), nullptr)).ok()) ++taken;
  EXPECT_EQ(taken, 4);
  EXPECT_EQ(ErrorCodeOf(status), v1::OVERLOADED);
  EXPECT_EQ(ErrorCodeOf(producer_->Send(Record(std::string(10'000, 'x')), nullptr)),
            v1::MESSAGE_TOO_LARGE);
  std::vector<int> rooms;
  producer_->WhenRoom(BufferBytes(Record(big)), [&] { rooms.push_back(1); });
  producer_->WhenRoom(10, [&] { rooms.push_back(2); });
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(rooms.empty());
  cluster_.world().hold_answers = false;
  cluster_.world().brokers.at(1)->AnswerHeld();
  ASSERT_TRUE(cluster_.RunUntil([&] { return rooms.size() == 2; }));
  EXPECT_EQ(rooms, (std::vector<int>{1, 2}));
  EXPECT_TRUE(producer_->Send(Record(big), nullptr).ok());
}

TEST_F(ProducerTest, RefusesRecordsThatCannotBe) {
  Make();
  EXPECT_EQ(ErrorCodeOf(Send("x", -1)), v1::INVALID_PARTITIONS);
  EXPECT_EQ(ErrorCodeOf(producer_->Send(ProducerRecord(), nullptr)), v1::INVALID_TOPIC);
  ProducerRecord record = Record("x");
  record.timestamp_ms = -1;
  EXPECT_EQ(ErrorCodeOf(producer_->Send(record, nullptr)), v1::INVALID_TIMESTAMP);
}

TEST_F(ProducerTest, FlushWaitsForWhatWasSentBeforeIt) {
  cluster_.world().CreateTopic("t", 1);
  options_.linger = Duration::Seconds(30);
  Make();
  SendSlowly(0, 10);
  EXPECT_TRUE(deliveries_.empty());
  size_t at_flush = 0;
  bool flushed = false;
  producer_->Flush([&] {
    flushed = true;
    at_flush = deliveries_.size();
  });
  ASSERT_TRUE(cluster_.RunUntil([&] { return flushed; }, Duration::Seconds(1)));
  EXPECT_EQ(at_flush, 10u);
  // With nothing to wait for it is done at once; what comes later lingers again.
  flushed = false;
  producer_->Flush([&] { flushed = true; });
  ASSERT_TRUE(cluster_.RunUntil([&] { return flushed; }, Duration::Seconds(1)));
  ASSERT_TRUE(Send("later").ok());
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(deliveries_.size(), 10u);
}

TEST_F(ProducerTest, CloseFlushesAndTakesNoMore) {
  cluster_.world().CreateTopic("t", 1);
  options_.linger = Duration::Seconds(30);
  Make();
  SendSlowly(0, 10);
  bool closed = false;
  producer_->Close(Duration::Seconds(10), [&] { closed = true; });
  EXPECT_EQ(ErrorCodeOf(Send("late")), v1::NOT_READY);
  ASSERT_TRUE(cluster_.RunUntil([&] { return closed; }, Duration::Seconds(5)));
  EXPECT_EQ(deliveries_.size(), 10u);
  for (const auto& [value, delivery] : deliveries_) EXPECT_TRUE(delivery.status.ok());
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 10));
}

TEST_F(ProducerTest, CloseGivesUpAfterItsTime) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  WarmUp();
  cluster_.world().hold_answers = true;
  SendSlowly(0, 7);
  ASSERT_TRUE(cluster_.RunUntil([&] { return cluster_.world().arrived.size() == 6; }));
  bool closed = false;
  producer_->Close(Duration::Seconds(3), [&] { closed = true; });
  cluster_.RunFor(Duration::Seconds(2));
  EXPECT_FALSE(closed);
  ASSERT_TRUE(cluster_.RunUntil([&] { return closed; }, Duration::Seconds(2)));
  ASSERT_EQ(deliveries_.size(), 7u);
  EXPECT_TRUE(deliveries_.at("r0").outcome_unknown());
  EXPECT_EQ(CodeOf("r5"), v1::NOT_READY);
  EXPECT_FALSE(deliveries_.at("r6").outcome_unknown());
  EXPECT_EQ(producer_->buffered_bytes(), 0u);
}

TEST_F(ProducerTest, AcksNoneIsDoneWhenTheNetworkHasIt) {
  cluster_.world().CreateTopic("t", 1);
  options_.acks = v1::ACKS_NONE;
  Make();
  SendSlowly(0, 20);
  bool closed = false;
  producer_->Close(Duration::Seconds(3), [&] { closed = true; });
  ASSERT_TRUE(cluster_.RunUntil([&] { return closed; }, Duration::Seconds(2)));
  ASSERT_EQ(deliveries_.size(), 20u);
  EXPECT_TRUE(deliveries_.at("r3").status.ok());
  EXPECT_EQ(deliveries_.at("r3").offset, Offset(-1));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 20));
  EXPECT_EQ(cluster_.world().inits, 0);
}

TEST_F(ProducerTest, WithoutIdempotenceTheOrderIsKept) {
  cluster_.world().CreateTopic("t", 1);
  options_.idempotent = false;
  options_.acks = v1::ACKS_LEADER;
  int refusals = 0;
  cluster_.world().before_append = [&](const TopicPartition&, const BatchHeader&) {
    v1::Error error;
    if (++refusals % 3 == 0) error.set_code(v1::NOT_ENOUGH_REPLICAS);
    return error;
  };
  Make();
  SendSlowly(0, 50);
  ASSERT_TRUE(Done(50));
  EXPECT_EQ(cluster_.world().At("t", 0).Values(), Numbered(0, 50));
  EXPECT_EQ(cluster_.world().arrived[0].producer_id, ProducerId(-1));
}

TEST_F(ProducerTest, WaitsForAProducerId) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().refuse_producer_ids = true;
  options_.delivery_timeout = Duration::Seconds(10);
  Make();
  ASSERT_TRUE(Send("r0").ok());
  cluster_.RunFor(Duration::Seconds(3));
  EXPECT_TRUE(cluster_.world().arrived.empty());
  cluster_.world().refuse_producer_ids = false;
  ASSERT_TRUE(Done(1));
  EXPECT_TRUE(deliveries_.at("r0").status.ok());
}

TEST_F(ProducerTest, DestroyedWithRecordsUnderWayItTellsNothingMore) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  cluster_.world().hold_answers = true;
  SendSlowly(0, 7);
  producer_.reset();
  cluster_.RunFor(Duration::Seconds(200));
  EXPECT_TRUE(deliveries_.empty());
}

}  // namespace
}  // namespace conclave
