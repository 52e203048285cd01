#include "controller/core/leadership_plan.h"

#include <gtest/gtest.h>

#include "common/metadata/testing.h"

namespace conclave::controller {
namespace {

using metadata_testing::BatchOf;
using metadata_testing::DirectoryOf;
using metadata_testing::PartitionOn;
using metadata_testing::TopicNumber;

// Brokers 1 to 4 under epoch 1, unfenced; topics are added by the tests.
class LeadershipPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Apply(BatchOf().Register(1).Register(2).Register(3).Register(4).batch());
    BatchOf unfence;
    for (int broker : {1, 2, 3, 4}) unfence.Fenced(broker, 1, false);
    Apply(unfence.batch());
    Apply(BatchOf().Topic(topic_, "t").batch());
  }

  void Apply(const v1::MetadataBatch& batch) {
    const MetadataPosition next{image_.position().index + 1, Term(1)};
    const absl::Status status = image_.Apply(next, batch);
    ASSERT_TRUE(status.ok()) << status;
  }

  void Add(const Partition& partition) {
    Apply(BatchOf().Whole(topic_, count_++, partition).batch());
  }

  void Allow(const char* key, const char* value) {
    Apply(BatchOf().TopicConfig(topic_, key, value).batch());
  }

  // What the plan would write for partition `index`; as it is, where nothing.
  Partition After(const LeadershipPlan& plan, int index = 0) {
    BatchBuilder builder{WallTime()};
    plan.AddRecords(builder);
    for (const v1::MetadataBatch& batch : builder.Take()) {
      for (const v1::MetadataRecord& record : batch.records()) {
        if (record.has_partition() && record.partition().partition() == index) {
          return *PartitionFromRecord(record.partition());
        }
        if (record.has_partition_change() && record.partition_change().partition() == index) {
          return PartitionAfter(Now(index), record.partition_change());
        }
      }
    }
    return Now(index);
  }
  Partition Now(int index = 0) { return *image_.FindPartition({topic_, PartitionIndex(index)}); }
  PartitionId Id(int index = 0) const { return {topic_, PartitionIndex(index)}; }
  Partition Replicated(const std::vector<int>& brokers) {
    Partition partition = PartitionOn(brokers);
    partition.flush_policy = v1::FLUSH_POLICY_REPLICATED;
    return partition;
  }
  void SayEnd(int broker, int last_epoch, int64_t log_end) {
    v1::BrokerHeartbeat heartbeat;
    v1::ReplicaEnd* end = heartbeat.add_replica_ends();
    end->set_topic_id(topic_.ToBytes());
    end->set_last_epoch(last_epoch);
    end->set_log_end_offset(log_end);
    reports_.Heard(BrokerId(broker), heartbeat);
  }
  void SayDamaged(int broker, bool open) {
    v1::BrokerHeartbeat heartbeat;
    v1::DamagedReplica* damaged = heartbeat.add_damaged();
    damaged->set_topic_id(topic_.ToBytes());
    damaged->set_what("00.log, offsets 7 to 9");
    damaged->set_open(open);
    reports_.Heard(BrokerId(broker), heartbeat);
  }
  // The brokers are fenced one after the other, each seeing what the last one left.
  void FenceInTurn(const std::vector<int>& brokers) {
    for (const int broker : brokers) {
      LeadershipPlan plan(image_, reports_);
      plan.Fence({{BrokerId(broker), "x"}});
      ApplyPlan(plan, BatchOf().Fenced(broker, 1, true).batch());
    }
  }
  void Unfence(int broker) {
    Apply(BatchOf().Fenced(broker, 1, false).batch());
    LeadershipPlan plan(image_, reports_);
    plan.Unfence(BrokerId(broker));
    ApplyPlan(plan, {});
  }
  void StopUncleanly(int broker) {
    LeadershipPlan plan(image_, reports_);
    plan.StoppedUncleanly(BrokerId(broker));
    ApplyPlan(plan, {});
  }
  void ApplyPlan(const LeadershipPlan& plan, const v1::MetadataBatch& more) {
    BatchBuilder builder{WallTime()};
    plan.AddRecords(builder);
    for (const v1::MetadataRecord& record : more.records()) builder.Add(record);
    for (const v1::MetadataBatch& batch : builder.Take()) Apply(batch);
  }
  static std::vector<BrokerId> Ids(const std::vector<int>& ids) {
    return std::vector<BrokerId>(ids.begin(), ids.end());
  }

