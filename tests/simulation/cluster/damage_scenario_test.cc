// Disks that lose what they had: it is never served, never copied, never a silent hole, and comes
// back from another replica.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/log/segment.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"
#include "conclave/v1/fetch.pb.h"
#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kLog[] = "data/t-0";
constexpr int kRecords = 60;

class DamageScenario : public Scenario {
 protected:
  SimFileSystem& disk(int node) { return plane().DiskOf(node); }

  // With segments of some ten records, and all of it synced and checkpointed.
  void MakeTopic(int replicas) {
    ASSERT_EQ(cluster_.CreateTopic("t", 1, replicas, {{"segment.bytes", "1024"}}), "");
    for (int i = 0; i < kRecords; ++i) SendAndWait(cluster_.LeaderOf("t", 0), Value(i));
    ASSERT_EQ(acknowledged_.size(), static_cast<size_t>(kRecords));
    // Recovery points and high watermarks are stored.
    cluster_.RunFor(Duration::Seconds(70));
  }
  static std::string Value(int i) { return "v" + std::to_string(i); }

  std::vector<Offset> Segments(int node) {
    std::vector<Offset> bases;
    const auto entries = disk(node).List(kLog);
    for (const DirectoryEntry& entry : *entries) {
      if (const auto base = ParseSegmentName(entry.name)) bases.push_back(*base);
    }
    return bases;
  }
  void RemoveSegment(int node, Offset base) {
    for (const char* suffix : {".log", ".index", ".timeindex"}) {
      ASSERT_TRUE(disk(node).RemoveFile(SegmentPath(kLog, base, suffix)).ok());
    }
    ASSERT_TRUE(disk(node).SyncDirectory(kLog).ok());
  }
  // In the middle of a closed segment.
  void Rot(int node, Offset base) {
    const std::string path = SegmentPath(kLog, base, ".log");
    const auto file = disk(node).Open(path, FileSystem::OpenMode::kReadOnly);
    ASSERT_TRUE(file.ok());
    disk(node).Rot(path, (*file)->size() / 2);
  }
  Offset FirstOf(const std::vector<Offset>& bases, size_t index) { return bases.at(index); }

  // What a client is given from `offset` on.
  absl::StatusOr<v1::FetchPartitionResult> Fetch(int node, Offset offset) {
    v1::FetchRequest request;
    request.set_decode(true);
    v1::FetchPartition* partition = request.add_partitions();
    partition->set_topic("t");
    partition->set_offset(offset.value());
    std::optional<absl::StatusOr<v1::FetchResponse>> answer;
    CallMethod<v1::FetchRequest, v1::FetchResponse>(
        cluster_.transport(), ControlPlane::EndpointTextOf(node), fetch_methods::kFetch, request,
        {.deadline = cluster_.scheduler().now() + kTimeout}, cluster_.executor(),
        [&](absl::StatusOr<v1::FetchResponse> response) { answer = std::move(response); });
    cluster_.RunUntil(kTimeout * 2, [&] { return answer.has_value(); });
    if (!answer->ok()) return answer->status();
    return (*answer)->partitions(0);
  }

  // Every record is in the node's log, and can be read.
  void ExpectAllOn(int node) {
    broker::Replica* replica = plane().BrokerAt(node).replicas().Find(cluster_.IdOf("t", 0));
    ASSERT_NE(replica, nullptr);
    EXPECT_FALSE(replica->damage().has_value());
    EXPECT_EQ(replica->log().log_start(), Offset(0));
    Offset at;
    while (at < replica->log().log_end()) {
      const auto read = replica->log().Read(at, 1 << 20, replica->log().log_end());
      ASSERT_TRUE(read.ok()) << read.status();
      at = read->next_offset;
    }
    EXPECT_GE(at, Offset(kRecords));
  }
  void ExpectServed(int node, Offset offset) {
    ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == node; }));
    const auto after = Fetch(node, offset);
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(after->error().code(), v1::NONE);
    EXPECT_GT(after->records_size(), 0);
  }
  bool IsInSync(int node) {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->InIsr(BrokerId(node));
  }
  void ExpectNothingSetAside(int node) {
    ASSERT_TRUE(
        cluster_.RunUntil(kTimeout, [&] { return disk(node).List("data/damaged")->empty(); }));
  }
};

