#include "common/random/random.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/metadata/testing.h"
#include "controller/core/controller_core.h"
#include "controller/core/invariants.h"

// Thousands of random operations on three controllers, of which one at a time is active, with loss
// of what was appended and not committed; invariants after each.
namespace conclave::controller {
namespace {

constexpr int kBrokers = 6;
constexpr int kCores = 3;
constexpr int kSteps = 1500;

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kCores; ++i) {
      cores_.push_back(std::make_unique<ControllerCore>(ControllerCore::Options(),
                                                        random_.Fork("core" + std::to_string(i))));
    }
    ChangeController();
  }

  void Step() {
    const uint64_t dice = random_.Below(100);
    const int broker = 1 + static_cast<int>(random_.Below(kBrokers));
    if (dice < 12) {
      Register(broker);
    } else if (dice < 24) {
      Stream(broker);
    } else if (dice < 50) {
      Heartbeat(broker);
    } else if (dice < 58) {
      Advance();
    } else if (dice < 63) {
      CreateTopic();
    } else if (dice < 65) {
      DeleteTopic();
    } else if (dice < 80) {
      AlterIsr();
    } else if (dice < 83) {
      AlterConfig();
    } else if (dice < 86) {
      AllocateIds(broker);
    } else if (dice < 87) {
      Take(active().UnregisterBroker(BrokerId(broker), now_));
    } else if (dice < 89) {
      ElectLeaders();
    } else if (dice < 98) {
      CommitUpTo(committed_ + random_.Below(log_.size() - committed_ + 1));
    } else {
      ChangeController();
    }
    Expect(CheckImage(active().speculative()));
    Expect(CheckEverybodyIsLed(active().speculative()));
  }

  // Everything is committed; then all agree, and so does a replay from nothing.
  void Settle() {
    CommitUpTo(log_.size());
    MetadataImage replayed;
    for (const Entry& entry : log_) Expect(replayed.Apply(entry.position, entry.batch));
    EXPECT_TRUE(replayed == active().speculative());
    for (const auto& core : cores_) EXPECT_TRUE(core->committed() == replayed);
    const auto back = MetadataImage::FromProto(replayed.ToProto(), replayed.position());
    Expect(back.status());
    if (back.ok()) {
      EXPECT_TRUE(*back == replayed);
    }
  }

  bool failed() const { return ::testing::Test::HasFailure(); }
  // What a second run from the same seed must repeat to the byte.
  std::string Trace() const {
    std::string trace;
    for (const Entry& entry : log_) trace += entry.batch.SerializeAsString();
    return trace;
  }
  // How often each kind of thing happened.
  const std::map<std::string, size_t>& seen() const { return seen_; }

 private:
  struct Entry {
    MetadataPosition position;
    v1::MetadataBatch batch;
  };

  // A broker process as the controllers see it.
  struct Process {
    uint64_t incarnation = 0;
    uint64_t disk = 0;
    bool stream = false;
    bool stopping = false;
  };

  ControllerCore& active() { return *cores_[active_]; }
  const MetadataImage& image() { return active().speculative(); }

  void Expect(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

  void Append(const Batches& batches) {
    for (const v1::MetadataBatch& batch : batches) {
      // Raft's own entries stand in between.
      index_ = index_ + 1 + random_.Below(2);
      log_.push_back({{index_, term_}, batch});
      active().Appended(log_.back().position, batch, now_.time);
    }
  }

  template <class Response>
  void Take(const absl::StatusOr<Change<Response>>& change) {
    if (change.ok()) Append(change->batches);
  }

  void CommitUpTo(size_t end) {
    for (; committed_ < end; ++committed_) {
      const Entry& entry = log_[committed_];
      for (const auto& core : cores_) Expect(core->Committed(entry.position, entry.batch));
      const MetadataImage& visible = cores_[0]->committed();
      Expect(CheckImage(visible));
      Expect(history_.Observe(visible));
      for (const auto& record : entry.batch.records()) Count(record);
    }
  }

  void Count(const v1::MetadataRecord& record) {
    if (record.has_broker_change()) {
      const auto& change = record.broker_change();
      ++seen_[change.stopping() ? "stop" : change.fenced() ? "fence" : "unfence"];
    } else if (record.has_register_broker()) {
      ++seen_["registration"];
    } else if (record.has_remove_topic()) {
      ++seen_["deletion"];
    } else if (record.has_unregister_broker()) {
      ++seen_["unregistration"];
    } else if (record.has_partition()) {
      ++seen_[record.partition().partition_epoch() == 0 ? "creation" : "lost directory"];
      if (record.partition().isr().empty()) ++seen_["empty ISR"];
    } else if (record.has_partition_change()) {
      const auto& change = record.partition_change();
      ++seen_[change.leader() < 0 ? "no leader" : "leader or ISR change"];
      if (change.note().find("unclean election") != std::string::npos) ++seen_["unclean election"];
      if (change.note().find("come furthest, to") != std::string::npos) ++seen_["furthest leads"];
      if (change.note().find("is damaged") != std::string::npos) ++seen_["damage"];
      if (change.elr_size() > 0) ++seen_["eligible"];
      if (change.isr_size() == 0 && change.elr_size() > 0) ++seen_["eligible alone"];
      if (change.stopped_uncleanly_size() > 0) ++seen_["unclean stop"];
    }
  }

  void ChangeController() {
    if (active_ >= 0) active().Deactivate();
    // Of what was in flight, some survives.
    CommitUpTo(committed_ + random_.Below(log_.size() - committed_ + 1));
    seen_["lost batch"] += log_.size() - committed_;
    log_.resize(committed_);
    index_ = log_.empty() ? LogIndex(0) : log_.back().position.index;
    active_ = static_cast<int>(random_.Below(kCores));
    term_ = term_ + 1;
    for (auto& [id, process] : processes_) process.stream = false;
    Append(active().Activate(term_, now_));
    Take(active().Bootstrap(cluster_, now_));
  }

  v1::RegisterBrokerRequest RequestOf(int broker) {
    const Process& process = processes_[broker];
    v1::RegisterBrokerRequest request;
    request.set_cluster_id(cluster_.ToBytes());
    request.set_broker_id(broker);
    request.set_incarnation_id(
        IncarnationId::FromRandom(process.incarnation, static_cast<uint64_t>(broker)).ToBytes());
    request.set_endpoint("h:" + std::to_string(broker));
    request.add_directory_ids(
        metadata_testing::DirectoryOf(BrokerId(broker), process.disk).ToBytes());
    if (random_.Chance(0.3)) request.set_clean_stop_epoch(EpochOf(broker).value());
    return request;
  }

  void Register(int broker) {
    Process& process = processes_[broker];
    const bool retry = process.incarnation > 0 && random_.Chance(0.2);
    if (!retry) {
      if (process.stream) Stream(broker);
      process.incarnation += 1;
      process.stopping = false;
      if (random_.Chance(0.1)) ++process.disk;
    }
    Take(active().RegisterBroker(RequestOf(broker), now_));
  }

  BrokerEpoch EpochOf(int broker) {
    const Broker* known = image().FindBroker(BrokerId(broker));
    return known == nullptr ? BrokerEpoch(1) : known->epoch;
  }

  void Stream(int broker) {
    Process& process = processes_[broker];
    if (process.stream) {
      active().StreamBroken(BrokerId(broker), EpochOf(broker), now_);
      process.stream = false;
    } else {
      process.stream = active().StreamOpened(BrokerId(broker), EpochOf(broker), now_).ok();
    }
  }

  void Heartbeat(int broker) {
    Process& process = processes_[broker];
    if (random_.Chance(0.05)) process.stopping = true;
    v1::BrokerHeartbeat heartbeat;
    heartbeat.set_cluster_id(cluster_.ToBytes());
    heartbeat.set_broker_id(broker);
    heartbeat.set_broker_epoch(EpochOf(broker).value() - (random_.Chance(0.05) ? 1 : 0));
    heartbeat.set_metadata_index(index_.value() - (random_.Chance(0.1) ? random_.Below(10) : 0));
    heartbeat.set_ready(random_.Chance(0.9));
    heartbeat.set_wants_shutdown(process.stopping);
    AddReports(broker, heartbeat);
    const auto change = active().Heartbeat(heartbeat, now_);
    if (change.ok() && change->response.may_stop()) {
      // It is gone, and nobody misses it as a leader that could be another.
      const Broker* visible = active().committed().FindBroker(BrokerId(broker));
      EXPECT_TRUE(visible != nullptr && (visible->stopping || visible->fenced));
    }
    Take(change);
  }

  // Of partitions that it holds, mostly; some of them damaged, some waiting for it.
  void AddReports(int broker, v1::BrokerHeartbeat& heartbeat) {
    const auto& held = image().PartitionsOn(BrokerId(broker));
    for (const PartitionId& id : held) {
      if (random_.Chance(0.02)) {
        v1::DamagedReplica& damaged = *heartbeat.add_damaged();
        damaged.set_topic_id(id.topic.ToBytes());
        damaged.set_partition(id.index.value() + (random_.Chance(0.1) ? 1 : 0));
        damaged.set_what("a byte");
        damaged.set_open(random_.Chance(0.5));
      }
      if (random_.Chance(0.5)) {
        v1::ReplicaEnd& end = *heartbeat.add_replica_ends();
        end.set_topic_id(random_.Chance(0.1) ? "none" : id.topic.ToBytes());
        end.set_partition(id.index.value());
        end.set_last_epoch(static_cast<int32_t>(random_.Below(5)));
        end.set_log_end_offset(static_cast<int64_t>(random_.Below(100)));
      }
    }
  }

  void ElectLeaders() {
    v1::ElectLeadersRequest request;
    request.set_type(random_.Chance(0.5) ? v1::ELECTION_TYPE_PREFERRED : v1::ELECTION_TYPE_UNCLEAN);
    request.set_topic(Name());
    Take(active().ElectLeaders(request, now_));
  }

  void Advance() {
    const int64_t ms = random_.Chance(0.2) ? 6000 : random_.Between(1, 300);
    now_.time = now_.time + Duration::Milliseconds(ms);
    const MonotonicTime due = active().NextDeadline();
    const Batches batches = active().Tick(now_);
    EXPECT_TRUE(batches.empty() || due <= now_.time);
    EXPECT_GT(active().NextDeadline(), now_.time);
    Append(batches);
  }

  std::string Name() { return "t" + std::to_string(random_.Below(12)); }

  void CreateTopic() {
    v1::CreateTopicsRequest request;
    for (uint64_t i = 1 + random_.Below(2); i > 0; --i) {
      v1::NewTopic& topic = *request.add_topics();
      topic.set_name(Name());
      topic.set_partitions(static_cast<int32_t>(random_.Below(6)));
      topic.set_replication_factor(static_cast<int32_t>(random_.Below(5)));
      if (random_.Chance(0.2)) {
        (*topic.mutable_configs())["unclean.leader.election.enable"] = "true";
      }
      if (random_.Chance(0.4)) (*topic.mutable_configs())["flush.policy"] = "replicated";
    }
    Take(active().CreateTopics(request, Requester::kUser, now_));
  }

  void DeleteTopic() {
    v1::DeleteTopicsRequest request;
    request.add_names(Name());
    Take(active().DeleteTopics(request, Requester::kUser, now_));
  }

  void AlterConfig() {
    v1::AlterConfigsRequest request;
    request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
    request.set_name(Name());
    if (random_.Chance(0.3)) {
      (*request.mutable_set())["flush.policy"] = random_.Chance(0.5) ? "replicated" : "fsync";
    } else if (random_.Chance(0.5)) {
      (*request.mutable_set())["unclean.leader.election.enable"] =
          random_.Chance(0.5) ? "true" : "false";
    } else {
      (*request.mutable_set())["min.insync.replicas"] = std::to_string(random_.Below(4));
    }
    Take(active().AlterConfigs(request, now_));
  }

  void AllocateIds(int broker) {
    v1::AllocateProducerIdsRequest request;
    request.set_broker_id(broker);
    request.set_broker_epoch(EpochOf(broker).value());
    Take(active().AllocateProducerIds(request, now_));
  }

  // A leader proposes, mostly with the right epochs.
  void AlterIsr() {
    const Topic* topic = image().FindTopic(Name());
    if (topic == nullptr) return;
    const auto index = random_.Below(topic->partitions.size());
    const Partition& partition = topic->partitions[index];
    const auto slip = [this] { return random_.Chance(0.05) ? -1 : 0; };
    v1::AlterPartitionRequest request;
    request.set_broker_id(partition.leader.value());
    request.set_broker_epoch(EpochOf(partition.leader.value()).value());
    v1::PartitionAlteration& proposal = *request.add_partitions();
    proposal.set_topic_id(topic->id.ToBytes());
    proposal.set_partition(static_cast<int32_t>(index));
    proposal.set_leader_epoch(partition.leader_epoch.value() + slip());
    proposal.set_partition_epoch(partition.partition_epoch.value() + slip());
    proposal.set_synced(random_.Chance(0.5));
    for (const PartitionReplica& replica : partition.replicas) {
      if (!random_.Chance(0.7) && replica.broker != partition.leader) continue;
      v1::IsrMember& member = *proposal.add_new_isr();
      member.set_broker_id(replica.broker.value());
      member.set_broker_epoch(EpochOf(replica.broker.value()).value() + slip());
    }
    Take(active().AlterPartition(request, now_));
  }

  Random random_;
  const ClusterId cluster_ = ClusterId::FromRandom(5, 6);
  std::vector<std::unique_ptr<ControllerCore>> cores_;
  int active_ = -1;
  Now now_{MonotonicTime::FromNanoseconds(1), WallTime::FromUnixMillis(1)};
  Term term_;
  LogIndex index_;
  std::vector<Entry> log_;
  // How many of `log_` are.
  size_t committed_ = 0;
  MetadataHistory history_;
  std::map<int, Process> processes_;
  std::map<std::string, size_t> seen_;
};