  const TopicId topic_ = TopicNumber(1);
  int count_ = 0;
  MetadataImage image_;
  ReplicaReports reports_;
};

TEST_F(LeadershipPlanTest, ALeadersFenceElectsTheNextInAssignmentOrder) {
  Add(PartitionOn({1, 3, 2}));
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(1), "x"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, BrokerId(3));
  EXPECT_EQ(after.leader_epoch, LeaderEpoch(1));
  EXPECT_EQ(after.partition_epoch, PartitionEpoch(1));
  EXPECT_EQ(after.isr, Ids({3, 2}));
  EXPECT_EQ(after.note, "");
}

TEST_F(LeadershipPlanTest, AFollowersFenceKeepsLeaderAndLeaderEpoch) {
  Add(PartitionOn({1, 2, 3}));
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(2), "x"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, BrokerId(1));
  EXPECT_EQ(after.leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(after.partition_epoch, PartitionEpoch(1));
  EXPECT_EQ(after.isr, Ids({1, 3}));
}

TEST_F(LeadershipPlanTest, TheLastMemberStaysWithoutLeaderAndTheNoteSaysWhy) {
  Add(PartitionOn({1}));
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(1), "no heartbeat came"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, kNoBroker);
  EXPECT_EQ(after.leader_epoch, LeaderEpoch(1));
  EXPECT_EQ(after.isr, Ids({1}));
  EXPECT_NE(after.note.find("broker 1"), std::string::npos);
  EXPECT_NE(after.note.find("no heartbeat came"), std::string::npos);
}

TEST_F(LeadershipPlanTest, ThoseFencedTogetherAreNotElectedAndTheLastToEndStays) {
  Add(PartitionOn({1, 2, 3}));
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(1), "x"}, {BrokerId(3), "x"}, {BrokerId(2), "x"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, kNoBroker);
  EXPECT_EQ(after.leader_epoch, LeaderEpoch(1));
  EXPECT_EQ(after.isr, Ids({2}));
}

TEST_F(LeadershipPlanTest, AReplicaOutOfSyncNeverLeadsUnlessTheTopicAllowsIt) {
  Partition partition = PartitionOn({1, 2});
  partition.isr = Ids({1});
  Add(partition);
  {
    LeadershipPlan plan(image_, reports_);
    plan.Fence({{BrokerId(1), "x"}});
    EXPECT_EQ(After(plan).leader, kNoBroker);
  }
  Allow("unclean.leader.election.enable", "true");
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(1), "x"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, BrokerId(2));
  EXPECT_EQ(after.isr, Ids({2}));
  EXPECT_NE(after.note.find("possible loss"), std::string::npos);
}

TEST_F(LeadershipPlanTest, UnfencingGivesALeaderOnlyWhereTheBrokerIsInSync) {
  Apply(BatchOf().Fenced(1, 1, true).batch());
  Partition mine = PartitionOn({2, 1});
  mine.isr = Ids({1});
  mine.leader = kNoBroker;
  mine.leader_epoch = LeaderEpoch(4);
  Partition others = mine;
  others.isr = Ids({2});
  Apply(BatchOf().Fenced(2, 1, true).batch());
  Add(mine);
  Add(others);
  LeadershipPlan plan(image_, reports_);
  plan.Unfence(BrokerId(1));
  EXPECT_EQ(After(plan, 0).leader, BrokerId(1));
  EXPECT_EQ(After(plan, 0).leader_epoch, LeaderEpoch(5));
  EXPECT_EQ(After(plan, 1), Now(1));
}

