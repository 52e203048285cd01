#include "client/producer/partition_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/producer/batch_lane.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"

namespace conclave {
namespace {

constexpr ProducerIdentity kFirst{ProducerId(7), ProducerEpoch(0)};
constexpr ProducerIdentity kSecond{ProducerId(7), ProducerEpoch(1)};

class PartitionQueueTest : public testing::Test {
 protected:
  PartitionQueueTest() {
    options_.delivery_timeout = Duration::Seconds(10);
    batches_.delivery_timeout = Duration::Seconds(10);
    options_.retry_pause = Duration::Milliseconds(100);
    Make();
  }
  void Make() {
    queue_ = std::make_unique<PartitionQueue>(TopicPartition{"t", PartitionIndex(0)}, options_,
                                              Random(1));
  }
  // A record that is a batch of its own unless `same_batch`.
  void Add(const std::string& value) {
    RecordView record;
    record.value = value;
    lane_.Add(
        record, value.size(),
        [this, value](const Delivery& d) {
          done_.push_back({value, d});
        },
        [this] { return now_; }, 1, batches_);
  }
  std::shared_ptr<ProduceBatch> Next(const ProducerIdentity& identity) {
    return queue_->Next(now_, identity, [this] { return lane_.Take(now_, true, batches_); });
  }
  // Sends all it may; the batches in flight stand in sent_, in order.
  int SendAll(const ProducerIdentity& identity = kFirst) {
    int count = 0;
    while (auto batch = Next(identity)) {
      sent_.push_back(batch);
      ++count;
    }
    Tell();
    return count;
  }
  // Adds records one by one and sends each as a batch.
  void AddAndSend(int count) {
    for (int i = 0; i < count; ++i) {
      Add("r" + std::to_string(added_++));
      ASSERT_EQ(SendAll(), 1);
    }
  }
  void Ok(size_t index, int offset) {
    queue_->Succeeded(*sent_[index], Offset(offset));
    Tell();
  }
  void Fail(size_t index, v1::ErrorCode code) {
    queue_->Failed(*sent_[index], MakeError(code, "as the test says"), !HasNoEffect(code), false,
                   now_);
    Tell();
  }
  void Pass(Duration time) {
    now_ = now_ + time;
    queue_->Expire(now_, absl::OkStatus());
    while (auto unsent = lane_.TakeExpired(now_)) {
      queue_->ExpireUnsent(std::move(unsent), absl::OkStatus());
    }
    Tell();
  }
  void Tell() {
    for (const auto& batch : queue_->TakeCompleted()) {
      batch->Complete(queue_->partition(), *batch->result, batch->base_offset);
    }
  }
  BatchHeader Header(size_t index) {
    const auto header = CheckBatch(sent_[index]->encoded());
    EXPECT_TRUE(header.ok()) << header.status();
    return *header;
  }
  v1::ErrorCode CodeOf(size_t done) { return ErrorCodeOf(done_.at(done).delivery.status); }

  struct Done {
    std::string value;
    Delivery delivery;
  };