TEST(RandomTest, InvariantsHoldAfterEveryStep) {
  std::map<std::string, size_t> seen;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int step = 1; step <= kSteps; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      world.Step();
      if (step % 100 == 0) world.Settle();
      ASSERT_FALSE(world.failed());
    }
    for (const auto& [what, times] : world.seen()) seen[what] += times;
  }
  // The walk goes where it should.
  for (const char* what :
       {"creation", "deletion", "registration", "unregistration", "fence", "unfence", "stop",
        "leader or ISR change", "no leader", "lost directory", "empty ISR", "unclean election",
        "lost batch", "furthest leads", "damage", "eligible", "eligible alone", "unclean stop"}) {
    RecordProperty(what, static_cast<int>(seen[what]));
    EXPECT_GT(seen[what], 5u) << what;
  }
}

TEST(RandomTest, TheSameSeedGivesTheSameLog) {
  const auto run = [] {
    World world(77);
    for (int step = 0; step < 500; ++step) world.Step();
    return world.Trace();
  };
  const std::string first = run();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, run());
}

// Canaries: a checker that sees nothing checks nothing.
class InvariantsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    using metadata_testing::BatchOf;
    const auto apply = [this](const BatchOf& batch) {
      ASSERT_TRUE(image_.Apply({image_.position().index + 1, Term(1)}, batch.batch()).ok());
    };
    apply(BatchOf().Register(1).Register(2));
    apply(BatchOf().Fenced(1, 1, false).Fenced(2, 1, false));
    apply(BatchOf().Topic(topic_, "t").Whole(topic_, 0, metadata_testing::PartitionOn({1, 2})));
  }

  void Change(const Partition& partition) {
    const auto status =
        image_.Apply({image_.position().index + 1, Term(1)},
                     metadata_testing::BatchOf().Change(topic_, 0, partition).batch());
    ASSERT_TRUE(status.ok()) << status;
  }

  const TopicId topic_ = metadata_testing::TopicNumber(1);
  MetadataImage image_;
};

