// Groups under random faults: members that vanish, stop, come back and dawdle; coordinators that
// fail and lose what was not committed; appends that fail; topics that grow, go and come anew.
#include "common/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "broker/group/coordinator_harness.h"

namespace conclave::group {
namespace {

constexpr char kGroup[] = "g";
const std::vector<std::string> kTopics = {"a", "b", "c"};

struct Counters {
  int failovers = 0;
  int lost_batches = 0;
  int failed_appends = 0;
  int acknowledged = 0;
  int refused = 0;
  int unknown = 0;
  int reads = 0;
  int sessions_ended = 0;
  int rebalances = 0;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    harness_.hold_commits = true;
    for (const std::string& topic : kTopics) Grow(topic);
    for (int i = 0; i < 5; ++i) {
      Client client;
      client.keeps_id = i % 2 == 0;
      client.member = std::make_unique<TestMember>(
          harness_, kGroup, client.keeps_id ? "client-" + std::to_string(i) : "",
          i == 4 ? "instance" : "");
      client.member->assignor = std::vector<std::string>{"uniform", "range", "sticky"}[seed % 3];
      Draw(client.member->topics);
      clients_.push_back(std::move(client));
    }
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      Step();
      Look();
    }
    Settle();
  }

  const Counters& counters() const { return counters_; }

 private:
  struct Client {
    std::unique_ptr<TestMember> member;
    bool keeps_id = false;
    // It does nothing until then.
    MonotonicTime stopped_until;
    // A commit of its that is on its way; it makes no other before that has come.
    int under_way = 0;
  };
  struct Sent {
    PartitionId partition;
    int64_t value = 0;
  };
  struct Delayed {
    std::string member;
    int32_t epoch = 0;
    Sent sent;
    // That of the client, as long as it waits for it.
    int* under_way = nullptr;
  };

  void Draw(std::vector<std::string>& topics) {
    topics.clear();
    for (const std::string& topic : kTopics) {
      if (random_.Chance(0.8)) topics.push_back(topic);
    }
  }

  void Grow(const std::string& topic) {
    const int32_t partitions = ++partitions_[topic] + (partitions_[topic] == 1 ? 3 : 0);
    partitions_[topic] = partitions;
    harness_.SetTopic(topic, partitions, incarnations_[topic] + 1);
  }

  void Step() {
    if (!harness_.fail_appends.ok() && random_.Chance(0.1)) {
      harness_.fail_appends = absl::OkStatus();
    }
    if (!network_.empty() && random_.Chance(0.03)) {
      const auto some = network_.begin() + static_cast<int64_t>(random_.Below(network_.size()));
      const Delayed commit = *some;
      network_.erase(some);
      return Arrive(commit);
    }
    const uint64_t what = random_.Below(100);
    if (what < 60) return ClientStep(clients_[random_.Below(clients_.size())]);
    if (what < 78) return CommitSome();
    if (what < 90) return harness_.Wait(Duration::Milliseconds(random_.Between(1, 400)));
    if (what < 94) return Read();
    if (what < 95) return harness_.Wait(Duration::Seconds(random_.Between(1, 6)));
    if (what < 96) return FailOver();
    if (what < 97) return FailAppends();
    const std::string& topic = kTopics[random_.Below(kTopics.size())];
    if (random_.Chance(0.7)) return Grow(topic);
    const TopicId old = harness_.P(topic, 0).topic;
    harness_.DeleteTopic(topic);
    gone_.insert(old);
    std::erase_if(acknowledged_, [&](const auto& entry) { return entry.first.topic == old; });
    ++incarnations_[topic];
    partitions_[topic] = 0;
    Grow(topic);
  }

  // Coordinators that only load take nobody in.
  void ClientStep(Client& client) {
    TestMember& member = *client.member;
    if (client.stopped_until > harness_.now.mono) return;
    if (!member.has_stream()) {
      TakeInTheEnd(client);
      if (random_.Chance(0.6)) member.Connect();
      return;
    }
    const uint64_t what = random_.Below(100);
    if (what < 35) return member.Obey();
    if (what < 45) return member.GiveUp();
    if (what < 60) return member.Heartbeat();
    if (what < 88) return Commit(client);
    if (what < 92) return member.Break();
    if (what < 94) {
      client.stopped_until = harness_.now.mono + Duration::Seconds(random_.Between(1, 25));
      return;
    }
    if (what < 96) {
      std::vector<std::string> topics;
      Draw(topics);
      return member.Subscribe(topics);
    }
    if (what < 97) return member.Leave(random_.Chance(0.5) ? -1 : -2);
    // Its process starts anew.
    member.Break();
    member.Forget(client.keeps_id);
    LoseTrack(client);
    member.Connect();
  }

