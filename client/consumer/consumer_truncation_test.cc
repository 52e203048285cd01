// A consumer after a change of leader: is what it read still in the log (KIP-320)?
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/consumer/consumer.h"
#include "client/testing/fake_cluster.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;
using client_testing::FakePartition;
using Kind = ConsumerEvent::Kind;

const TopicPartition kName{"t", PartitionIndex(0)};

class ConsumerTruncationTest : public testing::Test {
 protected:
  ConsumerTruncationTest() { cluster_.world().CreateTopic("t", 1); }

  FakePartition& log() { return cluster_.world().At("t", 0); }
  void Make(ResetPolicy reset, StartAt start) {
    options_.bootstrap = cluster_.bootstrap();
    options_.reset = reset;
    options_.on_event = [this](const ConsumerEvent& event) { events_.push_back(event); };
    consumer_ =
        std::make_unique<Consumer>(options_, cluster_.transport(), cluster_.executor(), Random(5));
    consumer_->Assign({{kName, start}});
  }
  // One record a batch.
  void Append(const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      BatchBuilder builder;
      RecordView record;
      record.value = value;
      builder.Add(record);
      v1::ProducePartitionResult result;
      log().Append(*builder.Finish(), result);
      ASSERT_EQ(result.error().code(), v1::NONE);
    }
    cluster_.world().Wake();
  }
  // Of one Poll.
  absl::Status Poll(size_t max = 100) {
    std::optional<absl::Status> status;
    consumer_->Poll(max, cluster_.clock().Now() + Duration::Seconds(1),
                    [&](Consumer::PollResult result) {
                      status = result.status();
                      if (!result.ok()) return;
                      for (const PartitionRecords& part : *result) {
                        for (const RecordView& record : part.records) {
                          read_.emplace_back(*record.value);
                        }
                      }
                    });
    EXPECT_TRUE(cluster_.RunUntil([&] { return status.has_value(); }));
    return status.value_or(absl::InternalError("the poll did not end"));
  }
  void ReadAll() {
    for (int i = 0; i < 20 && consumer_->Position(kName) != log().end(); ++i) {
      ASSERT_TRUE(Poll().ok());
    }
  }
  // The log is cut, and another leader goes on with other records: an unclean election.
  void ElectUncleanly(Offset cut, const std::vector<std::string>& values) {
    log().TruncateTo(cut);
    cluster_.world().MoveLeader("t", 0, 2);
    Append(values);
  }

  FakeCluster cluster_;
  ConsumerOptions options_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<std::string> read_;
  std::vector<ConsumerEvent> events_;
};

TEST_F(ConsumerTruncationTest, ANewLeaderIsAskedBeforeItIsFetchedFrom) {
  Append({"a", "b"});
  Make(ResetPolicy::kNone, StartAt::Earliest());
  ReadAll();
  EXPECT_EQ(cluster_.world().epoch_queries, 0);
  const LeaderEpoch before = consumer_->PositionEpoch(kName);
  EXPECT_EQ(before, log().leader_epoch);
  cluster_.world().drop_epoch_answers = 2;
  cluster_.world().MoveLeader("t", 0, 2);
  Append({"c"});
  ReadAll();
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(cluster_.world().epoch_queries, 1) << "two were lost";
  EXPECT_EQ(consumer_->PositionEpoch(kName), before + 1);
  EXPECT_TRUE(events_.empty());
}

TEST_F(ConsumerTruncationTest, GoesBackToWhereTheLogsPartAndTellsSo) {
  Append({"a", "b", "c", "d"});
  // With "latest" a broker's word that the position is out of range would skip what came since.
  Make(ResetPolicy::kLatest, StartAt::Earliest());
  ReadAll();
  ElectUncleanly(Offset(2), {"x"});
  ASSERT_TRUE(cluster_.RunUntil([&] { return !events_.empty(); }));
  ReadAll();
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].kind, Kind::kTruncated);
  EXPECT_EQ(events_[0].from, Offset(4));
  EXPECT_EQ(events_[0].to, Offset(2));
  EXPECT_EQ(ErrorCodeOf(events_[0].status), v1::LOG_TRUNCATED);
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "c", "d", "x"}));
}

