#include "client/consumer/consumer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/testing/fake_cluster.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;
using Kind = ConsumerEvent::Kind;

TopicPartition Name(int partition) { return {"t", PartitionIndex(partition)}; }

class ConsumerTest : public testing::Test {
 protected:
  void Make() {
    options_.bootstrap = cluster_.bootstrap();
    options_.on_event = [this](const ConsumerEvent& event) { events_.push_back(event); };
    consumer_ =
        std::make_unique<Consumer>(options_, cluster_.transport(), cluster_.executor(), Random(5));
  }
  void Assign(StartAt start, int partitions = 1) {
    std::vector<Consumer::Assignment> assignment;
    for (int i = 0; i < partitions; ++i) assignment.push_back({Name(i), start});
    consumer_->Assign(assignment);
  }
  // Values are "<partition>:<offset>", so that whatever is read shows where it stood.
  void Append(int count, int partition = 0, int records_a_batch = 3, size_t padding = 0) {
    auto& log = cluster_.world().At("t", partition);
    for (int i = 0; i < count;) {
      BatchBuilder builder;
      std::vector<std::string> values;
      for (int n = 0; n < records_a_batch && i < count; ++n, ++i) {
        const int64_t offset = log.end().value() + n;
        values.push_back(std::to_string(partition) + ":" + std::to_string(offset) +
                         std::string(padding, ' '));
        RecordView record;
        record.value = values.back();
        record.timestamp_ms = 1000 * offset;
        builder.Add(record);
      }
      v1::ProducePartitionResult result;
      log.Append(*builder.Finish(), result);
      ASSERT_EQ(result.error().code(), v1::NONE);
    }
    cluster_.world().Wake();
  }
  // Polls once; records go to read_, by partition.
  absl::Status PollOnce(size_t max = 100, Duration wait = Duration::Seconds(1)) {
    std::optional<absl::Status> status;
    consumer_->Poll(max, cluster_.clock().Now() + wait, [&](Consumer::PollResult result) {
      status = result.status();
      if (!result.ok()) return;
      size_t count = 0;
      for (const PartitionRecords& part : *result) {
        for (const RecordView& record : part.records) {
          ++count;
          auto& read = read_[part.partition.partition.value()];
          const std::string value(record.value->substr(0, record.value->find(' ')));
          EXPECT_EQ(value, ToString(part.partition.partition) + ":" + ToString(record.offset));
          if (contiguous_ && !read.empty()) {
            EXPECT_EQ(record.offset, read.back() + 1);
          }
          read.push_back(record.offset);
        }
        EXPECT_EQ(part.next, part.records.back().offset + 1);
      }
      EXPECT_LE(count, max);
    });
    cluster_.RunUntil([&] { return status.has_value(); });
    return status.value_or(absl::InternalError("the poll did not end"));
  }
  // Polls until the partition's last offset was read.
  bool ReadTo(int end, int partition = 0, size_t max = 100) {
    for (int i = 0; i < 1000; ++i) {
      const auto& read = read_[partition];
      if (!read.empty() && read.back().value() + 1 >= end) return read.back().value() + 1 == end;
      if (!PollOnce(max).ok()) return false;
    }
    return false;
  }
  int Count(Kind kind) {
    int count = 0;
    for (const ConsumerEvent& event : events_) count += event.kind == kind;
    return count;
  }

  FakeCluster cluster_;
  ConsumerOptions options_;
  std::unique_ptr<Consumer> consumer_;
  std::map<int, std::vector<Offset>> read_;
  std::vector<ConsumerEvent> events_;
  bool contiguous_ = true;
};

TEST_F(ConsumerTest, ReadsFromTheBeginningAndWhatComesAfter) {
  cluster_.world().CreateTopic("t", 1);
  Append(10);
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(10));
  EXPECT_EQ(read_[0].front(), Offset(0));
  EXPECT_EQ(consumer_->Position(Name(0)), Offset(10));
  EXPECT_EQ(consumer_->HighWatermark(Name(0)), Offset(10));
  Append(5);
  ASSERT_TRUE(ReadTo(15));
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(cluster_.world().fetch_streams, 1);
}