  // What the end of the last stream means for who was on it.
  void TakeInTheEnd(Client& client) {
    const auto ended = harness_.ended.find(client.member->stream());
    if (ended == harness_.ended.end()) return;
    const v1::ErrorCode code = ErrorCodeOf(ended->second);
    if (code == v1::UNKNOWN_MEMBER_ID || code == v1::FENCED_MEMBER_EPOCH || code == v1::NONE) {
      client.member->Forget(client.keeps_id);
      LoseTrack(client);
    }
  }

  void Commit(Client& client) {
    const PartitionSet& owned = client.member->owned();
    if (owned.empty() || client.under_way > 0) return;
    auto partition = owned.begin();
    std::advance(partition, static_cast<int64_t>(random_.Below(owned.size())));
    const Sent sent{*partition, ++last_value_};
    submitted_[sent.partition].insert(sent.value);
    const Delayed commit{client.member->id(), client.member->epoch(), sent, &client.under_way};
    if (!random_.Chance(0.3)) return Arrive(commit);
    client.under_way = 1;
    network_.push_back(commit);
  }

  void Arrive(const Delayed& commit) {
    *commit.under_way = 0;
    sent_[harness_.Commit(kGroup, commit.member, commit.epoch, commit.sent.partition,
                          commit.sent.value)] = commit.sent;
  }

  // What is on its way when a client begins anew may come at any time.
  void LoseTrack(Client& client) {
    for (Delayed& commit : network_) {
      if (commit.under_way == &client.under_way) commit.under_way = &nobody_;
    }
    client.under_way = 0;
  }

  void CommitSome() {
    const size_t all = harness_.log().size();
    const size_t now = harness_.committed_batches();
    harness_.Commit(random_.Chance(0.7) ? all : now + random_.Below(all - now + 1));
  }

  void FailOver() {
    ++counters_.failovers;
    const size_t all = harness_.log().size();
    const size_t keep =
        harness_.committed_batches() + random_.Below(all - harness_.committed_batches() + 1);
    counters_.lost_batches += static_cast<int>(all - keep);
    harness_.FailOver(keep);
    if (random_.Chance(0.8)) harness_.Commit();
  }

  void FailAppends() {
    ++counters_.failed_appends;
    harness_.fail_appends = MakeError(v1::NOT_ENOUGH_REPLICAS, "too few replicas are in sync");
  }

  // A committed offset is a register: a read gives what was acknowledged before it began, or
  // something newer that was asked for and not refused.
  void Read() {
    if (acknowledged_.empty()) return;
    auto entry = acknowledged_.begin();
    std::advance(entry, static_cast<int64_t>(random_.Below(acknowledged_.size())));
    const RequestId request = harness_.Fetch(kGroup, {entry->first});
    const Reply* reply = harness_.ReplyTo(request);
    ASSERT_NE(reply, nullptr);
    if (!reply->status.ok()) {
      EXPECT_TRUE(IsRetriable(reply->status)) << reply->status;
      return;
    }
    ++counters_.reads;
    const auto value = harness_.Fetched(request);
    ASSERT_TRUE(value.has_value()) << "an acknowledged offset is gone";
    EXPECT_GE(*value, entry->second) << "an acknowledged offset, or one that was read, went back";
    entry->second = std::max(entry->second, *value);
    EXPECT_TRUE(submitted_[entry->first].contains(*value)) << "nobody committed that, or not with "
                                                              "success";
  }

  void Look() {
    // What came of commits.
    for (auto it = sent_.begin(); it != sent_.end();) {
      if (harness_.ReplyTo(it->first) == nullptr) {
        ++it;
        continue;
      }
      const Sent& sent = it->second;
      const v1::ErrorCode code = harness_.CommitResult(it->first);
      if (code == v1::NONE) {
        ++counters_.acknowledged;
        if (!gone_.contains(sent.partition.topic)) {
          int64_t& value = acknowledged_[sent.partition];
          EXPECT_GE(sent.value, value) << "a commit of an earlier holding was taken";
          value = std::max(value, sent.value);
        }
      } else if (HasNoEffect(code)) {
        ++counters_.refused;
        submitted_[sent.partition].erase(sent.value);
      } else {
        ++counters_.unknown;
      }
      it = sent_.erase(it);
    }
    const GroupImage& committed = harness_.coordinator->committed();
    CheckHeldByOne(committed);
    CheckHeldByOne(harness_.coordinator->speculative());
    const Group* group = committed.Find(kGroup);
    if (group == nullptr || !harness_.coordinator->IsServing()) return;
    EXPECT_GE(group->epoch, epoch_) << "the group's epoch fell";
    counters_.rebalances += group->epoch - epoch_;
    epoch_ = group->epoch;
    for (const Client& client : clients_) {
      const auto found = group->members.find(client.member->id());
      if (found == group->members.end()) continue;
      for (const PartitionId& partition : client.member->owned()) {
        EXPECT_TRUE(found->second.held.contains(partition))
            << client.member->id() << " owns " << ToString(partition)
            << ", and could be given to another";
      }
    }
  }