  PartitionQueue::Options options_;
  BatchLane::Options batches_;
  BatchLane lane_;
  std::unique_ptr<PartitionQueue> queue_;
  MonotonicTime now_ = MonotonicTime::FromNanoseconds(1'000'000'000);
  std::vector<std::shared_ptr<ProduceBatch>> sent_;
  std::vector<Done> done_;
  int added_ = 0;
};

TEST_F(PartitionQueueTest, NumbersBatchesAndTellsTheirOffsets) {
  Add("a");
  Add("b");
  EXPECT_EQ(SendAll(), 1);
  Add("c");
  EXPECT_EQ(SendAll(), 1);
  EXPECT_EQ(Header(0).base_sequence, 0);
  EXPECT_EQ(Header(0).count, 2);
  EXPECT_EQ(Header(1).base_sequence, 2);
  EXPECT_EQ(Header(1).producer_id, kFirst.id);
  Ok(0, 40);
  Ok(1, 90);
  ASSERT_EQ(done_.size(), 3u);
  EXPECT_EQ(done_[1].value, "b");
  EXPECT_EQ(done_[1].delivery.offset, Offset(41));
  EXPECT_EQ(done_[2].delivery.offset, Offset(90));
  EXPECT_TRUE(queue_->empty());
}

TEST_F(PartitionQueueTest, HasFiveBatchesInFlightAndWaitsForTheFirst) {
  AddAndSend(5);
  Add("r5");
  EXPECT_EQ(SendAll(), 0);
  // Answers that come early leave the window where it is: a repeat of the first is still known.
  for (size_t i = 1; i < 5; ++i) Ok(i, static_cast<int>(i));
  EXPECT_EQ(SendAll(), 0);
  EXPECT_TRUE(done_.empty());
  Ok(0, 0);
  ASSERT_EQ(done_.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(done_[i].value, "r" + std::to_string(i));
  EXPECT_EQ(SendAll(), 1);
}

TEST_F(PartitionQueueTest, SendsNothingWithoutAnIdentity) {
  Add("a");
  EXPECT_EQ(SendAll(ProducerIdentity()), 0);
  EXPECT_EQ(SendAll(), 1);
}

TEST_F(PartitionQueueTest, SendsAgainInOrderUnderTheSameNumbersOnceAllHaveEnded) {
  AddAndSend(3);
  Add("r3");
  Fail(0, v1::NOT_ENOUGH_REPLICAS);
  Pass(Duration::Seconds(1));
  EXPECT_EQ(SendAll(), 0);
  Fail(1, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  Fail(2, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_FALSE(queue_->NeedsNewIdentity(kFirst));
  sent_.clear();
  EXPECT_EQ(SendAll(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Header(static_cast<size_t>(i)).base_sequence, i);
}

TEST_F(PartitionQueueTest, PausesLongerAndLonger) {
  AddAndSend(1);
  for (const int pause : {100, 200, 400, 800, 1000, 1000}) {
    Fail(sent_.size() - 1, v1::NOT_ENOUGH_REPLICAS);
    const Duration wait = queue_->retry_at() - now_;
    EXPECT_GE(wait, Duration::Milliseconds(pause) * 80 / 100);
    EXPECT_LE(wait, Duration::Milliseconds(pause) * 120 / 100);
    Pass(wait);
    ASSERT_EQ(SendAll(), 1);
  }
}

TEST_F(PartitionQueueTest, TakesANewLeaderWithoutAPause) {
  AddAndSend(1);
  queue_->Failed(*sent_[0], MakeError(v1::NOT_LEADER_OR_FOLLOWER, ""), false, true, now_);
  EXPECT_EQ(SendAll(), 1);
}

TEST_F(PartitionQueueTest, ARefusedBatchWithNothingBehindItGivesItsNumbersBack) {
  AddAndSend(2);
  Ok(0, 0);
  Fail(1, v1::INVALID_TIMESTAMP);
  ASSERT_EQ(done_.size(), 2u);
  EXPECT_FALSE(done_[1].delivery.outcome_unknown());
  AddAndSend(1);
  EXPECT_EQ(Header(2).base_sequence, 1);
}

TEST_F(PartitionQueueTest, ARefusedBatchWithOthersBehindItTakesANewEpochForThem) {
  AddAndSend(4);
  Fail(1, v1::INVALID_TIMESTAMP);
  Ok(0, 10);
  Fail(2, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_FALSE(queue_->NeedsNewIdentity(kFirst)) << "one is under way still";
  Fail(3, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_TRUE(queue_->NeedsNewIdentity(kFirst));
  Pass(Duration::Seconds(1));
  EXPECT_EQ(SendAll(kFirst), 0);
  Add("r4");
  sent_.clear();
  EXPECT_EQ(SendAll(kSecond), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Header(i).producer_epoch, kSecond.epoch);
    EXPECT_EQ(Header(i).base_sequence, static_cast<int32_t>(i));
    Ok(i, 11 + static_cast<int>(i));
  }
  ASSERT_EQ(done_.size(), 5u);
  const char* const order[] = {"r0", "r1", "r2", "r3", "r4"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(done_[i].value, order[i]);
  EXPECT_EQ(CodeOf(1), v1::INVALID_TIMESTAMP);
}

TEST_F(PartitionQueueTest, ABatchOfUnknownOutcomeIsNotSentUnderANewEpoch) {
  AddAndSend(2);
  Fail(0, v1::NETWORK_EXCEPTION);
  Fail(1, v1::NETWORK_EXCEPTION);
  Pass(Duration::Seconds(1));
  sent_.clear();
  EXPECT_EQ(SendAll(), 2);
  // The log lost what it had: neither is known there.
  Fail(0, v1::UNKNOWN_PRODUCER_ID);
  Fail(1, v1::UNKNOWN_PRODUCER_ID);
  EXPECT_TRUE(queue_->NeedsNewIdentity(kFirst));
  Add("r2");
  Pass(Duration::Seconds(1));
  sent_.clear();
  EXPECT_EQ(SendAll(kSecond), 1);
  ASSERT_EQ(done_.size(), 2u);
  EXPECT_EQ(CodeOf(0), v1::NETWORK_EXCEPTION);
  EXPECT_TRUE(done_[0].delivery.outcome_unknown());
  EXPECT_NE(std::string(done_[0].delivery.status.message()).find("twice"), std::string::npos);
  EXPECT_EQ(Header(0).base_sequence, 0);
  EXPECT_EQ(Header(0).producer_epoch, kSecond.epoch);
}

TEST_F(PartitionQueueTest, ASequenceErrorOfACertainBatchIsHealedByANewEpoch) {
  AddAndSend(1);
  Ok(0, 0);
  AddAndSend(2);
  Fail(1, v1::UNKNOWN_PRODUCER_ID);
  Fail(2, v1::UNKNOWN_PRODUCER_ID);
  EXPECT_TRUE(queue_->NeedsNewIdentity(kFirst));
  Pass(Duration::Seconds(1));
  sent_.clear();
  EXPECT_EQ(SendAll(kSecond), 2);
  EXPECT_EQ(Header(0).base_sequence, 0);
  EXPECT_EQ(Header(1).base_sequence, 1);
  EXPECT_EQ(done_.size(), 1u);
}

TEST_F(PartitionQueueTest, WhatWasNeverSentExpiresAsCertainlyNotStored) {
  Add("a");
  Pass(Duration::Seconds(9));
  EXPECT_TRUE(done_.empty());
  Pass(Duration::Seconds(1));
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(CodeOf(0), v1::LEADER_NOT_AVAILABLE);
  EXPECT_FALSE(done_[0].delivery.outcome_unknown());
}

TEST_F(PartitionQueueTest, WhatExpiresInFlightIsUnknownAndTakesANewEpoch) {
  AddAndSend(1);
  Pass(Duration::Seconds(10));
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(CodeOf(0), v1::REQUEST_TIMED_OUT);
  EXPECT_TRUE(done_[0].delivery.outcome_unknown());
  Add("r1");
  EXPECT_EQ(SendAll(), 1) << "its attempt may still succeed";
  Fail(0, v1::NETWORK_EXCEPTION);
  Fail(1, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_TRUE(queue_->NeedsNewIdentity(kFirst));
  EXPECT_EQ(done_.size(), 1u) << "told once";
  Pass(Duration::Seconds(1));
  EXPECT_EQ(SendAll(kSecond), 1);
  EXPECT_EQ(Header(2).base_sequence, 0);
}

TEST_F(PartitionQueueTest, ALateSuccessAfterExpiryNeedsNoNewEpoch) {
  AddAndSend(1);
  Pass(Duration::Seconds(10));
  AddAndSend(1);
  Ok(0, 5);
  Ok(1, 6);
  EXPECT_FALSE(queue_->NeedsNewIdentity(kFirst));
  ASSERT_EQ(done_.size(), 2u);
  EXPECT_EQ(CodeOf(0), v1::REQUEST_TIMED_OUT);
  EXPECT_TRUE(done_[1].delivery.status.ok());
  EXPECT_TRUE(queue_->empty());
}

TEST_F(PartitionQueueTest, SuccessBehindAnExpiredBatchShowsThatItWasStored) {
  AddAndSend(2);
  Pass(Duration::Seconds(9));
  AddAndSend(1);
  Fail(0, v1::NETWORK_EXCEPTION);
  Pass(Duration::Seconds(1));  // r0 waits and expires; r1 is given up in flight.
  ASSERT_EQ(done_.size(), 2u);
  Ok(1, 8);
  Ok(2, 9);
  EXPECT_FALSE(queue_->NeedsNewIdentity(kFirst));
  AddAndSend(1);
  EXPECT_EQ(Header(3).base_sequence, 3);
  EXPECT_EQ(Header(3).producer_epoch, kFirst.epoch);
}

TEST_F(PartitionQueueTest, ARefusalAfterAnUnknownAttemptStaysUnknown) {
  AddAndSend(1);
  Fail(0, v1::REQUEST_TIMED_OUT);
  Pass(Duration::Seconds(1));
  EXPECT_EQ(SendAll(), 1);
  Fail(0, v1::INVALID_TIMESTAMP);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_EQ(CodeOf(0), v1::REQUEST_TIMED_OUT);
  EXPECT_TRUE(done_[0].delivery.outcome_unknown());
  EXPECT_TRUE(queue_->NeedsNewIdentity(kFirst));
}

TEST_F(PartitionQueueTest, TooLargeABatchIsSplitUnderItsNumbers) {
  for (int i = 0; i < 5; ++i) Add("r" + std::to_string(i));
  EXPECT_EQ(SendAll(), 1);
  Add("r5");
  EXPECT_EQ(SendAll(), 1);
  Fail(0, v1::MESSAGE_TOO_LARGE);
  Fail(1, v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  sent_.clear();
  EXPECT_EQ(SendAll(), 3);
  EXPECT_EQ(Header(0).base_sequence, 0);
  EXPECT_EQ(Header(0).count, 2);
  EXPECT_EQ(Header(1).base_sequence, 2);
  EXPECT_EQ(Header(1).count, 3);
  EXPECT_EQ(Header(2).base_sequence, 5);
  Ok(0, 0);
  Ok(1, 2);
  Ok(2, 5);
  ASSERT_EQ(done_.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(done_[i].value, "r" + std::to_string(i));
    EXPECT_EQ(done_[i].delivery.offset, Offset(i));
  }
}

TEST_F(PartitionQueueTest, WithoutIdempotenceOneBatchIsUnderWay) {
  options_.idempotent = false;
  Make();
  AddAndSend(1);
  Add("r1");
  EXPECT_EQ(SendAll(), 0);
  EXPECT_EQ(Header(0).producer_id, ProducerId(-1));
  EXPECT_EQ(Header(0).base_sequence, -1);
  Fail(0, v1::NETWORK_EXCEPTION);
  Pass(Duration::Seconds(1));
  EXPECT_EQ(SendAll(), 1);
  Ok(0, 3);
  EXPECT_EQ(SendAll(), 1);
}

TEST_F(PartitionQueueTest, AcksNoneSendsNothingUncertainAgain) {
  options_.idempotent = false;
  options_.answered = false;
  Make();
  AddAndSend(3);
  Fail(0, v1::NETWORK_EXCEPTION);
  ASSERT_EQ(done_.size(), 1u);
  EXPECT_TRUE(done_[0].delivery.outcome_unknown());
  Ok(1, -1);
  EXPECT_EQ(done_[1].delivery.offset, Offset(-1));
}

TEST_F(PartitionQueueTest, SequencesWrapToZero) {
  const auto batch = std::make_shared<ProduceBatch>(Compression::kNone, now_, now_);
  RecordView record;
  record.value = "x";
  batch->Add(record, 1, nullptr);
  batch->Add(record, 1, nullptr);
  ASSERT_TRUE(batch->Number(kFirst, INT32_MAX).ok());
  EXPECT_EQ(batch->next_sequence(), 1);
}

TEST_F(PartitionQueueTest, BatchesThatFailTogetherWaitOncePerTry) {
  AddAndSend(5);
  for (size_t i = 0; i < 5; ++i) Fail(i, v1::NETWORK_EXCEPTION);
  Pass(Duration::Milliseconds(121));
  EXPECT_EQ(SendAll(), 5);
  // The second try failed as well: twice as long.
  for (size_t i = 5; i < 10; ++i) Fail(i, v1::NETWORK_EXCEPTION);
  Pass(Duration::Milliseconds(121));
  EXPECT_EQ(SendAll(), 0);
  Pass(Duration::Milliseconds(120));
  EXPECT_EQ(SendAll(), 5);
}

TEST_F(PartitionQueueTest, ANewLeaderIsTriedAtOnce) {
  AddAndSend(2);
  Fail(0, v1::NETWORK_EXCEPTION);
  Fail(1, v1::NETWORK_EXCEPTION);
  EXPECT_EQ(SendAll(), 0);
  queue_->LeaderMoved(now_);
  EXPECT_EQ(SendAll(), 2);
  // And its own first failure costs no more than any first one.
  Fail(2, v1::NETWORK_EXCEPTION);
  Fail(3, v1::NETWORK_EXCEPTION);
  Pass(Duration::Milliseconds(121));
  EXPECT_EQ(SendAll(), 2);
}

}  // namespace
}  // namespace conclave