TEST_F(ConsumerTest, StartsWhereItIsTold) {
  cluster_.world().CreateTopic("t", 1);
  Append(10);
  const struct {
    StartAt start;
    int first;
  } cases[] = {{StartAt::At(Offset(4)), 4},   {StartAt::Timestamp(6500), 7},
               {StartAt::Timestamp(7000), 7}, {StartAt::Timestamp(999999), 10},
               {StartAt::Latest(), 10},       {StartAt::Earliest(), 0}};
  Make();
  Assign(StartAt::Earliest());
  for (const auto& c : cases) {
    read_.clear();
    ASSERT_TRUE(consumer_->Seek(Name(0), c.start));
    ASSERT_TRUE(cluster_.RunUntil([&] { return consumer_->Position(Name(0)).has_value(); }));
    EXPECT_EQ(consumer_->Position(Name(0)), Offset(c.first));
    if (c.first == 10) continue;
    ASSERT_TRUE(ReadTo(10));
    EXPECT_EQ(read_[0].front(), Offset(c.first));
  }
  EXPECT_TRUE(events_.empty());
}

TEST_F(ConsumerTest, OneStreamALeaderCarriesAllItsPartitions) {
  cluster_.world().CreateTopic("t", 9);
  for (int p = 0; p < 9; ++p) Append(20, p);
  Make();
  Assign(StartAt::Earliest(), 9);
  for (int p = 0; p < 9; ++p) ASSERT_TRUE(ReadTo(20, p, 7)) << p;
  EXPECT_EQ(cluster_.world().fetch_streams, 3);
}

TEST_F(ConsumerTest, APollWithNothingToGiveEndsInTime) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  Assign(StartAt::Earliest());
  const MonotonicTime before = cluster_.clock().Now();
  EXPECT_TRUE(PollOnce(10, Duration::Milliseconds(300)).ok());
  EXPECT_EQ(cluster_.clock().Now(), before + Duration::Milliseconds(300));
  EXPECT_TRUE(read_.empty());
  consumer_->Poll(1, MonotonicTime::Never(), [](Consumer::PollResult) {});
  EXPECT_EQ(ErrorCodeOf(PollOnce()), v1::INVALID_REQUEST);
}

TEST_F(ConsumerTest, R36_MovesWithTheLeaderAndKeepsItsPosition) {
  cluster_.world().CreateTopic("t", 2);
  Make();
  Assign(StartAt::Earliest(), 2);
  for (int i = 0; i < 50; ++i) {
    Append(4, 0);
    Append(4, 1);
    if (i % 2 == 0) {
      ASSERT_TRUE(PollOnce(3).ok());
    }
    cluster_.world().MoveLeader("t", i % 2, 1 + i % 3);
    if (i % 7 == 0) cluster_.Break(1 + i % 3);
  }
  ASSERT_TRUE(ReadTo(200, 0));
  ASSERT_TRUE(ReadTo(200, 1));
  EXPECT_EQ(read_[0].size(), 200u);
  EXPECT_EQ(read_[1].size(), 200u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ConsumerTest, FollowsAHintWithoutAskingForMetadata) {
  cluster_.world().CreateTopic("t", 1);
  Append(3);
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(3));
  cluster_.RunFor(Duration::Seconds(1));
  const MonotonicTime before = cluster_.clock().Now();
  cluster_.world().MoveLeader("t", 0, 2);
  Append(3);
  ASSERT_TRUE(ReadTo(6));
  EXPECT_LT(cluster_.clock().Now() - before, Duration::Milliseconds(30));
}