  static void CheckHeldByOne(const GroupImage& image) {
    for (const auto& [name, group] : image.groups()) {
      std::map<PartitionId, std::string> holders;
      for (const auto& [id, member] : group.members) {
        EXPECT_LE(member.epoch, group.epoch);
        for (const auto& [partition, held] : member.held) {
          const auto [other, first] = holders.emplace(partition, id);
          EXPECT_TRUE(first) << ToString(partition) << " is held by " << id << " and "
                             << other->second;
        }
      }
    }
  }

  // No more faults: everybody is in, and every partition has its one owner.
  void Settle() {
    if (::testing::Test::HasFailure()) return;
    harness_.fail_appends = absl::OkStatus();
    harness_.hold_commits = false;
    harness_.Commit();
    for (Client& client : clients_) client.stopped_until = MonotonicTime();
    for (int round = 0; round < 30; ++round) {
      harness_.Wait(Duration::Milliseconds(500));
      for (Client& client : clients_) {
        if (client.member->has_stream()) {
          client.member->Obey();
        } else {
          TakeInTheEnd(client);
          client.member->Connect();
        }
      }
      Look();
    }
    const Group* group = harness_.coordinator->committed().Find(kGroup);
    ASSERT_NE(group, nullptr);
    EXPECT_TRUE(group->IsStable());
    EXPECT_EQ(group->members.size(), clients_.size());
    std::set<std::string> read;
    size_t owned = 0;
    for (const Client& client : clients_) {
      const auto member = group->members.find(client.member->id());
      ASSERT_NE(member, group->members.end()) << client.member->id() << " is not in";
      EXPECT_EQ(client.member->owned(), member->second.Assigned());
      EXPECT_EQ(client.member->epoch(), member->second.epoch.value());
      owned += client.member->owned().size();
      read.insert(client.member->topics.begin(), client.member->topics.end());
    }
    size_t wanted = 0;
    for (const std::string& topic : read) wanted += static_cast<size_t>(partitions_[topic]);
    EXPECT_EQ(owned, wanted);
    for (int i = 0; i < 20; ++i) Read();
    for (const std::string& note : harness_.notes) {
      counters_.sessions_ended += note.find("is out") != std::string::npos ? 1 : 0;
    }
  }

  Random random_;
  CoordinatorHarness harness_;
  std::vector<Client> clients_;
  std::map<std::string, int32_t> partitions_;
  std::map<std::string, uint64_t> incarnations_;
  int64_t last_value_ = 0;
  std::map<RequestId, Sent> sent_;
  std::vector<Delayed> network_;
  int nobody_ = 0;
  std::map<PartitionId, std::set<int64_t>> submitted_;
  std::map<PartitionId, int64_t> acknowledged_;
  // Deleted.
  std::set<TopicId> gone_;
  GroupEpoch epoch_;
  Counters counters_;
};

class RandomGroupTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomGroupTest, KeepsItsPromises) {
  Counters total;
  for (uint64_t seed = GetParam() * 50 + 1; seed <= (GetParam() + 1) * 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.Run(700);
    if (HasFailure()) return;
    const Counters& counters = world.counters();
    total.failovers += counters.failovers;
    total.lost_batches += counters.lost_batches;
    total.failed_appends += counters.failed_appends;
    total.acknowledged += counters.acknowledged;
    total.refused += counters.refused;
    total.unknown += counters.unknown;
    total.reads += counters.reads;
    total.sessions_ended += counters.sessions_ended;
    total.rebalances += counters.rebalances;
  }
  RecordProperty("acknowledged", total.acknowledged);
  std::cout << total.failovers << " failovers, " << total.lost_batches << " batches lost, "
            << total.failed_appends << " times without appends; commits: " << total.acknowledged
            << " acknowledged, " << total.refused << " refused, " << total.unknown
            << " of unknown outcome; " << total.reads << " reads, " << total.sessions_ended
            << " members out, " << total.rebalances << " epochs" << std::endl;
  // Where nothing happens nothing is found.
  EXPECT_GT(total.failovers, 200);
  EXPECT_GT(total.lost_batches, 50);
  EXPECT_GT(total.failed_appends, 100);
  EXPECT_GT(total.acknowledged, 800);
  EXPECT_GT(total.refused, 50);
  EXPECT_GT(total.unknown, 20);
  EXPECT_GT(total.reads, 500);
  EXPECT_GT(total.sessions_ended, 300);
  EXPECT_GT(total.rebalances, 1'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGroupTest, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace conclave::group