TEST_P(DamageScenario, R23BitRotAtTheLeaderIsNeverServedAndHealedFromAReplica) {
  MakeTopic(3);
  const int leader = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(leader);
  ASSERT_GE(bases.size(), 4u);
  Rot(leader, bases[1]);
  std::set<std::string> seen;
  for (Offset at = bases[1]; at < bases[2];) {
    const auto result = Fetch(leader, at);
    if (!result.ok() || result->error().code() != v1::NONE) break;
    for (const v1::Record& record : result->records()) {
      EXPECT_EQ(record.value(), Value(static_cast<int>(record.offset())));
    }
    if (result->next_offset() <= at.value()) break;
    at = Offset(result->next_offset());
  }
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !IsInSync(leader); }));
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) >= 0; }));
  EXPECT_NE(cluster_.LeaderOf("t", 0), leader);
  ExpectWholeAndNothingLost();
  EXPECT_EQ(cluster_.counters().replaced, 1u);
  ExpectAllOn(leader);
  ExpectNothingSetAside(leader);
}

// Nobody else could lead: what can be served still is, and the note says what cannot.
TEST_P(DamageScenario, R23BitRotAtTheLastInSyncIsNamedAndTheRestIsServed) {
  MakeTopic(3);
  const int leader = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(leader);
  for (const int other : Others(leader)) plane().Crash(other);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->isr.size() == 1;
  }));
  Rot(leader, bases[1]);
  bool refused = false;
  for (Offset at = bases[1]; at < bases[2];) {
    const auto result = Fetch(leader, at);
    ASSERT_TRUE(result.ok());
    refused = result->error().code() == v1::STORAGE_ERROR;
    if (refused) break;
    ASSERT_GT(result->next_offset(), at.value());
    at = Offset(result->next_offset());
  }
  EXPECT_TRUE(refused);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return cluster_.StateOf("t", 0)->note.find("is damaged") != std::string::npos;
  }));
  EXPECT_EQ(cluster_.LeaderOf("t", 0), leader);
  ExpectServed(leader, bases[2]);
  // A clean stop does not make it whole, and a start does not read closed segments: it is told.
  plane().StopBroker(leader);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !plane().IsUp(leader); }));
  plane().Start(leader);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return plane().IsServing(leader) &&
           cluster_.StateOf("t", 0)->note.find("is damaged") != std::string::npos;
  }));
  // Where headers do not follow each other any more, the log cannot be opened, and nobody leads.
  const bool opened = plane().BrokerAt(leader).replicas().Find(cluster_.IdOf("t", 0)) != nullptr;
  if (opened) ExpectServed(leader, bases[2]);
  for (const int other : Others(leader)) plane().Start(other);
  // Once another is in sync it leads, and this one is healed.
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] {
    return cluster_.LeaderOf("t", 0) >= 0 && cluster_.LeaderOf("t", 0) != leader;
  }));
  ExpectWholeAndNothingLost();
  ExpectAllOn(leader);
}

TEST_P(DamageScenario, R23DamageThatIsRemovedIsNoneAnyMore) {
  MakeTopic(1);
  const int leader = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(leader);
  Rot(leader, bases[1]);
  for (Offset at = bases[1]; at < bases[2];) {
    const auto result = Fetch(leader, at);
    ASSERT_TRUE(result.ok());
    if (result->error().code() != v1::NONE) break;
    at = Offset(result->next_offset());
  }
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return cluster_.StateOf("t", 0)->note.find("is damaged") != std::string::npos;
  }));
  bool deleted = false;
  cluster_.DeleteRecords("t", 0, bases[2],
                         [&](const absl::Status& status, const auto&) { deleted = status.ok(); });
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return deleted; }));
  EXPECT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.StateOf("t", 0)->note.empty(); }))
      << cluster_.StateOf("t", 0)->note;
  EXPECT_EQ(cluster_.LeaderOf("t", 0), leader);
  // Nor does the next process find any.
  plane().Crash(leader);
  plane().Start(leader);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == leader; }));
  EXPECT_FALSE(plane().BrokerAt(leader).replicas().Find(cluster_.IdOf("t", 0))->damage());
  EXPECT_FALSE(*disk(leader).Exists(std::string(kLog) + "/known-damage"));
}

