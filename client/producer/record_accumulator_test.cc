#include "client/producer/record_accumulator.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"

namespace conclave {
namespace {

constexpr int64_t kNowMs = 1'700'000'000'000;

class RecordAccumulatorTest : public testing::Test {
 protected:
  RecordAccumulatorTest() { Make(); }
  void Make() {
    records_ = std::make_unique<RecordAccumulator>(options_, Random(1), executor_);
    lanes_.clear();
  }
  // True if the executor is to be told.
  bool Add(const std::string& value, std::optional<int> partition = 0,
           const std::string& topic = "t") {
    ProducerRecord record;
    record.topic = topic;
    if (partition) record.partition = PartitionIndex(*partition);
    record.value = value;
    bool wake = false;
    status_ = records_->Append(
        record, [this, value](const Delivery&) { told_.push_back(value); }, [this] { return now_; },
        kNowMs, wake);
    return wake;
  }
  // The topic has so many partitions, all with a leader.
  std::vector<RecordAccumulator::Waiting> Know(size_t count, const std::string& topic = "t") {
    std::vector<LaneId>& lanes = lanes_[topic];
    while (lanes.size() < count) lanes.push_back(records_->AddLane());
    return records_->SetPartitions(topic, lanes, std::vector<bool>(count, true));
  }
  // The values of the batch that may be taken; empty if none may.
  std::vector<std::string> Take(size_t lane, bool no_linger = true) {
    const auto taken = records_->Take(lanes_["t"][lane], now_, no_linger).batch;
    told_.clear();
    if (taken != nullptr) {
      records_->Free(taken->buffer_bytes());
      taken->Complete({}, absl::OkStatus(), Offset(0));
    }
    return told_;
  }
  void Pass(Duration time) { now_ = now_ + time; }

