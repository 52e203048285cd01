#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/metadata/testing.h"
#include "controller/core/batch_builder.h"
#include "controller/core/metadata_lag.h"
#include "controller/core/placement.h"
#include "controller/core/replica_reports.h"

namespace conclave::controller {
namespace {

using metadata_testing::BatchOf;

TEST(BatchBuilderTest, SplitsByBytesAndStampsEach) {
  BatchBuilder builder(WallTime::FromUnixMillis(5), 1000);
  v1::MetadataRecord record;
  record.mutable_partition_change()->set_note(std::string(300, 'x'));
  for (int i = 0; i < 10; ++i) builder.Add(record);
  const Batches batches = builder.Take();
  ASSERT_EQ(batches.size(), 4u);
  int records = 0;
  for (const auto& batch : batches) {
    EXPECT_EQ(batch.appended_unix_ms(), 5);
    EXPECT_LE(batch.records_size(), 3);
    records += batch.records_size();
  }
  EXPECT_EQ(records, 10);
  EXPECT_TRUE(builder.Take().empty());
}

// What ends within a character is written by protobuf and not read again: no controller would.
TEST(ReplicaReportsTest, ALongDescriptionIsCutBetweenCharacters) {
  for (size_t before = 480; before < 500; ++before) {
    v1::BrokerHeartbeat heartbeat;
    v1::DamagedReplica* damaged = heartbeat.add_damaged();
    damaged->set_topic_id(TopicId().ToBytes());
    std::string what(before, 'x');
    for (int i = 0; i < 20; ++i) what += "\xE2\x82\xAC";
    damaged->set_what(what);
    ReplicaReports reports;
    reports.Heard(BrokerId(1), heartbeat);
    ASSERT_EQ(reports.DamagedOn(BrokerId(1)).size(), 1u);
    const std::string& kept = reports.DamagedOn(BrokerId(1)).begin()->second.what;
    EXPECT_LE(kept.size(), 500u);
    EXPECT_GT(kept.size(), 497u);
    v1::PartitionChangeRecord record;
    record.set_note(kept);
    EXPECT_TRUE(record.ParseFromString(record.SerializeAsString())) << before;
  }
}

TEST(MetadataLagTest, ASessionBehindIsNoticed) {
  const auto at = [](int64_t ms) { return MonotonicTime::FromNanoseconds(ms * 1'000'000); };
  MetadataLag lag(Duration::Seconds(6));
  const BrokerId broker(1);
  EXPECT_FALSE(lag.Observe(broker, LogIndex(5), LogIndex(5), at(0)));
  EXPECT_FALSE(lag.Observe(broker, LogIndex(5), LogIndex(9), at(1000)));
  EXPECT_FALSE(lag.Observe(broker, LogIndex(6), LogIndex(20), at(6999)));
  EXPECT_TRUE(lag.Observe(broker, LogIndex(8), LogIndex(20), at(7000)));
  // It passed the mark: the next one is the commit index of now.
  EXPECT_FALSE(lag.Observe(broker, LogIndex(9), LogIndex(20), at(7500)));
  EXPECT_FALSE(lag.Observe(broker, LogIndex(20), LogIndex(20), at(7600)));
  EXPECT_FALSE(lag.Observe(broker, LogIndex(20), LogIndex(21), at(20000)));
}

class PlacementTest : public ::testing::Test {
 protected:
  // Registers brokers 1, 2, …, one for each rack named.
  void Brokers(const std::vector<std::string>& racks) {
    BatchOf registered;
    BatchOf unfenced;
    for (size_t i = 0; i < racks.size(); ++i) {
      const int id = static_cast<int>(i) + 1;
      auto record = metadata_testing::Registration(BrokerId(id));
      record.set_rack(racks[i]);
      *registered.Add().mutable_register_broker() = record;
      unfenced.Fenced(id, 1, false);
    }
    ASSERT_TRUE(image_.Apply({LogIndex(1), Term(1)}, registered.batch()).ok());
    ASSERT_TRUE(image_.Apply({LogIndex(2), Term(1)}, unfenced.batch()).ok());
  }

  MetadataImage image_;
};

TEST_F(PlacementTest, LeadersAndReplicasAreEvenWithinATopic) {
  Brokers(std::vector<std::string>(5, ""));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Placement placement(image_);
    std::map<BrokerId, int> leaders;
    std::map<BrokerId, int> replicas;
    for (const auto& brokers : placement.Place(50, 3, random)) {
      ++leaders[brokers.front()];
      EXPECT_EQ(std::set<BrokerId>(brokers.begin(), brokers.end()).size(), 3u);
      for (BrokerId broker : brokers) ++replicas[broker];
    }
    for (int id = 1; id <= 5; ++id) {
      EXPECT_EQ(leaders[BrokerId(id)], 10) << seed;
      EXPECT_NEAR(replicas[BrokerId(id)], 30, 1) << seed;
    }
  }
}

TEST_F(PlacementTest, ManySmallTopicsAreEvenToo) {
  Brokers(std::vector<std::string>(4, ""));
  Random random(3);
  Placement placement(image_);
  std::map<BrokerId, int> leaders;
  for (int topic = 0; topic < 40; ++topic) ++leaders[placement.Place(1, 2, random)[0][0]];
  for (int id = 1; id <= 4; ++id) EXPECT_EQ(leaders[BrokerId(id)], 10);
}

TEST_F(PlacementTest, ReplicasOfAPartitionAreOnDifferentRacks) {
  Brokers({"a", "a", "b", "b", "c", "c"});
  Random random(4);
  Placement placement(image_);
  const std::map<int, char> rack = {{1, 'a'}, {2, 'a'}, {3, 'b'}, {4, 'b'}, {5, 'c'}, {6, 'c'}};
  for (const auto& brokers : placement.Place(60, 3, random)) {
    std::set<char> racks;
    for (BrokerId broker : brokers) racks.insert(rack.at(broker.value()));
    EXPECT_EQ(racks.size(), 3u);
  }
  EXPECT_EQ(placement.Place(1, 6, random)[0].size(), 6u) << "racks run out, brokers do not";
}

TEST_F(PlacementTest, TheSameSeedPlacesTheSame) {
  Brokers({"a", "b", "", "", "c"});
  Random one(9);
  Random two(9);
  EXPECT_EQ(Placement(image_).Place(30, 3, one), Placement(image_).Place(30, 3, two));
}

TEST_F(PlacementTest, FencedAndStoppingBrokersAreLeftOut) {
  Brokers({"", "", ""});
  BatchOf change;
  change.Fenced(1, 1, true);
  v1::BrokerChangeRecord& stopping = *change.Add().mutable_broker_change();
  stopping.set_broker_id(2);
  stopping.set_broker_epoch(1);
  stopping.set_stopping(true);
  ASSERT_TRUE(image_.Apply({LogIndex(3), Term(1)}, change.batch()).ok());
  Placement placement(image_);
  EXPECT_EQ(placement.broker_count(), 1u);
  Random random(1);
  EXPECT_EQ(placement.Place(1, 1, random)[0], std::vector<BrokerId>{BrokerId(3)});
}

}  // namespace
}  // namespace conclave::controller