TEST_F(ConsumerTest, OutOfRangeIsResetByThePolicyAndTold) {
  const struct {
    ResetPolicy policy;
    int first;
  } cases[] = {
      {ResetPolicy::kEarliest, 12}, {ResetPolicy::kLatest, 30}, {ResetPolicy::kByDuration, 25}};
  for (const auto& c : cases) {
    cluster_.world().CreateTopic("t", 1);
    Append(30);
    cluster_.world().At("t", 0).DeleteBefore(Offset(12));
    options_.reset = c.policy;
    // Record 25 and those after it are so young.
    options_.reset_duration =
        Duration::Milliseconds(cluster_.clock().WallNow().unix_millis() - 25'000 + 500);
    events_.clear();
    read_.clear();
    Make();
    Assign(StartAt::At(Offset(5)));
    Append(3);
    ASSERT_TRUE(cluster_.RunUntil([&] { return !events_.empty(); }));
    EXPECT_EQ(events_[0].kind, Kind::kReset);
    EXPECT_EQ(events_[0].partition, Name(0));
    EXPECT_EQ(events_[0].from, Offset(5));
    EXPECT_EQ(ErrorCodeOf(events_[0].status), v1::OFFSET_OUT_OF_RANGE);
    EXPECT_EQ(events_[0].to, Offset(c.policy == ResetPolicy::kLatest ? 33 : c.first));
    Append(2);
    ASSERT_TRUE(ReadTo(35));
    EXPECT_EQ(read_[0].front(), events_[0].to);
    EXPECT_EQ(Count(Kind::kReset), 1);
  }
}

TEST_F(ConsumerTest, WithThePolicyNoneItFailsOnceAndWaitsForASeek) {
  cluster_.world().CreateTopic("t", 1);
  Append(30);
  cluster_.world().At("t", 0).DeleteBefore(Offset(12));
  options_.reset = ResetPolicy::kNone;
  Make();
  Assign(StartAt::At(Offset(5)));
  const absl::Status status = PollOnce();
  EXPECT_EQ(ErrorCodeOf(status), v1::OFFSET_OUT_OF_RANGE);
  EXPECT_NE(std::string(status.message()).find("12 to 30"), std::string::npos) << status;
  EXPECT_TRUE(PollOnce().ok());
  EXPECT_TRUE(read_.empty());
  consumer_->Seek(Name(0), StartAt::At(Offset(20)));
  ASSERT_TRUE(ReadTo(30));
  EXPECT_EQ(read_[0].front(), Offset(20));
  EXPECT_TRUE(events_.empty());
}

TEST_F(ConsumerTest, WithoutAPositionThePolicyDecides) {
  cluster_.world().CreateTopic("t", 1);
  Append(10);
  options_.reset = ResetPolicy::kEarliest;
  Make();
  Assign(StartAt::Policy());
  ASSERT_TRUE(ReadTo(10));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].from, Offset(-1));
  EXPECT_EQ(events_[0].to, Offset(0));
  options_.reset = ResetPolicy::kNone;
  Make();
  Assign(StartAt::Policy());
  EXPECT_EQ(ErrorCodeOf(PollOnce()), v1::OFFSET_OUT_OF_RANGE);
}

TEST_F(ConsumerTest, WhatWasFetchedBeforeRetentionTookTheRestIsHandedOutFirst) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  options_.reset = ResetPolicy::kEarliest;
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(PollOnce(1).ok());
  cluster_.RunFor(Duration::Seconds(1));
  Append(21);
  cluster_.world().At("t", 0).DeleteBefore(Offset(24));
  // The stream breaks while it is behind the log's start.
  cluster_.Break(1);
  contiguous_ = false;
  ASSERT_TRUE(ReadTo(30));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(read_[0].at(static_cast<size_t>(i)), Offset(i));
}

TEST_F(ConsumerTest, AnOffsetAboveTheHighWatermarkWaits) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  cluster_.world().At("t", 0).HoldHighWatermark(Offset(3));
  Make();
  Assign(StartAt::At(Offset(6)));
  EXPECT_TRUE(PollOnce().ok());
  EXPECT_TRUE(read_.empty());
  cluster_.world().At("t", 0).ReleaseHighWatermark();
  cluster_.world().Wake();
  ASSERT_TRUE(ReadTo(9));
  EXPECT_EQ(read_[0].front(), Offset(6));
  EXPECT_TRUE(events_.empty());
}

TEST_F(ConsumerTest, R37_ATopicMadeAnewIsReadFromThePolicyOnAndNothingOfTheOldOne) {
  cluster_.world().CreateTopic("t", 1);
  Append(10);
  options_.reset = ResetPolicy::kEarliest;
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(10));
  cluster_.world().CreateTopic("t", 1);
  Append(15);
  read_.clear();
  ASSERT_TRUE(ReadTo(15));
  EXPECT_EQ(read_[0].size(), 15u);
  ASSERT_EQ(Count(Kind::kReset), 1);
  EXPECT_EQ(events_[0].from, Offset(10));
  EXPECT_EQ(ErrorCodeOf(events_[0].status), v1::UNKNOWN_TOPIC_ID);
}

TEST_F(ConsumerTest, ATopicThatIsMissingIsToldOnceAndWaitedFor) {
  Make();
  Assign(StartAt::Earliest());
  EXPECT_TRUE(PollOnce(10, Duration::Seconds(3)).ok());
  ASSERT_EQ(Count(Kind::kTrouble), 1);
  EXPECT_EQ(ErrorCodeOf(events_[0].status), v1::UNKNOWN_TOPIC_OR_PARTITION);
  cluster_.world().CreateTopic("t", 1);
  Append(3);
  ASSERT_TRUE(ReadTo(3));
  EXPECT_EQ(read_[0].front(), Offset(0));
}