TEST_F(LeadershipPlanTest, AStoppingBrokerLeavesWhereTheMinimumHoldsWithoutIt) {
  Add(PartitionOn({1, 2, 3}));
  Add(PartitionOn({1, 2}));
  Add(PartitionOn({1}));
  Add(PartitionOn({2, 1, 3}));
  LeadershipPlan plan(image_, reports_);
  plan.MoveAwayFrom(BrokerId(1));
  EXPECT_EQ(After(plan, 0).leader, BrokerId(2));
  EXPECT_EQ(After(plan, 0).isr, Ids({2, 3}));
  // The minimum is 2: it stays in sync as a follower.
  EXPECT_EQ(After(plan, 1).leader, BrokerId(2));
  EXPECT_EQ(After(plan, 1).isr, Ids({1, 2}));
  EXPECT_EQ(After(plan, 2), Now(2)) << "cannot move";
  EXPECT_EQ(After(plan, 3).leader, BrokerId(2));
  EXPECT_EQ(After(plan, 3).leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(After(plan, 3).isr, Ids({2, 3}));
}

TEST_F(LeadershipPlanTest, ALostDirectoryTakesTheReplicaOutEvenAsTheLast) {
  Add(PartitionOn({1, 2}));
  Add(PartitionOn({1}));
  const DirectoryId replacement = DirectoryOf(BrokerId(1), 9);
  Random random(1);
  LeadershipPlan plan(image_, reports_);
  plan.Fence({{BrokerId(1), "x"}});
  plan.LoseDirectories(BrokerId(1), {replacement}, random);
  EXPECT_EQ(After(plan, 0).leader, BrokerId(2));
  EXPECT_EQ(After(plan, 0).isr, Ids({2}));
  EXPECT_EQ(After(plan, 0).replicas[0].directory, replacement);
  const Partition last = After(plan, 1);
  EXPECT_EQ(last.leader, kNoBroker);
  EXPECT_TRUE(last.isr.empty());
  EXPECT_NE(last.note.find("possible loss"), std::string::npos);
  EXPECT_NE(last.note.find("elect-leader --unclean"), std::string::npos);
  EXPECT_TRUE(CheckPartition(last).ok());
}

TEST_F(LeadershipPlanTest, AKeptDirectoryIsLeftAlone) {
  Add(PartitionOn({1, 2}));
  Random random(1);
  LeadershipPlan plan(image_, reports_);
  plan.LoseDirectories(BrokerId(1), {DirectoryOf(BrokerId(1)), DirectoryOf(BrokerId(1), 9)},
                       random);
  EXPECT_EQ(After(plan), Now());
}

TEST_F(LeadershipPlanTest, AnOperatorCanAcceptTheLoss) {
  Partition lost = PartitionOn({1, 2});
  lost.isr.clear();
  lost.leader = kNoBroker;
  lost.note = "possible loss";
  Add(lost);
  LeadershipPlan none(image_, reports_);
  none.ElectWhereLeaderless();
  EXPECT_EQ(After(none), Now());
  LeadershipPlan plan(image_, reports_);
  plan.AllowUncleanElection(topic_);
  EXPECT_EQ(After(plan).leader, BrokerId(1));
  EXPECT_EQ(After(plan).isr, Ids({1}));
}

TEST_F(LeadershipPlanTest, ALeaderThatCouldBeIsElectedOnActivation) {
  Partition half_done = PartitionOn({1, 2});
  half_done.leader = kNoBroker;
  half_done.leader_epoch = LeaderEpoch(7);
  Add(half_done);
  LeadershipPlan plan(image_, reports_);
  plan.ElectWhereLeaderless();
  EXPECT_EQ(After(plan).leader, BrokerId(1));
  EXPECT_EQ(After(plan).leader_epoch, LeaderEpoch(8));
}

// --- ELR (KIP-966). The minimum of three replicas is two.

TEST_F(LeadershipPlanTest, WhoLeavesTheIsrUnderTheMinimumIsEligible) {
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1});
  EXPECT_EQ(Now().isr, Ids({2, 3}));
  EXPECT_EQ(Now().elr, Ids({}));
  FenceInTurn({2});
  EXPECT_EQ(Now().isr, Ids({3}));
  EXPECT_EQ(Now().elr, Ids({2}));
  FenceInTurn({3});
  EXPECT_EQ(Now().isr, Ids({3}));
  EXPECT_EQ(Now().elr, Ids({2}));
  EXPECT_EQ(Now().leader, kNoBroker);
  EXPECT_NE(Now().note.find("brokers 3, 2"), std::string::npos) << Now().note;
}

