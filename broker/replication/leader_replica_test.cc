#include "broker/replication/leader_replica.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/error/error.h"

namespace conclave::replication {
namespace {

constexpr Duration kLag = Duration::Seconds(10);

MonotonicTime At(int64_t ms) { return MonotonicTime() + Duration::Milliseconds(ms); }

// Epochs and their ends, ascending.
class FakeLog : public LeaderLog {
 public:
  EpochEnd EndOfEpoch(LeaderEpoch epoch) const override {
    EpochEnd found{kNoEpoch, Offset(0)};
    for (const EpochEnd& e : epochs) {
      if (e.epoch <= epoch) found = e;
    }
    return found;
  }
  Offset log_start() const override { return start; }
  Offset first_batch() const override { return first.value_or(start); }
  std::vector<EpochEnd> epochs;
  Offset start;
  std::optional<Offset> first;
};

class LeaderReplicaTest : public ::testing::Test {
 protected:
  LeaderReplicaTest() {
    state_.leader_epoch = LeaderEpoch(5);
    state_.replicas = {BrokerId(1), BrokerId(2), BrokerId(3)};
    state_.isr = state_.replicas;
    log_.epochs = {{LeaderEpoch(3), Offset(10)}, {LeaderEpoch(4), Offset(20)}};
    Make(20, 15);
  }

  void Make(int64_t end, int64_t high_watermark) {
    LeaderReplica::Start start;
    start.state = state_;
    start.min_isr = min_isr_;
    start.log = {Offset(end), Offset(end)};
    start.high_watermark = Offset(high_watermark);
    leader_ = std::make_unique<LeaderReplica>(LeaderReplica::Config{BrokerId(1), kLag}, start, log_,
                                              At(0));
    leader_->SetBrokers({{BrokerId(1), {BrokerEpoch(11), true}},
                         {BrokerId(2), {BrokerEpoch(12), true}},
                         {BrokerId(3), {BrokerEpoch(13), true}}},
                        At(0));
  }

  LeaderReplica::Answer Position(int broker, int64_t end, int last_epoch, int64_t session = 1,
                                 int64_t durable = -1) {
    return leader_->Positioned({BrokerId(broker),
                                BrokerEpoch(10 + broker),
                                Session(session),
                                LeaderEpoch(5),
                                {Offset(end), Offset(durable < 0 ? end : durable)},
                                LeaderEpoch(last_epoch)},
                               At(1));
  }
  bool Agrees(const LeaderReplica::Answer& answer) {
    return std::holds_alternative<LeaderReplica::Agreed>(answer);
  }
  void Append(int64_t end, int64_t ms = 2) {
    leader_->Appended(Offset(end), At(ms));
    leader_->Durable(Offset(end), At(ms));
  }
  void Ack(int broker, int64_t end, int64_t durable, int64_t session = 1, int64_t ms = 3) {
    leader_->Sent(BrokerId(broker), Session(session), Offset(end), Offset(0), Round());
    leader_->Acknowledged(BrokerId(broker), BrokerEpoch(10 + broker), Session(session),
                          LeaderEpoch(5), {Offset(end), Offset(durable)}, Round(), At(ms));
  }
  void Record(std::vector<int> isr, int partition_epoch) {
    state_.isr.clear();
    for (int broker : isr) state_.isr.emplace_back(broker);
    state_.partition_epoch = PartitionEpoch(partition_epoch);
    leader_->MetadataChanged(state_, min_isr_, At(4));
  }

  // Unsynced records count, and both followers are positioned at the end.
  void MakeUnsynced() {
    state_.flush_policy = FlushPolicy::kReplicated;
    Make(20, 15);
    leader_->SetFlushPolicy(FlushPolicy::kReplicated);
    Position(2, 20, 4);
    Position(3, 20, 4);
  }