TEST_F(ConsumerTest, ADeletedTopicIsToldOnceAfterWhatWasFetchedOfIt) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(PollOnce(1).ok());
  cluster_.world().DeleteTopic("t");
  cluster_.world().Wake();
  cluster_.RunFor(Duration::Seconds(20));
  ASSERT_TRUE(ReadTo(9));
  const absl::Status status = PollOnce(10, Duration::Seconds(20));
  EXPECT_EQ(ErrorCodeOf(status), v1::UNKNOWN_TOPIC_OR_PARTITION) << status;
  // One of its name is another: the partition rests until it is told where to go on.
  cluster_.world().CreateTopic("t", 1);
  Append(3);
  EXPECT_TRUE(PollOnce(10, Duration::Seconds(20)).ok());
  EXPECT_EQ(read_[0].size(), 9u);
  read_.clear();
  consumer_->Seek(Name(0), StartAt::Earliest());
  ASSERT_TRUE(ReadTo(3));
}

TEST_F(ConsumerTest, ATopicDeletedWhileNothingComesIsTold) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  Assign(StartAt::Latest());
  EXPECT_TRUE(PollOnce().ok());
  cluster_.world().DeleteTopic("t");
  cluster_.world().Wake();
  const MonotonicTime deleted = cluster_.clock().Now();
  EXPECT_EQ(ErrorCodeOf(PollOnce(10, Duration::Seconds(60))), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_GE(cluster_.clock().Now() - deleted, options_.unknown_topic_timeout);
  EXPECT_LE(cluster_.clock().Now() - deleted, options_.unknown_topic_timeout * 2);
}

TEST_F(ConsumerTest, ADamagedLogIsToldOnceItWasTriedForLongEnough) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  for (int broker = 1; broker <= 3; ++broker) cluster_.world().damaged_from[broker] = Offset(6);
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(6));
  const MonotonicTime begun = cluster_.clock().Now();
  EXPECT_EQ(ErrorCodeOf(PollOnce(10, Duration::Seconds(60))), v1::STORAGE_ERROR);
  EXPECT_GE(cluster_.clock().Now() - begun, Duration::Seconds(20));
  EXPECT_GT(Count(Kind::kTrouble), 3);
  cluster_.world().damaged_from.clear();
  EXPECT_TRUE(PollOnce(10, Duration::Seconds(60)).ok());
  EXPECT_EQ(read_[0].size(), 6u);
  consumer_->Seek(Name(0), StartAt::At(Offset(6)));
  ASSERT_TRUE(ReadTo(9));
}

TEST_F(ConsumerTest, ADamagedLogIsReadOnWhereAWholeReplicaTakesOver) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  const int leader = static_cast<int>(cluster_.world().At("t", 0).leader.value());
  cluster_.world().damaged_from[leader] = Offset(6);
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(6));
  EXPECT_TRUE(PollOnce(10, Duration::Seconds(20)).ok());
  cluster_.world().MoveLeader("t", 0, leader % 3 + 1);
  ASSERT_TRUE(ReadTo(9));
}

TEST_F(ConsumerTest, ReadsNoFurtherAheadThanItMay) {
  cluster_.world().CreateTopic("t", 1);
  Append(1000, 0, 1, 1000);
  options_.prefetch_bytes = 100'000;
  options_.partition_fetch_bytes = 10'000;
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(PollOnce(1).ok());
  cluster_.RunFor(Duration::Seconds(10));
  // 100 records fill the buffer; the rest waits at the broker, where it is cut off now. What had
  // been sent on is a window of 64 KiB and what was under way.
  cluster_.wire().Cut(FakeCluster::NameOf(1), FakeCluster::kClient);
  size_t before = 0;
  do {
    before = read_[0].size();
    ASSERT_TRUE(PollOnce(50, Duration::Milliseconds(100)).ok());
  } while (read_[0].size() > before);
  EXPECT_GE(read_[0].size(), 95u);
  EXPECT_LE(read_[0].size(), 190u);
  cluster_.wire().HealAll();
  ASSERT_TRUE(ReadTo(1000));
  EXPECT_EQ(cluster_.world().fetch_streams, 1);
}

TEST_F(ConsumerTest, APausedPartitionRestsAndHoldsUpNoOther) {
  cluster_.world().CreateTopic("t", 4);
  options_.prefetch_bytes = 3000;
  Append(100, 0, 1, 100);
  Append(100, 3, 1, 100);  // Of the same leader.
  Make();
  Assign(StartAt::Earliest(), 4);
  ASSERT_TRUE(PollOnce(1).ok());
  cluster_.RunFor(Duration::Seconds(1));
  ASSERT_TRUE(consumer_->Pause(Name(0)));
  const size_t had = read_[0].size();
  ASSERT_TRUE(ReadTo(100, 3));
  EXPECT_EQ(read_[0].size(), had);
  ASSERT_TRUE(consumer_->Resume(Name(0)));
  ASSERT_TRUE(ReadTo(100, 0));
  EXPECT_EQ(read_[0].size(), 100u);
  EXPECT_FALSE(consumer_->Pause({"t", PartitionIndex(9)}));
}