TEST_F(LeadershipPlanTest, AnEligibleReplicaLeadsWhereNoneOfTheIsrCan) {
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  Unfence(1);
  EXPECT_EQ(Now().leader, kNoBroker) << "it left while the minimum was reached without it";
  Unfence(2);
  EXPECT_EQ(Now().leader, BrokerId(2));
  EXPECT_EQ(Now().isr, Ids({2}));
  EXPECT_EQ(Now().elr, Ids({3})) << "what was committed is on the last of the ISR, too";
  EXPECT_EQ(Now().note, "");
}

TEST_F(LeadershipPlanTest, NobodyIsEligibleForLeavingWhereOneReplicaIsTheMinimum) {
  Allow("min.insync.replicas", "1");
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  EXPECT_EQ(Now().isr, Ids({3}));
  EXPECT_EQ(Now().elr, Ids({}));
}

TEST_F(LeadershipPlanTest, AnotherMinimumMakesNobodyEligibleWhereSomebodyLeads) {
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1, 2});
  LeadershipPlan plan(image_, reports_);
  plan.ForgetEligible(topic_);
  EXPECT_EQ(After(plan).elr, Ids({}));
  EXPECT_EQ(After(plan).leader, BrokerId(3));
}

TEST_F(LeadershipPlanTest, ALeaderFromTheElrUnderALowerMinimumIsAloneEligible) {
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  Allow("min.insync.replicas", "1");
  Unfence(2);
  EXPECT_EQ(Now().leader, BrokerId(2));
  EXPECT_EQ(Now().elr, Ids({}));
}

// --- Unclean stops (R19)