// Its leader, cut off from it, still has what the old log had acknowledged, and the controllers
// hear of no damage any more: an empty log must not come to lead for that.
TEST_P(DamageScenario, ADamagedFollowerBeginsAnewOnlyOnceItsLeaderKnows) {
  MakeTopic(3);
  const int leader = cluster_.LeaderOf("t", 0);
  const std::vector<int> others = Others(leader);
  const int damaged = others.front();
  plane().wire().CutBothWays(ControlPlane::NameOf(leader), ControlPlane::NameOf(damaged));
  Rot(damaged, Segments(damaged)[1]);
  broker::Replica* replica = plane().BrokerAt(damaged).replicas().Find(cluster_.IdOf("t", 0));
  const Offset end = replica->log().log_end();
  for (Offset at; at < end && !replica->damage();) {
    const auto read = replica->Read(at, 1, end);
    if (read.ok()) at = read->next_offset;
  }
  ASSERT_TRUE(replica->damage());
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !IsInSync(damaged); }));
  cluster_.RunFor(Duration::Seconds(2));
  for (const int other : others) {
    if (other != damaged) plane().Crash(other);
  }
  plane().Crash(leader);
  cluster_.RunFor(Duration::Seconds(20));
  plane().wire().HealAll();
  for (int node = kFirstBroker; node < plane().nodes(); ++node) {
    if (!plane().IsUp(node)) plane().Start(node);
  }
  ExpectWholeAndNothingLost();
  ExpectAllOn(damaged);
  ExpectNothingSetAside(damaged);
}

TEST_P(DamageScenario, R27AMissingMiddleSegmentIsFetchedAnew) {
  MakeTopic(3);
  const int node =
      GetParam() % 2 == 0 ? cluster_.LeaderOf("t", 0) : Others(cluster_.LeaderOf("t", 0)).front();
  const std::vector<Offset> bases = Segments(node);
  plane().Crash(node);
  RemoveSegment(node, bases[2]);
  plane().Start(node);
  ExpectWholeAndNothingLost();
  ExpectAllOn(node);
  ExpectNothingSetAside(node);
}

TEST_P(DamageScenario, R27AMissingMiddleSegmentOfAnOnlyReplicaTakesThePartitionOffline) {
  MakeTopic(1);
  const int node = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(node);
  plane().Crash(node);
  RemoveSegment(node, bases[2]);
  plane().Start(node);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return plane().WhyNotWhole().empty() && cluster_.StateOf("t", 0)->isr.empty();
  })) << plane().WhyNotWhole();
  const Partition offline = *cluster_.StateOf("t", 0);
  EXPECT_EQ(offline.leader, kNoBroker);
  const std::string gap = "offsets " + ToString(bases[2]) + " to " + ToString(bases[3] - 1);
  EXPECT_NE(offline.note.find(gap), std::string::npos) << offline.note;
  // Found again by each process, also after a clean stop.
  plane().StopBroker(node);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return !plane().IsUp(node); }));
  plane().Start(node);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return plane().WhyNotWhole().empty(); }));
  cluster_.RunFor(Duration::Seconds(5));
  EXPECT_EQ(cluster_.StateOf("t", 0)->leader, kNoBroker);

  // An operator would rather have what is left.
  cluster_.ExcuseLoss("t", 0);
  EXPECT_EQ(cluster_.ElectUncleanly("t", 0), "");
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == node; }));
  EXPECT_NE(cluster_.StateOf("t", 0)->note.find("possible loss"), std::string::npos);
  const auto left = cluster_.ReadAll("t", 0);
  ASSERT_EQ(left.size(), static_cast<size_t>(bases[2].value()));
  for (size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], Value(static_cast<int>(i)));
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
  // What was given up is kept for whoever wants to look, also when nothing is damaged any more.
  const auto kept = disk(node).List("data/damaged");
  ASSERT_EQ(kept->size(), 1u);
  std::vector<Offset> kept_bases;
  const auto segments = disk(node).List("data/damaged/" + kept->front().name);
  for (const DirectoryEntry& entry : *segments) {
    if (const auto base = ParseSegmentName(entry.name)) kept_bases.push_back(*base);
  }
  EXPECT_EQ(kept_bases, std::vector<Offset>(bases.begin() + 3, bases.end()));
}

