#include "broker/replication/follower_replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/error/error.h"

namespace conclave::replication {
namespace {

// A record is one byte: its epoch as a digit.
class FakeLog : public FollowerLog {
 public:
  LogPosition position() const override {
    return {Offset(static_cast<int64_t>(epochs.size())), Offset(durable)};
  }
  LeaderEpoch last_epoch() const override {
    return epochs.empty() ? kNoEpoch : LeaderEpoch(epochs.back() - '0');
  }
  EpochEnd EndOfEpoch(LeaderEpoch epoch) const override {
    EpochEnd found{kNoEpoch, Offset(0)};
    for (size_t i = 0; i < epochs.size(); ++i) {
      if (LeaderEpoch(epochs[i] - '0') <= epoch) {
        found = {LeaderEpoch(epochs[i] - '0'), Offset(static_cast<int64_t>(i + 1))};
      }
    }
    return found;
  }
  Offset log_start() const override { return start; }
  bool begins_anew() const override { return damaged; }
  bool counts_unsynced() const override { return unsynced_counts; }
  absl::Status TruncateTo(Offset end) override {
    epochs.resize(static_cast<size_t>(end.value()));
    durable = std::min(durable, end.value());
    return absl::OkStatus();
  }
  absl::Status ResetTo(Offset offset, const v1::RememberedProducers& producers) override {
    remembered = producers.producers_size();
    epochs = std::string(static_cast<size_t>(offset.value()), '0');
    durable = offset.value();
    start = offset;
    return absl::OkStatus();
  }
  absl::Status RemoveBefore(Offset offset) override {
    start = std::max(start, offset);
    return absl::OkStatus();
  }
  absl::Status Append(const Buffer& batches) override {
    if (fails) return MakeError(v1::STORAGE_ERROR, "the disk is gone");
    epochs += batches.ToString();
    return absl::OkStatus();
  }

  std::string epochs;
  int64_t durable = 0;
  Offset start;
  int remembered = 0;
  bool fails = false;
  bool damaged = false;
  bool unsynced_counts = true;
};

class FollowerReplicaTest : public ::testing::Test {
 protected:
  FollowerReplica::Data Data(const std::string& batches, int64_t high_watermark) {
    return {Buffer(batches), Offset(high_watermark), Offset(0)};
  }
  FollowerReplica Make(const std::string& epochs, int64_t high_watermark = 0) {
    log_.epochs = epochs;
    log_.durable = static_cast<int64_t>(epochs.size());
    return FollowerReplica(LeaderEpoch(5), Session(7), Offset(high_watermark), log_);
  }

  FakeLog log_;
};

TEST_F(FollowerReplicaTest, AppendsAndAcknowledgesWhatIsDurable) {
  FollowerReplica follower = Make("33");
  const auto position = follower.Begin();
  EXPECT_EQ(position.session, Session(8));
  EXPECT_EQ(position.log.end, Offset(2));
  EXPECT_EQ(position.last_epoch, LeaderEpoch(3));
  EXPECT_FALSE(follower.TakeAck());  // Nothing is agreed yet.
  follower.OnData(Session(8), LeaderEpoch(5), Data("55", 3));
  EXPECT_EQ(follower.high_watermark(), Offset(3));
  auto ack = follower.TakeAck();
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->log, (LogPosition{Offset(4), Offset(2)}));
  EXPECT_FALSE(follower.TakeAck());
  log_.durable = 4;
  EXPECT_EQ(follower.TakeAck()->log.durable, Offset(4));
}

TEST_F(FollowerReplicaTest, WhatIsOfAnotherSessionOrEpochIsDropped) {
  FollowerReplica follower = Make("3");
  follower.Begin();
  follower.Begin();
  follower.OnData(Session(8), LeaderEpoch(5), Data("4", 1));
  follower.OnData(Session(9), LeaderEpoch(4), Data("4", 1));
  follower.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(2), Offset(0)});
  EXPECT_EQ(log_.epochs, "3");
  EXPECT_EQ(follower.high_watermark(), Offset(0));
}