  // The mark is at 30, and the followers have synced up to 20.
  void CommitUnsynced() {
    MakeUnsynced();
    leader_->Appended(Offset(30), At(2));
    Ack(2, 30, 20);
    Ack(3, 30, 20);
    ASSERT_EQ(leader_->high_watermark(), Offset(30));
  }

  PartitionState state_;
  int min_isr_ = 2;
  FakeLog log_;
  std::unique_ptr<LeaderReplica> leader_;
};

TEST_F(LeaderReplicaTest, TheMarkIsTheLeastDurablePositionOfTheIsr) {
  EXPECT_TRUE(Agrees(Position(2, 20, 4)));
  EXPECT_EQ(leader_->high_watermark(), Offset(15));  // 3 has acknowledged nothing yet.
  EXPECT_TRUE(Agrees(Position(3, 20, 4)));
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  EXPECT_TRUE(leader_->IsHighWatermarkCurrent());
  Append(30);
  Ack(2, 30, 25);
  Ack(3, 30, 30);
  EXPECT_EQ(leader_->high_watermark(), Offset(25));
  Ack(2, 30, 30);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, TheLeaderCountsItselfOnlyAsFarAsItHasSynced) {
  Position(2, 20, 4);
  Position(3, 20, 4);
  leader_->Appended(Offset(30), At(2));
  Ack(2, 30, 30);
  Ack(3, 30, 30);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  leader_->Durable(Offset(30), At(3));
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, R14_DivergenceIsAnsweredByEpoch) {
  // Beyond the leader's end of the epoch that both have.
  auto answer = Position(2, 25, 4);
  ASSERT_TRUE(std::holds_alternative<EpochEnd>(answer));
  EXPECT_EQ(std::get<EpochEnd>(answer), (EpochEnd{LeaderEpoch(4), Offset(20)}));
  // An epoch that the leader has not: the one below it.
  log_.epochs = {{LeaderEpoch(2), Offset(8)}, {LeaderEpoch(4), Offset(20)}};
  answer = Position(2, 12, 3, 2);
  EXPECT_EQ(std::get<EpochEnd>(answer), (EpochEnd{LeaderEpoch(2), Offset(8)}));
  EXPECT_TRUE(Agrees(Position(2, 8, 2, 3)));
  EXPECT_EQ(leader_->FeedOf(BrokerId(2))->next, Offset(8));
  EXPECT_TRUE(Agrees(Position(3, 0, -1, 1)));
}

TEST_F(LeaderReplicaTest, WhatIsOfAnotherSessionEpochOrIncarnationIsDropped) {
  Position(2, 20, 4, 1);
  Position(3, 20, 4, 1);
  Append(30);
  Position(2, 20, 4, 2);
  Ack(2, 30, 30, /*session=*/1);
  Ack(3, 30, 30);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  leader_->Acknowledged(BrokerId(2), BrokerEpoch(12), Session(2), LeaderEpoch(4),
                        {Offset(30), Offset(30)}, Round(), At(3));
  leader_->Acknowledged(BrokerId(2), BrokerEpoch(99), Session(2), LeaderEpoch(5),
                        {Offset(30), Offset(30)}, Round(), At(3));
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  // And what was never sent cannot be there.
  leader_->Acknowledged(BrokerId(2), BrokerEpoch(12), Session(2), LeaderEpoch(5),
                        {Offset(30), Offset(30)}, Round(), At(3));
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Ack(2, 30, 30, 2);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, R18_UnderTheMinimumNothingIsAcknowledged) {
  Position(2, 20, 4);
  Position(3, 20, 4);
  EXPECT_TRUE(leader_->CheckAppendToAll().ok());
  Append(30);
  leader_->AwaitCommit(AppendId(1), Offset(30));
  Record({1}, 1);
  const auto released = leader_->TakeReleased();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(ErrorCodeOf(released[0].status), v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
  EXPECT_EQ(ErrorCodeOf(leader_->CheckAppendToAll()), v1::NOT_ENOUGH_REPLICAS);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Record({1, 2}, 2);
  Ack(2, 30, 30);
  // 3 is proposed by now, and so counts.
  EXPECT_TRUE(leader_->HasProposalInFlight());
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Ack(3, 30, 30);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, AnAppendIsReleasedWhenTheMarkPassesIt) {
  Position(2, 20, 4);
  Position(3, 20, 4);
  Append(30);
  leader_->AwaitCommit(AppendId(1), Offset(25));
  leader_->AwaitCommit(AppendId(2), Offset(30));
  leader_->AwaitCommit(AppendId(3), Offset(30));
  leader_->Forget(AppendId(3));
  Ack(2, 30, 27);
  Ack(3, 30, 30);
  auto released = leader_->TakeReleased();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].append, AppendId(1));
  EXPECT_TRUE(released[0].status.ok());
  leader_->Resign();
  released = leader_->TakeReleased();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(ErrorCodeOf(released[0].status), v1::LEADER_CHANGED_AFTER_APPEND);
}

TEST_F(LeaderReplicaTest, AFollowerThatLagsLeavesTheIsr) {
  Position(2, 20, 4);
  Position(3, 20, 4);
  Append(30, 100);
  Ack(3, 30, 30, 1, 200);
  leader_->Tick(At(10'050));
  EXPECT_FALSE(leader_->TakeProposal());
  leader_->Tick(At(16'000));
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal);
  ASSERT_EQ(proposal->isr.size(), 2u);
  EXPECT_EQ(proposal->isr[0].broker, BrokerId(1));
  EXPECT_EQ(proposal->isr[1], (IsrMember{BrokerId(3), BrokerEpoch(13)}));
  // It counts until the record is seen.
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Record({1, 3}, 1);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, AFollowerJoinsWhenItHasReachedMarkAndEpochStart) {
  state_.isr = {BrokerId(1), BrokerId(2)};
  Make(20, 15);
  Position(2, 20, 4);
  Position(3, 18, 4);
  EXPECT_FALSE(leader_->TakeProposal());
  Append(30);
  Ack(2, 30, 30);
  Ack(3, 29, 29);
  EXPECT_FALSE(leader_->TakeProposal());
  Ack(3, 30, 30);
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->isr.size(), 3u);
  // From here on it counts: the controller may have added it already.
  Append(40);
  Ack(2, 40, 40);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, R17_AnOldIncarnationIsNotProposed) {
  state_.isr = {BrokerId(1), BrokerId(2)};
  Make(20, 20);
  leader_->SetBrokers({{BrokerId(1), {BrokerEpoch(11), true}},
                       {BrokerId(2), {BrokerEpoch(12), true}},
                       {BrokerId(3), {BrokerEpoch(14), true}}},
                      At(1));
  Position(3, 20, 4);
  EXPECT_FALSE(leader_->TakeProposal());
}

TEST_F(LeaderReplicaTest, AProposalWhoseFateIsUnknownIsOutlivedBeforeItIsDropped) {
  state_.isr = {BrokerId(1), BrokerId(2)};
  Make(20, 20);
  Position(2, 20, 4);
  Position(3, 20, 4);
  EXPECT_EQ(leader_->TakeProposal()->isr.size(), 3u);
  leader_->ProposalOutcomeUnknown(At(5));
  EXPECT_EQ(leader_->TakeProposal()->isr.size(), 3u);
  leader_->ProposalRefused(At(6));
  // Dropping it might let the mark pass a member that a late request still adds.
  const auto harmless = leader_->TakeProposal();
  ASSERT_TRUE(harmless);
  EXPECT_EQ(harmless->isr.size(), 2u);
  Append(30, 7);
  Ack(2, 30, 30, 1, 8);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Record({1, 2}, 1);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

// For reads that must not be answered by a leader that was deposed (semantics, section 5).
TEST_F(LeaderReplicaTest, ARoundIsConfirmedByTheWholeIsr) {
  Position(2, 20, 4, 1);
  Position(3, 20, 4, 1);
  const auto confirm = [this](int broker, Round told, Round confirmed) {
    leader_->Sent(BrokerId(broker), Session(1), Offset(20), Offset(20), told);
    leader_->Acknowledged(BrokerId(broker), BrokerEpoch(10 + broker), Session(1), LeaderEpoch(5),
                          {Offset(20), Offset(20)}, confirmed, At(3));
  };
  EXPECT_EQ(leader_->BeginRound(), Round(1));
  confirm(2, Round(1), Round(1));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(0));
  // What was not asked is not believed.
  confirm(3, Round(0), Round(1));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(0));
  confirm(3, Round(1), Round(1));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(1));
  EXPECT_EQ(leader_->BeginRound(), Round(2));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(1));
  confirm(2, Round(2), Round(2));
  confirm(3, Round(2), Round(2));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(2));
}