TEST_P(DamageScenario, SeveralGapsOfAnOnlyReplicaAreGivenUpAtOnce) {
  MakeTopic(1);
  const int node = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(node);
  ASSERT_GE(bases.size(), 5u);
  plane().Crash(node);
  RemoveSegment(node, bases[0]);
  RemoveSegment(node, bases[2]);
  Rot(node, bases[4]);
  plane().Start(node);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return plane().WhyNotWhole().empty() && cluster_.StateOf("t", 0)->isr.empty();
  }));
  cluster_.ExcuseLoss("t", 0);
  EXPECT_EQ(cluster_.ElectUncleanly("t", 0), "");
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == node; }));
  const auto left = cluster_.ReadAll("t", 0);
  ASSERT_EQ(left.size(), static_cast<size_t>(bases[2].value()));
  EXPECT_EQ(left.back(), Value(static_cast<int>(bases[2].value()) - 1));
  acknowledged_.clear();
  ExpectWholeAndNothingLost();
}

TEST_P(DamageScenario, AMissingFirstSegmentOfAnOnlyReplicaCanBeGivenUp) {
  MakeTopic(1);
  const int node = cluster_.LeaderOf("t", 0);
  const std::vector<Offset> bases = Segments(node);
  plane().Crash(node);
  RemoveSegment(node, bases[0]);
  plane().Start(node);
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] {
    return plane().WhyNotWhole().empty() && cluster_.StateOf("t", 0)->isr.empty();
  }));
  EXPECT_EQ(cluster_.ElectUncleanly("t", 0), "");
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [&] { return cluster_.LeaderOf("t", 0) == node; }));
  const auto left = cluster_.ReadAll("t", 0);
  ASSERT_EQ(left.size(), static_cast<size_t>(kRecords));
  EXPECT_FALSE(left.front().has_value());
  EXPECT_EQ(left.at(static_cast<size_t>(bases[1].value())),
            Value(static_cast<int>(bases[1].value())));
  EXPECT_EQ(left.back(), Value(kRecords - 1));
}

// An empty log in place of one that had records would be in sync by the metadata.
TEST_P(DamageScenario, ABrokerThatLostALogFetchesItAnew) {
  MakeTopic(3);
  const int leader = cluster_.LeaderOf("t", 0);
  plane().Crash(leader);
  ASSERT_TRUE(disk(leader).Rename(kLog, "t-0").ok());
  ASSERT_TRUE(disk(leader).SyncDirectory("/").ok());
  ASSERT_TRUE(disk(leader).SyncDirectory("data").ok());
  plane().Start(leader);
  ExpectWholeAndNothingLost();
  ExpectAllOn(leader);
}

// All that had the records are gone but one, whose log ends before what it had synced: it must not
// lead as if nothing had happened.
TEST_P(DamageScenario, ALogThatEndsBeforeItsCheckpointedHighWatermarkDoesNotLead) {
  MakeTopic(3);
  const int last = cluster_.LeaderOf("t", 0);
  for (const int other : Others(last)) plane().Crash(other);
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [&] {
    const Partition* state = cluster_.StateOf("t", 0);
    return state != nullptr && state->isr.size() == 1;
  }));
  const std::vector<Offset> bases = Segments(last);
  plane().Crash(last);
  RemoveSegment(last, bases.back());
  plane().Start(last);
  ASSERT_TRUE(cluster_.RunUntil(
      kTimeout, [&] { return plane().IsServing(last) && cluster_.StateOf("t", 0)->isr.empty(); }));
  EXPECT_EQ(cluster_.StateOf("t", 0)->leader, kNoBroker);
  // One of the others left while the ISR was under its minimum.
  for (const int other : Others(last)) plane().Start(other);
  ExpectWholeAndNothingLost();
  ExpectAllOn(last);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DamageScenario, testing::Range(1, 11));

}  // namespace
}  // namespace conclave::cluster_sim