TEST_F(FollowerReplicaTest, R14_TruncatesToTheLesserOfBothEndsOfTheEpochAndAsksAgain) {
  // The leader's epoch 3 ends earlier than ours.
  FollowerReplica follower = Make("3333", 2);
  follower.Begin();
  auto next = follower.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(3), Offset(3)});
  ASSERT_TRUE(std::holds_alternative<FollowerReplica::Position>(next));
  EXPECT_EQ(std::get<FollowerReplica::Position>(next).session, Session(9));
  EXPECT_EQ(log_.epochs, "333");
  EXPECT_EQ(follower.high_watermark(), Offset(2));
}

// kafka#13230: a suffix that the leader has not is never under the mark.
TEST_F(FollowerReplicaTest, R16_TheMarkRisesOnlyOnceTheLogsAgree) {
  FollowerReplica follower = Make("3344", 2);
  follower.Begin();
  // Of the session before, when the logs were not known to agree.
  follower.OnData(Session(7), LeaderEpoch(5), Data("", 4));
  EXPECT_EQ(follower.high_watermark(), Offset(2));
  follower.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(3), Offset(3)});
  EXPECT_EQ(log_.epochs, "33");
  EXPECT_EQ(follower.high_watermark(), Offset(2));
  follower.OnData(Session(9), LeaderEpoch(5), Data("5", 4));
  EXPECT_EQ(log_.epochs, "335");
  EXPECT_EQ(follower.high_watermark(), Offset(3)) << "no further than its own log";
}

TEST_F(FollowerReplicaTest, R15_OurEndOfAnEpochThatWeHaveIsTheCut) {
  // The leader has epoch 2 up to 9; ours ended at 2, and 4 is of a reign it never saw.
  FollowerReplica follower = Make("2244");
  follower.Begin();
  follower.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(2), Offset(9)});
  EXPECT_EQ(log_.epochs, "22");
  // An epoch of which we have nothing: down to what is below it.
  FollowerReplica other = Make("1144");
  other.Begin();
  other.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(3), Offset(9)});
  EXPECT_EQ(log_.epochs, "11");
}

TEST_F(FollowerReplicaTest, ALeaderThatContradictsItselfStopsTheSession) {
  FollowerReplica follower = Make("33");
  follower.Begin();
  const auto next = follower.OnDivergence(Session(8), LeaderEpoch(5), {LeaderEpoch(3), Offset(2)});
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Stopped>(next));
  EXPECT_EQ(log_.epochs, "33");
}

TEST_F(FollowerReplicaTest, AfterAnErrorOfTheLogNothingIsTakenInOrAcknowledged) {
  FollowerReplica follower = Make("3");
  follower.Begin();
  log_.fails = true;
  const auto next = follower.OnData(Session(8), LeaderEpoch(5), Data("5", 2));
  ASSERT_TRUE(std::holds_alternative<FollowerReplica::Stopped>(next));
  EXPECT_FALSE(follower.TakeAck());
  log_.fails = false;
  follower.OnData(Session(8), LeaderEpoch(5), Data("5", 2));
  EXPECT_EQ(log_.epochs, "3");
  follower.Begin();
  follower.OnData(Session(9), LeaderEpoch(5), Data("5", 2));
  EXPECT_EQ(log_.epochs, "35");
}

// Nothing of the leader's is kept longer than the leader keeps it, and nothing goes that this
// follower does not know to be committed.
TEST_F(FollowerReplicaTest, WhatTheLeaderHasRemovedIsRemoved) {
  FollowerReplica follower = Make("1122", 2);
  follower.Begin();
  FollowerReplica::Data data = Data("5", 3);
  data.log_start = Offset(4);
  follower.OnData(Session(8), LeaderEpoch(5), data);
  EXPECT_EQ(log_.start, Offset(3));
}

// The leader waits for that word where records were deleted (KIP-107).
TEST_F(FollowerReplicaTest, WhereItsLogBeginsIsAcknowledged) {
  FollowerReplica follower = Make("1122", 4);
  log_.start = Offset(1);
  EXPECT_EQ(follower.Begin().log_start, Offset(1));
  follower.OnData(Session(8), LeaderEpoch(5), Data("", 4));
  EXPECT_EQ(follower.TakeAck()->log_start, Offset(1));
  EXPECT_FALSE(follower.TakeAck().has_value());
  FollowerReplica::Data data = Data("", 4);
  data.log_start = Offset(3);
  follower.OnData(Session(8), LeaderEpoch(5), data);
  const auto ack = follower.TakeAck();
  ASSERT_TRUE(ack.has_value()) << "nothing but the start has changed";
  EXPECT_EQ(ack->log_start, Offset(3));
  EXPECT_FALSE(follower.TakeAck().has_value());
}

