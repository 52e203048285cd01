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
  static std::vector<BrokerId> Ids(const std::vector<int>& ids) {
    return std::vector<BrokerId>(ids.begin(), ids.end());
  }

  const TopicId topic_ = TopicNumber(1);
  int count_ = 0;
  MetadataImage image_;
};

TEST_F(LeadershipPlanTest, ALeadersFenceElectsTheNextInAssignmentOrder) {
  Add(PartitionOn({1, 3, 2}));
  LeadershipPlan plan(image_);
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
  LeadershipPlan plan(image_);
  plan.Fence({{BrokerId(2), "x"}});
  const Partition after = After(plan);
  EXPECT_EQ(after.leader, BrokerId(1));
  EXPECT_EQ(after.leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(after.partition_epoch, PartitionEpoch(1));
  EXPECT_EQ(after.isr, Ids({1, 3}));
}

TEST_F(LeadershipPlanTest, TheLastMemberStaysWithoutLeaderAndTheNoteSaysWhy) {
  Add(PartitionOn({1}));
  LeadershipPlan plan(image_);
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
  LeadershipPlan plan(image_);
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
    LeadershipPlan plan(image_);
    plan.Fence({{BrokerId(1), "x"}});
    EXPECT_EQ(After(plan).leader, kNoBroker);
  }
  Allow("unclean.leader.election.enable", "true");
  LeadershipPlan plan(image_);
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
  LeadershipPlan plan(image_);
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
  LeadershipPlan plan(image_);
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
  LeadershipPlan plan(image_);
  plan.Fence({{BrokerId(1), "x"}});
  plan.LoseDirectories(BrokerId(1), {replacement}, random);
  EXPECT_EQ(After(plan, 0).leader, BrokerId(2));
  EXPECT_EQ(After(plan, 0).isr, Ids({2}));
  EXPECT_EQ(After(plan, 0).replicas[0].directory, replacement);
  const Partition last = After(plan, 1);
  EXPECT_EQ(last.leader, kNoBroker);
  EXPECT_TRUE(last.isr.empty());
  EXPECT_NE(last.note.find("possible loss"), std::string::npos);
  EXPECT_NE(last.note.find("unclean.leader.election.enable=true"), std::string::npos);
  EXPECT_TRUE(CheckPartition(last).ok());
}

TEST_F(LeadershipPlanTest, AKeptDirectoryIsLeftAlone) {
  Add(PartitionOn({1, 2}));
  Random random(1);
  LeadershipPlan plan(image_);
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
  LeadershipPlan none(image_);
  none.ElectWhereLeaderless();
  EXPECT_EQ(After(none), Now());
  LeadershipPlan plan(image_);
  plan.AllowUncleanElection(topic_);
  EXPECT_EQ(After(plan).leader, BrokerId(1));
  EXPECT_EQ(After(plan).isr, Ids({1}));
}

TEST_F(LeadershipPlanTest, ALeaderThatCouldBeIsElectedOnActivation) {
  Partition half_done = PartitionOn({1, 2});
  half_done.leader = kNoBroker;
  half_done.leader_epoch = LeaderEpoch(7);
  Add(half_done);
  LeadershipPlan plan(image_);
  plan.ElectWhereLeaderless();
  EXPECT_EQ(After(plan).leader, BrokerId(1));
  EXPECT_EQ(After(plan).leader_epoch, LeaderEpoch(8));
}

}  // namespace
}  // namespace conclave::controller