  SimScheduler scheduler_;
  SimClock clock_{scheduler_};
  SimExecutor executor_{scheduler_, clock_};
  RecordAccumulator::Options options_;
  std::unique_ptr<RecordAccumulator> records_;
  std::map<std::string, std::vector<LaneId>> lanes_;
  MonotonicTime now_ = MonotonicTime::FromNanoseconds(1'000'000'000);
  absl::Status status_;
  std::vector<std::string> told_;
};

using Values = std::vector<std::string>;

TEST_F(RecordAccumulatorTest, WhatCameBeforeThePartitionsWereKnownComesFirst) {
  EXPECT_TRUE(Add("a"));
  EXPECT_FALSE(Add("b")) << "the executor was told";
  EXPECT_EQ(records_->TakeNews().topics, (std::vector<std::string>{"t"}));
  EXPECT_EQ(*records_->OldestWaiting("t"), now_);
  EXPECT_TRUE(Know(2).empty());
  EXPECT_EQ(records_->OldestWaiting("t"), std::nullopt);
  EXPECT_EQ(records_->TakeNews().lanes, (std::vector<LaneId>{LaneId(0)}));
  Add("c");
  EXPECT_EQ(Take(0), (Values{"a", "b", "c"}));
}

TEST_F(RecordAccumulatorTest, NewsAreLanesThatGotABatch) {
  Know(3);
  EXPECT_TRUE(Add("a", 1));
  EXPECT_FALSE(Add("b", 1));
  EXPECT_FALSE(Add("c", 2));
  EXPECT_EQ(records_->TakeNews().lanes, (std::vector<LaneId>{LaneId(1), LaneId(2)}));
  EXPECT_FALSE(Add("d", 2)) << "it joined a batch that was told of";
  EXPECT_TRUE(records_->TakeNews().lanes.empty());
  EXPECT_EQ(Take(2), (Values{"c", "d"}));
  EXPECT_TRUE(Add("e", 2));
}

TEST_F(RecordAccumulatorTest, ATopicThatIsNotKnownAnyMoreIsWaitedForAndItsOrderKept) {
  Know(1);
  Add("a");
  records_->ForgetPartitions("t");
  Add("b");
  Add("c");
  EXPECT_EQ(Take(0), (Values{"a"}));
  Know(1);
  Add("d");
  EXPECT_EQ(Take(0), (Values{"b", "c", "d"}));
}

TEST_F(RecordAccumulatorTest, ATopicsBatchesAreHeldToItsLimitOnceThatIsKnown) {
  Know(1);
  const std::string value(1000, 'v');
  for (int i = 0; i < 8; ++i) Add(value);
  records_->LimitBatches("t", 3500);
  records_->LimitBatches("t", 1 << 20);
  EXPECT_TRUE(records_->HasFull(lanes_["t"][0])) << "the batch that has more already";
  for (int i = 0; i < 7; ++i) Add(value);
  EXPECT_EQ(Take(0).size(), 8u);
  EXPECT_EQ(Take(0, /*no_linger=*/false).size(), 3u);
  EXPECT_EQ(Take(0, /*no_linger=*/false).size(), 3u);
  // Partitions that come later, and not other topics.
  Know(2);
  Know(1, "u");
  for (int i = 0; i < 4; ++i) Add(value, 1);
  for (int i = 0; i < 4; ++i) Add(value, 0, "u");
  EXPECT_EQ(Take(1).size(), 3u);
  const auto other = records_->Take(lanes_["u"][0], now_, true).batch;
  EXPECT_EQ(other->count(), 4);
  other->Complete({}, absl::OkStatus(), Offset(0));
}

TEST_F(RecordAccumulatorTest, WhatNamesAPartitionThatIsNotThereIsGivenBackAndTheRestGoesOn) {
  Know(1);
  Add("a", 7);
  Add("b", 0);
  const auto misdirected = Know(1);
  ASSERT_EQ(misdirected.size(), 1u);
  EXPECT_EQ(misdirected[0].record.value, "a");
  EXPECT_EQ(misdirected[0].record.timestamp_ms, kNowMs);
  EXPECT_EQ(Take(0), (Values{"b"}));
}

TEST_F(RecordAccumulatorTest, WhatWaitsTooLongIsTakenOut) {
  Add("a");
  Pass(Duration::Seconds(3));
  Add("b");
  const auto taken = records_->TakeWaiting("t", now_ - Duration::Seconds(1));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].record.value, "a");
  EXPECT_EQ(*records_->OldestWaiting("t"), now_);
}

TEST_F(RecordAccumulatorTest, RecordsWithoutAKeyStayWithAPartitionForABatchAndAvoidThoseUnled) {
  options_.batches.batch_bytes = 1000;
  Make();
  Know(4);
  records_->SetPartitions("t", lanes_["t"], {true, false, true, false});
  for (int i = 0; i < 100; ++i) Add(std::string(200, 'x'), std::nullopt);
  for (const size_t unled : {1u, 3u}) EXPECT_TRUE(Take(unled).empty());
  for (const size_t led : {0u, 2u}) EXPECT_EQ(Take(led).size(), 4u) << "a whole batch at a time";
}

TEST_F(RecordAccumulatorTest, LingersUntilTheTimeOrTheSize) {
  options_.batches.linger = Duration::Milliseconds(5);
  options_.batches.batch_bytes = 300;
  Make();
  Know(1);
  Add("a");
  const auto early = records_->Take(lanes_["t"][0], now_, false);
  EXPECT_EQ(early.batch, nullptr);
  EXPECT_EQ(*early.ready_at, now_ + Duration::Milliseconds(5));
  Pass(Duration::Milliseconds(5));
  EXPECT_EQ(Take(0, false), (Values{"a"}));
  Add(std::string(200, 'x'));
  EXPECT_TRUE(Take(0, false).empty());
  Add(std::string(200, 'y'));
  EXPECT_EQ(Take(0, false), (Values{std::string(200, 'x')})) << "another does not fit in";
  EXPECT_TRUE(Take(0, false).empty());
  EXPECT_EQ(Take(0, true), (Values{std::string(200, 'y')}));
}

TEST_F(RecordAccumulatorTest, GenerationsTellWhatCameBeforeAFlush) {
  EXPECT_EQ(records_->OldestGeneration(), std::nullopt);
  Know(2);
  Add("a", 0);
  Add("unknown", 0, "other");
  const uint64_t flush = records_->NextGeneration();
  Add("b", 1);
  EXPECT_EQ(records_->OldestGeneration(), flush);
  Take(0);
  EXPECT_EQ(records_->OldestGeneration(), flush) << "one waits for its topic";
  records_->TakeWaiting("other", now_);
  EXPECT_EQ(records_->OldestGeneration(), flush + 1);
}

TEST_F(RecordAccumulatorTest, ExpiredBatchesComeOutOldestFirst) {
  options_.batches.delivery_timeout = Duration::Seconds(10);
  Make();
  Know(1);
  Add("a");
  const LaneId lane = lanes_["t"][0];
  EXPECT_EQ(*records_->Deadline(lane), now_ + Duration::Seconds(10));
  Pass(Duration::Seconds(9));
  EXPECT_EQ(records_->TakeExpired(lane, now_), nullptr);
  Pass(Duration::Seconds(1));
  EXPECT_NE(records_->TakeExpired(lane, now_), nullptr);
  EXPECT_EQ(records_->Deadline(lane), std::nullopt);
}

TEST_F(RecordAccumulatorTest, TakesNothingBeyondItsBufferOrAfterItIsClosed) {
  options_.buffer_bytes = 1000;
  Make();
  Know(1);
  Add(std::string(2000, 'x'));
  EXPECT_EQ(ErrorCodeOf(status_), v1::MESSAGE_TOO_LARGE);
  Add(std::string(500, 'x'));
  EXPECT_TRUE(status_.ok());
  Add(std::string(500, 'x'));
  EXPECT_EQ(ErrorCodeOf(status_), v1::OVERLOADED);
  bool room = false;
  records_->WhenRoom(600, [&] { room = true; });
  scheduler_.RunFor(Duration::Seconds(1));
  EXPECT_FALSE(room);
  EXPECT_EQ(Take(0).size(), 1u);
  EXPECT_EQ(records_->used(), 0u);
  scheduler_.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(room);
  records_->Close();
  Add("a");
  EXPECT_EQ(ErrorCodeOf(status_), v1::NOT_READY);
}

}  // namespace
}  // namespace conclave