// The new leader's log is longer than the position by now: no broker would find it out of range.
TEST_F(ConsumerTruncationTest, IsFoundThoughTheLogHasGrownPastThePosition) {
  Append({"a", "b", "c"});
  Make(ResetPolicy::kEarliest, StartAt::Earliest());
  ReadAll();
  ElectUncleanly(Offset(1), {"u", "v", "w", "x"});
  ASSERT_TRUE(cluster_.RunUntil([&] { return !events_.empty(); }));
  ReadAll();
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].kind, Kind::kTruncated);
  EXPECT_EQ(events_[0].to, Offset(1));
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "c", "u", "v", "w", "x"}));
}

TEST_F(ConsumerTruncationTest, WithThePolicyNoneItIsAnErrorThatNamesTheOffset) {
  Append({"a", "b", "c", "d"});
  Make(ResetPolicy::kNone, StartAt::Earliest());
  ReadAll();
  ElectUncleanly(Offset(2), {"x", "y", "z"});
  absl::Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) status = Poll();
  EXPECT_EQ(ErrorCodeOf(status), v1::LOG_TRUNCATED);
  EXPECT_NE(std::string(status.message()).find("seek to offset 2"), std::string::npos) << status;
  EXPECT_TRUE(Poll().ok()) << "it is told once";
  EXPECT_EQ(read_.size(), 4u) << "and the partition rests";
  ASSERT_TRUE(consumer_->Seek(kName, StartAt::At(Offset(2))));
  ReadAll();
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "c", "d", "x", "y", "z"}));
}

TEST_F(ConsumerTruncationTest, WhatWasFetchedAndNotHandedOutIsDropped) {
  Append({"a", "b", "c", "d"});
  Make(ResetPolicy::kNone, StartAt::Earliest());
  ASSERT_TRUE(Poll(1).ok());
  cluster_.RunFor(Duration::Seconds(1));
  ElectUncleanly(Offset(2), {"x"});
  cluster_.RunFor(Duration::Seconds(1));
  ReadAll();
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "x"}));
  EXPECT_TRUE(events_.empty()) << "no record that was seen is gone";
}

TEST_F(ConsumerTruncationTest, APositionStoredWithItsEpochIsCheckedWhenItIsTakenUp) {
  Append({"a", "b", "c"});
  const LeaderEpoch epoch = log().leader_epoch;
  ElectUncleanly(Offset(1), {"x", "y", "z"});
  Make(ResetPolicy::kLatest, StartAt::At(Offset(3), epoch));
  ASSERT_TRUE(cluster_.RunUntil([&] { return !events_.empty(); }));
  EXPECT_EQ(events_[0].kind, Kind::kTruncated);
  ReadAll();
  EXPECT_EQ(read_, (std::vector<std::string>{"x", "y", "z"}));
  // Without one there is nothing to check it by.
  events_.clear();
  read_.clear();
  Make(ResetPolicy::kLatest, StartAt::At(Offset(3)));
  ReadAll();
  EXPECT_EQ(read_, std::vector<std::string>{"z"});
  EXPECT_TRUE(events_.empty());
}

// Metadata and leader are of before an election, and the position, as a group commits it, of after:
// the log there ends before it, which is no reason to throw it away.
TEST_F(ConsumerTruncationTest, ALeaderOlderThanThePositionIsNotAsked) {
  Append({"a", "b"});
  Make(ResetPolicy::kEarliest, StartAt::At(Offset(4), log().leader_epoch + 1));
  EXPECT_TRUE(Poll().ok());
  EXPECT_TRUE(read_.empty());
  EXPECT_EQ(cluster_.world().fetch_streams, 0);
  cluster_.world().MoveLeader("t", 0, 2);
  Append({"c", "d", "e"});
  ReadAll();
  EXPECT_EQ(read_, std::vector<std::string>{"e"});
  EXPECT_TRUE(events_.empty());
}

// All that the consumer has read is gone by retention, and with it the epoch it is known by.
TEST_F(ConsumerTruncationTest, RetentionIsNoTruncation) {
  Append({"a", "b"});
  Make(ResetPolicy::kNone, StartAt::Earliest());
  ReadAll();
  cluster_.world().MoveLeader("t", 0, 2);
  log().DeleteBefore(Offset(2));
  Append({"c"});
  ReadAll();
  EXPECT_EQ(read_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(events_.empty());
}

}  // namespace
}  // namespace conclave