TEST_F(ConsumerTest, AssignKeepsThePositionsOfWhatStays) {
  cluster_.world().CreateTopic("t", 2);
  Append(10, 0);
  Append(10, 1);
  Make();
  consumer_->Assign({{Name(0), StartAt::Earliest()}});
  ASSERT_TRUE(ReadTo(10, 0));
  consumer_->Assign({{Name(0), StartAt::Earliest()}, {Name(1), StartAt::At(Offset(5))}});
  ASSERT_TRUE(ReadTo(10, 1));
  EXPECT_EQ(read_[1].front(), Offset(5));
  EXPECT_EQ(read_[0].size(), 10u);
  consumer_->Assign({{Name(1), StartAt::Earliest()}});
  Append(5, 0);
  Append(5, 1);
  ASSERT_TRUE(ReadTo(15, 1));
  EXPECT_EQ(read_[0].size(), 10u);
  EXPECT_FALSE(consumer_->Position(Name(0)));
}

TEST_F(ConsumerTest, DamagedBytesAreFetchedAgain) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  cluster_.world().corrupt_fetches = 2;
  Make();
  Assign(StartAt::Earliest());
  ASSERT_TRUE(ReadTo(9));
  EXPECT_EQ(read_[0].size(), 9u);
  EXPECT_EQ(Count(Kind::kTrouble), 2);
  EXPECT_EQ(ErrorCodeOf(events_[0].status), v1::CORRUPT_MESSAGE);
}

TEST_F(ConsumerTest, LooksUpBoundsAndWaitsUntilTheyAreKnown) {
  cluster_.world().CreateTopic("t", 1);
  Append(9);
  cluster_.world().At("t", 0).DeleteBefore(Offset(3));
  cluster_.world().offset_not_available = 3;
  Make();
  std::optional<absl::StatusOr<OffsetAnswer>> answer;
  const auto ask = [&](OffsetQuery query) {
    answer.reset();
    consumer_->ListOffsets(query, cluster_.clock().Now() + Duration::Seconds(10),
                           [&](absl::StatusOr<OffsetAnswer> a) { answer = std::move(a); });
    return cluster_.RunUntil([&] { return answer.has_value(); });
  };
  ASSERT_TRUE(ask({Name(0), v1::OFFSET_SPEC_LATEST, 0}));
  ASSERT_TRUE(answer->ok()) << answer->status();
  EXPECT_EQ((*answer)->offset, Offset(9));
  EXPECT_EQ((*answer)->log_start, Offset(3));
  ASSERT_TRUE(ask({Name(0), v1::OFFSET_SPEC_TIMESTAMP, 4500}));
  EXPECT_EQ((*answer)->offset, Offset(5));
  EXPECT_EQ((*answer)->timestamp_ms, 5000);
  ASSERT_TRUE(ask({Name(7), v1::OFFSET_SPEC_LATEST, 0}));
  EXPECT_EQ(ErrorCodeOf(answer->status()), v1::REQUEST_TIMED_OUT);
  ASSERT_TRUE(ask({{"nothing", PartitionIndex(0)}, v1::OFFSET_SPEC_LATEST, 0}));
  EXPECT_EQ(ErrorCodeOf(answer->status()), v1::UNKNOWN_TOPIC_OR_PARTITION);
}

TEST_F(ConsumerTest, TellsThePartitionsOfATopic) {
  Make();
  std::optional<absl::StatusOr<std::vector<PartitionIndex>>> answer;
  const auto ask = [&](const std::string& topic) {
    answer.reset();
    consumer_->Partitions(topic, cluster_.clock().Now() + Duration::Seconds(30),
                          [&](auto a) { answer = std::move(a); });
  };
  ask("t");
  cluster_.RunFor(Duration::Seconds(1));
  cluster_.world().CreateTopic("t", 3);
  ASSERT_TRUE(cluster_.RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ((*answer)->size(), 3u);
  ask("nothing");
  ASSERT_TRUE(cluster_.RunUntil([&] { return answer.has_value(); }));
  EXPECT_EQ(ErrorCodeOf(answer->status()), v1::UNKNOWN_TOPIC_OR_PARTITION);
}

}  // namespace
}  // namespace conclave