// Under its minimum the ISR is not alone in what the controller elects from.
TEST_F(LeaderReplicaTest, ARoundIsConfirmedByTheEligibleReplicasToo) {
  Position(2, 20, 4, 1);
  state_.elr = {BrokerId(2)};
  Record({1}, 7);
  EXPECT_EQ(leader_->BeginRound(), Round(1));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(0));
  leader_->Sent(BrokerId(2), Session(1), Offset(20), Offset(20), Round(1));
  leader_->Acknowledged(BrokerId(2), BrokerEpoch(12), Session(1), LeaderEpoch(5),
                        {Offset(20), Offset(20)}, Round(1), At(3));
  EXPECT_EQ(leader_->ConfirmedRound(), Round(1));
}

// Else what is on the leader alone would be acknowledged, and the ELR could be elected.
TEST_F(LeaderReplicaTest, ARaisedMinimumAndASmallerIsrAreOneChange) {
  min_isr_ = 1;
  Make(20, 15);
  Position(2, 20, 4);
  Position(3, 20, 4);
  Append(30);
  leader_->AwaitCommit(AppendId(1), Offset(30));
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  min_isr_ = 2;
  state_.elr = {BrokerId(2)};
  Record({1}, 7);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  const auto released = leader_->TakeReleased();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(ErrorCodeOf(released[0].status), v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
}

TEST_F(LeaderReplicaTest, OneThatNobodyFollowsHandsOver) {
  state_.isr = {BrokerId(1)};
  state_.elr = {BrokerId(2)};
  Make(20, 15);
  const auto tick = [this](int64_t seconds) {
    leader_->Tick(At(seconds * 1000));
    return leader_->TakeProposal();
  };
  EXPECT_FALSE(tick(5));
  const auto proposal = tick(10);
  ASSERT_TRUE(proposal);
  EXPECT_TRUE(proposal->hand_over);
  EXPECT_FALSE(tick(15)) << "one at a time";
  leader_->ProposalRefused(At(15'000));
  const auto again = tick(20);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->hand_over);
}

TEST_F(LeaderReplicaTest, OneThatIsFollowedOrHasNobodyToHandOverToStays) {
  state_.isr = {BrokerId(1)};
  state_.elr = {BrokerId(2)};
  Make(20, 15);
  // It catches up, however long that takes.
  Position(3, 10, 3);
  for (int i = 1; i < 10; ++i) {
    Ack(3, 10 + i, 10 + i, 1, i * 5'000 - 100);
    leader_->Tick(At(i * 5'000));
    EXPECT_FALSE(leader_->TakeProposal()) << i;
  }
  leader_->SetBrokers({{BrokerId(1), {BrokerEpoch(11), true}},
                       {BrokerId(2), {BrokerEpoch(12), false}},
                       {BrokerId(3), {BrokerEpoch(13), true}}},
                      At(46'000));
  for (int i = 10; i < 20; ++i) {
    leader_->Tick(At(i * 5'000));
    EXPECT_FALSE(leader_->TakeProposal()) << "3 is not eligible, and 2 is away";
  }
}

TEST_F(LeaderReplicaTest, AFollowerThatEndsBeforeTheLogBeginsBeginsThere) {
  log_.epochs = {{LeaderEpoch(4), Offset(20)}};
  log_.start = Offset(12);
  const auto answer = Position(2, 11, 4);
  const auto* begin = std::get_if<LeaderReplica::BeginAt>(&answer);
  ASSERT_NE(begin, nullptr);
  EXPECT_EQ(begin->offset, Offset(12));
  // An empty log, too.
  EXPECT_TRUE(std::holds_alternative<LeaderReplica::BeginAt>(Position(3, 0, -1)));
  EXPECT_TRUE(Agrees(Position(2, 12, -1, 2)));
  EXPECT_TRUE(Agrees(Position(3, 12, 4, 2)));
  // Beyond the start, and with records older than any that is left.
  EXPECT_TRUE(std::holds_alternative<LeaderReplica::BeginAt>(Position(3, 14, 3, 3)));
}

// A batch is copied as a whole, also the one within which the log starts.
TEST_F(LeaderReplicaTest, WhereTheLogBeginsWithinABatchAFollowerBeginsAtTheBatch) {
  log_.epochs = {{LeaderEpoch(4), Offset(20)}};
  log_.start = Offset(12);
  log_.first = Offset(10);
  for (const int64_t end : {0, 9, 11, 12}) {
    const auto answer = Position(2, end, -1, static_cast<uint64_t>(end + 1));
    const auto* begin = std::get_if<LeaderReplica::BeginAt>(&answer);
    ASSERT_NE(begin, nullptr) << end;
    EXPECT_EQ(begin->offset, Offset(10));
  }
  EXPECT_TRUE(Agrees(Position(2, 10, -1, 20)));
  EXPECT_TRUE(Agrees(Position(3, 10, 4, 2))) << "it goes on where it ended";
}

TEST_F(LeaderReplicaTest, UnderReplicatedTheMarkIsTheLeastEndOfTheIsr) {
  MakeUnsynced();
  Ack(2, 30, 20);
  Ack(3, 30, 20);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  // The leader may be the last to have come so far, and has synced nothing.
  leader_->Appended(Offset(30), At(2));
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, UnsyncedRecordsCountOnlyOnceThatIsInEffect) {
  leader_->SetFlushPolicy(FlushPolicy::kReplicated);
  Position(2, 20, 4);
  Position(3, 20, 4);
  leader_->Appended(Offset(30), At(2));
  Ack(2, 30, 20);
  Ack(3, 30, 20);
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  state_.flush_policy = FlushPolicy::kReplicated;
  Record({1, 2, 3}, 1);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));
}

TEST_F(LeaderReplicaTest, BackToFsyncIsToldOnceEveryMemberIsSyncedUpToTheMark) {
  ASSERT_NO_FATAL_FAILURE(CommitUnsynced());
  leader_->SetFlushPolicy(FlushPolicy::kFsync);
  EXPECT_EQ(leader_->high_watermark(), Offset(30)) << "it never falls";
  leader_->Appended(Offset(40), At(2));
  Ack(2, 40, 30);
  Ack(3, 40, 29);
  EXPECT_EQ(leader_->high_watermark(), Offset(30)) << "unsynced records count no more";
  leader_->Durable(Offset(30), At(3));
  EXPECT_FALSE(leader_->TakeProposal().has_value());
  Ack(3, 40, 30);
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal.has_value());
  EXPECT_TRUE(proposal->synced);
  EXPECT_EQ(proposal->isr.size(), 3u);
  state_.flush_policy = FlushPolicy::kFsync;
  Record({1, 2, 3}, 1);
  EXPECT_FALSE(leader_->HasProposalInFlight());
  Ack(2, 40, 40);
  Ack(3, 40, 40);
  leader_->Durable(Offset(40), At(5));
  EXPECT_EQ(leader_->high_watermark(), Offset(40));
  EXPECT_FALSE(leader_->TakeProposal().has_value());
}

// Of those that left, nobody knows what they have synced: they may lead by being eligible, and what
// was acknowledged has to be in the minimum of synced logs.
TEST_F(LeaderReplicaTest, BackToFsyncIsNotToldWhileTheIsrIsUnderItsMinimum) {
  ASSERT_NO_FATAL_FAILURE(CommitUnsynced());
  leader_->SetFlushPolicy(FlushPolicy::kFsync);
  Record({1}, 1);
  leader_->Durable(Offset(30), At(3));
  EXPECT_FALSE(leader_->TakeProposal().has_value());
  Ack(2, 30, 30);
  const auto grown = leader_->TakeProposal();
  ASSERT_TRUE(grown.has_value());
  EXPECT_EQ(grown->isr.size(), 2u);
  EXPECT_FALSE(grown->synced);
  Record({1, 2}, 2);
  const auto told = leader_->TakeProposal();
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->synced);
}

TEST_F(LeaderReplicaTest, AProposalWhileUnsyncedDoesNotTellThatItIsSynced) {
  state_.flush_policy = FlushPolicy::kReplicated;
  Make(20, 15);
  leader_->SetFlushPolicy(FlushPolicy::kReplicated);
  Position(2, 20, 4);
  leader_->Appended(Offset(30), At(2));
  leader_->SetFlushPolicy(FlushPolicy::kFsync);
  leader_->Tick(At(0) + kLag);  // 3 was never heard of.
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal.has_value());
  EXPECT_FALSE(proposal->synced);
}

// KIP-107: deleted is what no member of the ISR has any more.
TEST_F(LeaderReplicaTest, TheLogStartOfTheIsrIsTheLeastThatWasSaid) {
  const auto moved = [this](int broker, int64_t start, int64_t session = 1, int epoch = 5) {
    leader_->LogStartMoved(BrokerId(broker), BrokerEpoch(10 + broker), Session(session),
                           LeaderEpoch(epoch), Offset(start));
  };
  Position(2, 20, 4);
  Position(3, 20, 4);
  log_.start = Offset(12);
  EXPECT_EQ(leader_->LogStartOfIsr(), Offset(0));
  EXPECT_EQ(leader_->BehindLogStart(Offset(12)), (std::vector{BrokerId(2), BrokerId(3)}));
  moved(2, 14);
  // Of another session or epoch.
  moved(3, 12, 2);
  moved(3, 12, 1, 4);
  EXPECT_EQ(leader_->LogStartOfIsr(), Offset(0));
  EXPECT_EQ(leader_->BehindLogStart(Offset(12)), std::vector{BrokerId(3)});
  moved(3, 11);
  EXPECT_EQ(leader_->LogStartOfIsr(), Offset(11));
  moved(3, 13);
  EXPECT_EQ(leader_->LogStartOfIsr(), Offset(12)) << "the leader's own counts";
  moved(3, 5);
  EXPECT_EQ(leader_->LogStartOfIsr(), Offset(12)) << "it does not fall";
}

TEST_F(LeaderReplicaTest, AFollowerThatHasWhatWasDeletedDoesNotJoinTheIsr) {
  state_.isr = {BrokerId(1), BrokerId(2)};
  Make(20, 15);
  log_.start = Offset(12);
  Position(2, 20, 4);
  EXPECT_TRUE(Agrees(Position(3, 20, 4)));
  EXPECT_FALSE(leader_->TakeProposal().has_value());
  leader_->LogStartMoved(BrokerId(3), BrokerEpoch(13), Session(1), LeaderEpoch(5), Offset(12));
  Ack(3, 20, 20);
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal.has_value());
  EXPECT_EQ(proposal->isr.size(), 3u);
  EXPECT_TRUE(leader_->BehindLogStart(Offset(12)) == std::vector{BrokerId(2)})
      << "who is in the ISR is waited for";
}

// What an old log acknowledged must not bring the new one into the ISR.
TEST_F(LeaderReplicaTest, WhoLostRecordsBeginsAnewOnceItIsNotCountedOn) {
  int64_t session = 0;
  const auto ask = [&] {
    return leader_->Positioned({BrokerId(3),
                                BrokerEpoch(13),
                                Session(++session),
                                LeaderEpoch(5),
                                {Offset(20), Offset(20)},
                                LeaderEpoch(4),
                                Offset(),
                                /*begins_anew=*/true},
                               At(1));
  };
  const auto refused = [&](const LeaderReplica::Answer& answer) {
    const auto* status = std::get_if<absl::Status>(&answer);
    return status != nullptr && ErrorCodeOf(*status) == v1::INELIGIBLE_REPLICA;
  };
  Position(2, 20, 4);
  Position(3, 20, 4, ++session);
  EXPECT_TRUE(refused(ask())) << "in the ISR";
  state_.elr = {BrokerId(3)};
  Record({1, 2}, 2);
  EXPECT_TRUE(refused(ask())) << "eligible";
  state_.elr.clear();
  Record({1, 2}, 3);
  EXPECT_FALSE(leader_->TakeProposal());
  Position(3, 20, 4, ++session);
  ASSERT_TRUE(leader_->TakeProposal());
  EXPECT_TRUE(refused(ask())) << "proposed";
  leader_->ProposalOutcomeUnknown(At(2));
  EXPECT_TRUE(refused(ask())) << "perhaps proposed";
  Record({1, 2}, 4);
  leader_->TakeProposal();
  const LeaderReplica::Answer answer = ask();
  const auto* begin = std::get_if<LeaderReplica::BeginAt>(&answer);
  ASSERT_NE(begin, nullptr);
  EXPECT_EQ(begin->offset, Offset(0));
  // Neither by what it had acknowledged nor by an empty log.
  Ack(3, 20, 20, session);
  EXPECT_FALSE(leader_->TakeProposal());
  Position(3, 0, -1, ++session);
  EXPECT_FALSE(leader_->TakeProposal());
  Ack(3, 20, 20, session);
  EXPECT_TRUE(leader_->TakeProposal());
}

// The controller may believe it after the setting has changed back and forth.
TEST_F(LeaderReplicaTest, WhatIsUnsyncedDoesNotCountWhileTheWordThatAllIsSyncedIsUnderWay) {
  // All is synced up to `durable`, which is told; then the setting goes back, and more comes that
  // is not synced.
  const auto tell_synced_and_go_on = [&](int64_t durable, int64_t end) {
    leader_->SetFlushPolicy(FlushPolicy::kFsync);
    leader_->Durable(Offset(durable), At(2));
    for (const int follower : {2, 3}) Ack(follower, durable, durable);
    const auto told = leader_->TakeProposal();
    EXPECT_TRUE(told && told->synced);
    leader_->SetFlushPolicy(FlushPolicy::kReplicated);
    leader_->Appended(Offset(end), At(2));
    for (const int follower : {2, 3}) Ack(follower, end, durable);
    EXPECT_EQ(leader_->high_watermark(), Offset(durable));
  };
  MakeUnsynced();
  tell_synced_and_go_on(20, 30);
  // The first attempt may be on its way yet.
  leader_->ProposalOutcomeUnknown(At(3));
  const auto proposal = leader_->TakeProposal();
  ASSERT_TRUE(proposal);
  EXPECT_FALSE(proposal->synced);
  leader_->ProposalRefused(At(3));
  EXPECT_EQ(leader_->high_watermark(), Offset(20));
  Record({1, 2, 3}, 2);
  EXPECT_EQ(leader_->high_watermark(), Offset(30));

  // Refused for good, it says nothing any more.
  tell_synced_and_go_on(30, 40);
  leader_->ProposalRefused(At(5));
  EXPECT_EQ(leader_->high_watermark(), Offset(40));
}

}  // namespace
}  // namespace conclave::replication