TEST_F(InvariantsTest, SomebodyWithoutALeaderIsSeen) {
  EXPECT_TRUE(CheckEverybodyIsLed(image_).ok());
  Partition partition = metadata_testing::PartitionOn({1, 2});
  partition.leader = kNoBroker;
  partition.leader_epoch = LeaderEpoch(1);
  partition.partition_epoch = PartitionEpoch(1);
  Change(partition);
  EXPECT_TRUE(CheckImage(image_).ok());
  EXPECT_FALSE(CheckEverybodyIsLed(image_).ok());
}

TEST_F(InvariantsTest, AFencedBrokerInSyncIsSeen) {
  EXPECT_TRUE(CheckImage(image_).ok());
  ASSERT_TRUE(
      image_.Apply({LogIndex(9), Term(1)}, metadata_testing::BatchOf().Fenced(2, 1, true).batch())
          .ok());
  EXPECT_FALSE(CheckImage(image_).ok());
}

TEST_F(InvariantsTest, TwoLeadersOfAnEpochAndAFallingEpochAreSeen) {
  MetadataHistory history;
  EXPECT_TRUE(history.Observe(image_).ok());
  const MetadataImage before = image_;
  Partition partition = metadata_testing::PartitionOn({1, 2});
  partition.leader = BrokerId(2);
  partition.leader_epoch = LeaderEpoch(1);
  partition.partition_epoch = PartitionEpoch(1);
  Change(partition);
  EXPECT_TRUE(history.Observe(image_).ok());
  EXPECT_FALSE(history.Observe(before).ok());
  MetadataImage other = before;
  partition.leader = BrokerId(1);
  ASSERT_TRUE(other
                  .Apply({LogIndex(4), Term(1)},
                         metadata_testing::BatchOf().Change(topic_, 0, partition).batch())
                  .ok());
  EXPECT_FALSE(history.Observe(other).ok());
}

}  // namespace
}  // namespace conclave::controller