TEST_F(LeadershipPlanTest, R19AnUncleanStopUnderFsyncChangesNothing) {
  Add(PartitionOn({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  StopUncleanly(3);
  EXPECT_EQ(Now().isr, Ids({3}));
  Unfence(3);
  EXPECT_EQ(Now().leader, BrokerId(3));
}

TEST_F(LeadershipPlanTest, R19AReplicaThatStoppedUncleanlyDoesNotLeadWhileACompleteOneExists) {
  Add(Replicated({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  StopUncleanly(3);
  EXPECT_EQ(Now().isr, Ids({}));
  EXPECT_EQ(Now().elr, Ids({2}));
  EXPECT_EQ(Now().stopped_uncleanly, Ids({3}));
  SayEnd(3, 0, 90);
  Unfence(3);
  EXPECT_EQ(Now().leader, kNoBroker);
  Unfence(2);
  EXPECT_EQ(Now().leader, BrokerId(2));
  EXPECT_EQ(Now().isr, Ids({2}));
  EXPECT_EQ(Now().stopped_uncleanly, Ids({3})) << "2 may yet turn out to have stopped";
  EXPECT_EQ(Now().flush_policy, v1::FLUSH_POLICY_REPLICATED);
}

TEST_F(LeadershipPlanTest, WhenAllStoppedUncleanlyTheFurthestLeadsOnceAllAreBack) {
  Add(Replicated({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  StopUncleanly(3);
  StopUncleanly(2);
  StopUncleanly(1);
  EXPECT_EQ(Now().stopped_uncleanly, Ids({2, 3})) << "1 had left before";
  EXPECT_NE(Now().note.find("possible loss"), std::string::npos);
  Unfence(3);
  SayEnd(3, 0, 90);
  Unfence(1);
  EXPECT_EQ(Now().leader, kNoBroker);
  SayEnd(2, 0, 100);
  Unfence(2);
  EXPECT_EQ(Now().leader, BrokerId(2));
  EXPECT_EQ(Now().isr, Ids({2}));
  EXPECT_EQ(Now().stopped_uncleanly, Ids({}));
  EXPECT_NE(Now().note.find("possible loss"), std::string::npos);
  EXPECT_NE(Now().note.find("offset 100"), std::string::npos);
}

// All were killed, and the leader alone lost its power: the others come back while its session
// lasts.
TEST_F(LeadershipPlanTest, R19WhoCameBackBeforeTheLeaderWasMissedIsWaitedFor) {
  Add(Replicated({1, 2, 3}));
  for (const int follower : {2, 3}) {
    FenceInTurn({follower});
    StopUncleanly(follower);
    Unfence(follower);
  }
  EXPECT_EQ(Now().leader, BrokerId(1));
  EXPECT_EQ(Now().isr, Ids({1}));
  EXPECT_EQ(Now().stopped_uncleanly, Ids({3})) << "1 and 3 had the minimum when 2 stopped";
  FenceInTurn({1});
  StopUncleanly(1);
  EXPECT_EQ(Now().leader, kNoBroker);
  EXPECT_EQ(Now().stopped_uncleanly, Ids({1, 3}));
  SayEnd(1, 0, 90);
  SayEnd(3, 0, 100);
  Unfence(1);
  EXPECT_EQ(Now().leader, BrokerId(3));
}

TEST_F(LeadershipPlanTest, WhoStoppedIsForgottenOnceTheMinimumIsInSync) {
  Add(Replicated({1, 2, 3}));
  for (const int follower : {2, 3}) {
    FenceInTurn({follower});
    StopUncleanly(follower);
  }
  Partition partition = Now();
  EXPECT_EQ(partition.stopped_uncleanly, Ids({3}));
  ChangeIsr(partition, Ids({1, 2}), 2);
  EXPECT_EQ(partition.stopped_uncleanly, Ids({}));
}

TEST_F(LeadershipPlanTest, AGreaterEpochComesBeforeAGreaterOffset) {
  Partition partition = Replicated({1, 2});
  partition.isr.clear();
  partition.stopped_uncleanly = Ids({1, 2});
  partition.leader = kNoBroker;
  partition.note = "possible loss";
  Add(partition);
  SayEnd(1, 3, 1000);
  LeadershipPlan waits(image_, reports_);
  waits.ElectIfLeaderless(Id());
  EXPECT_EQ(After(waits).leader, kNoBroker);
  SayEnd(2, 4, 10);
  LeadershipPlan plan(image_, reports_);
  plan.ElectIfLeaderless(Id());
  EXPECT_EQ(After(plan).leader, BrokerId(2));
}

TEST_F(LeadershipPlanTest, AnOperatorNeedNotWaitForThoseThatStoppedUncleanly) {
  Add(Replicated({1, 2, 3}));
  FenceInTurn({1, 2, 3});
  StopUncleanly(3);
  StopUncleanly(2);
  Unfence(1);
  LeadershipPlan plan(image_, reports_);
  plan.ElectUncleanly(Id());
  EXPECT_EQ(After(plan).leader, BrokerId(1));
  EXPECT_EQ(After(plan).isr, Ids({1}));
  EXPECT_EQ(After(plan).stopped_uncleanly, Ids({}));
  EXPECT_NE(After(plan).note.find("possible loss"), std::string::npos);
}

// --- Damage

TEST_F(LeadershipPlanTest, ADamagedReplicaLeavesTheIsrAndAnotherLeads) {
  Add(PartitionOn({1, 2, 3}));
  SayDamaged(1, true);
  LeadershipPlan plan(image_, reports_);
  plan.TakeOutDamaged(BrokerId(1));
  EXPECT_EQ(After(plan).leader, BrokerId(2));
  EXPECT_EQ(After(plan).isr, Ids({2, 3}));
  EXPECT_EQ(After(plan).elr, Ids({}));
}

TEST_F(LeadershipPlanTest, R27AClosedDamagedReplicaLeavesEvenAsTheLastAndTheNoteNamesTheGap) {
  Add(PartitionOn({1}));
  FenceInTurn({1});
  SayDamaged(1, false);
  LeadershipPlan plan(image_, reports_);
  plan.TakeOutDamaged(BrokerId(1));
  ApplyPlan(plan, {});
  EXPECT_EQ(Now().isr, Ids({}));
  EXPECT_NE(Now().note.find("00.log, offsets 7 to 9"), std::string::npos);
  Unfence(1);
  EXPECT_EQ(Now().leader, kNoBroker);
  LeadershipPlan again(image_, reports_);
  again.TakeOutDamaged(BrokerId(1));
  EXPECT_EQ(After(again), Now()) << "said again, it changes nothing";
  LeadershipPlan forced(image_, reports_);
  forced.ElectUncleanly(Id());
  EXPECT_EQ(After(forced).leader, BrokerId(1));
}

TEST_F(LeadershipPlanTest, AnOpenDamagedReplicaStaysWhereNoOtherCouldLead) {
  Partition partition = PartitionOn({1, 2, 3});
  partition.isr = Ids({1});
  Add(partition);
  SayDamaged(1, true);
  LeadershipPlan plan(image_, reports_);
  plan.TakeOutDamaged(BrokerId(1));
  ApplyPlan(plan, {});
  EXPECT_EQ(Now().leader, BrokerId(1));
  EXPECT_EQ(Now().isr, Ids({1}));
  EXPECT_NE(Now().note.find("is damaged"), std::string::npos);
  LeadershipPlan again(image_, reports_);
  again.TakeOutDamaged(BrokerId(1));
  EXPECT_EQ(After(again), Now()) << "said again, it changes nothing";
  // Retention has removed what was damaged.
  reports_.Heard(BrokerId(1), v1::BrokerHeartbeat());
  LeadershipPlan removed(image_, reports_);
  removed.TakeOutDamaged(BrokerId(1));
  EXPECT_EQ(After(removed).note, "");
  EXPECT_EQ(After(removed).leader, BrokerId(1));
}

TEST_F(LeadershipPlanTest, AnUncleanElectionPrefersWhatIsNotDamaged) {
  Partition partition = PartitionOn({1, 2});
  partition.isr.clear();
  partition.leader = kNoBroker;
  partition.note = "possible loss";
  Add(partition);
  SayDamaged(1, false);
  LeadershipPlan plan(image_, reports_);
  plan.ElectUncleanly(Id());
  EXPECT_EQ(After(plan).leader, BrokerId(2));
}

TEST_F(LeadershipPlanTest, ThePreferredReplicaLeadsWhereItIsInSync) {
  Add(PartitionOn({1, 2}));
  FenceInTurn({1});
  Apply(BatchOf().Fenced(1, 1, false).batch());
  LeadershipPlan plan(image_, reports_);
  plan.ElectPreferred(Id());
  EXPECT_EQ(After(plan), Now()) << "not in sync";
  Partition whole = Now();
  whole.isr = Ids({1, 2});
  whole.elr.clear();
  whole.partition_epoch = whole.partition_epoch + 1;
  Apply(BatchOf().Whole(topic_, 0, whole).batch());
  LeadershipPlan moved(image_, reports_);
  moved.ElectPreferred(Id());
  EXPECT_EQ(After(moved).leader, BrokerId(1));
  EXPECT_EQ(After(moved).isr, Ids({1, 2}));
}

}  // namespace
}  // namespace conclave::controller
