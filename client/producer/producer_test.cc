#include "client/producer/producer.h"

#include <map>
#include <string>
#include <vector>

#include "client/producer/producer_testing.h"
#include "common/record/batch_reader.h"

namespace conclave {
namespace {

using client_testing::ProducerTest;

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

TEST_F(ProducerTest, BatchesGatherWhileABrokerHasEnoughToDo) {
  cluster_.world().CreateTopic("t", 1);
  options_.request_bytes = 400;
  Make();
  WarmUp();
  cluster_.world().arrived.clear();
  cluster_.world().hold_answers = true;
  const std::string value(300, 'v');
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(Send(std::to_string(i) + value).ok());
    cluster_.RunFor(Duration::Milliseconds(1));
  }
  // Two requests have fewer bytes than twice 400, three have more.
  EXPECT_EQ(cluster_.world().greatest_in_flight, 3);
  cluster_.world().hold_answers = false;
  for (const auto& [id, broker] : cluster_.world().brokers) broker->AnswerHeld();
  ASSERT_TRUE(Done(30));
  EXPECT_EQ(cluster_.world().arrived.size(), 4u);
  ExpectAcknowledgedStored();
}

TEST_F(ProducerTest, FullBatchesAndFlushedOnesDoNotWaitForABusyBroker) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().hold_answers = true;
  options_.batch_bytes = 400;
  options_.request_bytes = 400;
  Make();
  const std::string value(300, 'v');
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Send(std::to_string(i) + value).ok());
  cluster_.RunFor(Duration::Milliseconds(100));
  // The last one of them may take more.
  EXPECT_EQ(cluster_.world().greatest_in_flight, 4);
  bool flushed = false;
  producer_->Flush([&flushed] { flushed = true; });
  cluster_.RunFor(Duration::Milliseconds(100));
  EXPECT_EQ(cluster_.world().greatest_in_flight, 5);
  cluster_.world().hold_answers = false;
  for (const auto& [id, broker] : cluster_.world().brokers) broker->AnswerHeld();
  EXPECT_TRUE(cluster_.RunUntil([&] { return flushed; }));
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

TEST_F(ProducerTest, ATopicWithoutPartitionsIsWaitedForAndTakesNothing) {
  cluster_.world().CreateTopic("t", 0);
  options_.delivery_timeout = Duration::Seconds(10);
  Make();
  ProducerRecord record;
  record.topic = "t";
  record.key = "k";
  record.value = "r0";
  ASSERT_TRUE(SendRecord(record).ok());
  ASSERT_TRUE(Done(1));
  EXPECT_EQ(CodeOf("r0"), v1::LEADER_NOT_AVAILABLE);
  record.value = "r1";
  ASSERT_TRUE(SendRecord(record).ok());
  cluster_.RunFor(Duration::Seconds(2));
  cluster_.world().CreateTopic("t", 1);
  ASSERT_TRUE(Done(2));
  EXPECT_TRUE(deliveries_.at("r1").status.ok()) << deliveries_.at("r1").status;
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