TEST_F(FollowerReplicaTest, ALogThatEndsBeforeTheLeadersBeginsAnewThere) {
  FollowerReplica follower = Make("1122", 2);
  follower.Begin();
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Dropped>(
      follower.OnBeginAt(Session(7), LeaderEpoch(5), Offset(9), {})));
  v1::RememberedProducers producers;
  producers.add_producers()->set_id(7);
  const auto next = follower.OnBeginAt(Session(8), LeaderEpoch(5), Offset(9), producers);
  const auto* position = std::get_if<FollowerReplica::Position>(&next);
  ASSERT_NE(position, nullptr);
  EXPECT_EQ(position->session, Session(9));
  EXPECT_EQ(position->log.end, Offset(9));
  EXPECT_EQ(follower.high_watermark(), Offset(9));
  EXPECT_EQ(log_.start, Offset(9));
  EXPECT_EQ(log_.remembered, 1);
  // What is known to be committed a leader has, or has removed: nothing is dropped.
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Stopped>(
      follower.OnBeginAt(Session(9), LeaderEpoch(5), Offset(8), {})));
  EXPECT_EQ(log_.position().end, Offset(9));
}

TEST_F(FollowerReplicaTest, ALogThatHasLostRecordsIsReplacedOnceTheLeaderSaysSo) {
  FollowerReplica follower = Make("1122", 2);
  EXPECT_FALSE(follower.Begin().begins_anew);
  log_.damaged = true;
  // Of a positioning that did not ask for it.
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Stopped>(
      follower.OnBeginAt(Session(8), LeaderEpoch(5), Offset(0), {})));
  const auto position = follower.Begin();
  EXPECT_TRUE(position.begins_anew);
  EXPECT_EQ(position.log.end, Offset(4));
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Dropped>(
      follower.OnBeginAt(Session(8), LeaderEpoch(5), Offset(0), {})));
  EXPECT_TRUE(std::holds_alternative<FollowerReplica::Replace>(
      follower.OnBeginAt(Session(9), LeaderEpoch(5), Offset(0), {})));
  EXPECT_EQ(log_.epochs, "1122") << "whoever replaces it sees to the old one";
  EXPECT_FALSE(follower.TakeAck().has_value());
}

TEST_F(FollowerReplicaTest, WhatDoesNotCountYetIsToldWithWhatDoes) {
  FollowerReplica follower = Make("33");
  log_.unsynced_counts = false;
  follower.Begin();
  follower.OnData(Session(8), LeaderEpoch(5), Data("5", 0));
  // The first is told whatever it is: the leader knows nothing yet.
  ASSERT_TRUE(follower.TakeAck().has_value());
  follower.OnData(Session(8), LeaderEpoch(5), Data("55", 0));
  EXPECT_FALSE(follower.TakeAck().has_value());
  log_.durable = 4;
  auto ack = follower.TakeAck();
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->log.durable, Offset(4));
  EXPECT_EQ(ack->log.end, Offset(5));
  // A round is answered at once.
  FollowerReplica::Data data = Data("5", 0);
  data.round = Round(1);
  follower.OnData(Session(8), LeaderEpoch(5), data);
  EXPECT_TRUE(follower.TakeAck().has_value());
  // From when the settings have it so.
  follower.OnData(Session(8), LeaderEpoch(5), Data("5", 0));
  EXPECT_FALSE(follower.TakeAck().has_value());
  log_.unsynced_counts = true;
  EXPECT_EQ(follower.TakeAck()->log.end, Offset(7));
  // Or where there is much.
  log_.unsynced_counts = false;
  follower.OnData(Session(8), LeaderEpoch(5), Data(std::string(1 << 20, '5'), 0));
  EXPECT_TRUE(follower.TakeAck().has_value());
  follower.OnData(Session(8), LeaderEpoch(5), Data("5", 0));
  EXPECT_FALSE(follower.TakeAck().has_value());
}

}  // namespace
}  // namespace conclave::replication
