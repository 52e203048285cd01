#include "raft/node/raft_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/random/random.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {
namespace {

const ClusterId kCluster = ClusterId::FromRandom(1, 1);

ReplicaKey KeyOf(int node) {
  return {NodeId(node), DirectoryId::FromRandom(static_cast<uint64_t>(node), 2)};
}

void Put(const ReplicaKey& key, v1::ReplicaId* id) {
  id->set_node_id(key.node.value());
  id->set_directory_id(key.directory.ToBytes());
}

class MemoryStorage : public LogStorage {
 public:
  explicit MemoryStorage(const bool& fails) : fails_(fails) {}
  absl::Status Append(const std::vector<Write>&) override {
    return fails_ ? MakeError(v1::STORAGE_ERROR, "injected EIO") : absl::OkStatus();
  }

 private:
  const bool& fails_;
};

// One of three voters; the test is the other two.
class RaftNodeTest : public ::testing::Test, public MessagePort, public RaftListener {
 protected:
  RaftNodeTest() {
    RaftNode::Options options;
    options.config.cluster_id = kCluster;
    options.config.self = KeyOf(1);
    auto node = RaftNode::Create(std::move(options),
                                 FormatInitialVoters(*VoterSet::Of(
                                     {{KeyOf(1), "a:1"}, {KeyOf(2), "b:1"}, {KeyOf(3), "c:1"}})),
                                 std::make_unique<MemoryStorage>(disk_fails_), *this, executor_,
                                 storage_executor_, Random(1), *this);
    EXPECT_TRUE(node.ok()) << node.status();
    node_ = *std::move(node);
    executor_.Post([this] { node_->Start("a:1"); });
  }
  ~RaftNodeTest() override {
    executor_.Stop();
    storage_executor_.Stop();
  }

  void Send(const std::string&, const v1::RaftMessage& message) override {
    sent_.push_back(message);
  }

  void OnCommitted(const std::vector<Entry>& entries) override {
    for (const Entry& entry : entries)
      Happened("committed " + ToString(entry.index) + " of term " + ToString(entry.term));
  }
  void OnLeadership(const LeadershipChange& change) override {
    Happened(std::string(RoleName(change.role)) + " of term " + ToString(change.term));
  }
  void OnServing(Term term) override { Happened("serving term " + ToString(term)); }
  void OnRead(ReadContext, absl::StatusOr<LogIndex> index) override {
    Happened(index.ok() ? "read at " + ToString(*index) : "read failed");
  }
  void OnFatal(const absl::Status&) override { Happened("fatal"); }

  void Happened(std::string what) { events_.push_back(std::move(what)); }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  v1::RaftMessage From(int node, uint64_t term) {
    v1::RaftMessage message;
    message.set_cluster_id(kCluster.ToBytes());
    Put(KeyOf(node), message.mutable_from());
    Put(KeyOf(1), message.mutable_to());
    message.set_term(term);
    return message;
  }
  void Receive(const v1::RaftMessage& message) {
    executor_.Post([this, message] { node_->Receive(message); });
    scheduler_.RunFor(Duration());
  }

  // Answers what was asked of node 2 until node 1 leads, then takes its first entry.
  void Lead() {
    for (int i = 0; i < 200 && node_->core().role() != Role::kLeader; ++i) {
      scheduler_.RunFor(Duration::Milliseconds(20));
      for (const v1::RaftMessage& asked : std::exchange(sent_, {})) {
        if (asked.to().node_id() != 2) continue;
        v1::RaftMessage answer = From(2, asked.term());
        if (asked.has_pre_vote_request()) {
          answer.mutable_pre_vote_response()->set_granted(true);
          answer.mutable_pre_vote_response()->set_round(asked.pre_vote_request().round());
        } else if (asked.has_vote_request()) {
          answer.mutable_vote_response()->set_granted(true);
        } else {
          continue;
        }
        Receive(answer);
      }
    }
    ASSERT_EQ(node_->core().role(), Role::kLeader);
    scheduler_.RunFor(Duration::Milliseconds(1));
    TakeEvents();
  }

  SimScheduler scheduler_;
  SimClock clock_{scheduler_};
  SimExecutor executor_{scheduler_, clock_};
  SimExecutor storage_executor_{scheduler_, clock_};
  bool disk_fails_ = false;
  std::vector<v1::RaftMessage> sent_;
  std::vector<std::string> events_;
  std::unique_ptr<RaftNode> node_;
};

// One message of a new leader may end a leadership, replace what was proposed under it, and commit
// what stands there now. Who counts committed indexes to answer requests must hear of the loss
// first.
TEST_F(RaftNodeTest, R7_ALeadershipsLossIsToldBeforeWhatTheNextLeaderCommitted) {
  Lead();
  const uint64_t term = node_->core().term().value();
  executor_.Post([this] { ASSERT_TRUE(node_->Propose("mine").ok()); });
  scheduler_.RunFor(Duration::Milliseconds(1));
  TakeEvents();

  v1::RaftMessage message = From(3, term + 1);
  v1::AppendRequest& append = *message.mutable_append_request();
  append.set_prev_index(1);
  append.set_prev_term(1);
  for (uint64_t index : {2, 3}) {
    v1::RaftEntry& entry = *append.add_entries();
    entry.set_index(index);
    entry.set_term(term + 1);
    entry.set_kind(index == 2 ? v1::RAFT_ENTRY_KIND_NOOP : v1::RAFT_ENTRY_KIND_DATA);
  }
  append.set_commit_index(3);
  Receive(message);

  const std::string next = std::to_string(term + 1);
  const auto events = TakeEvents();
  const auto position = [&](const std::string& event) {
    return std::find(events.begin(), events.end(), event) - events.begin();
  };
  const auto end = static_cast<ptrdiff_t>(events.size());
  ASSERT_LT(position("committed 3 of term " + next), end);
  ASSERT_LT(position("follower of term " + next), end);
  EXPECT_LT(position("follower of term " + next), position("committed 2 of term " + next));
}

TEST_F(RaftNodeTest, ServesOnceItsOwnEntryIsCommitted) {
  Lead();
  const uint64_t term = node_->core().term().value();
  v1::RaftMessage message = From(2, term);
  v1::AppendResponse& response = *message.mutable_append_response();
  response.set_accepted(true);
  response.set_match_index(2);
  response.set_received_index(2);
  Receive(message);
  const std::string text = std::to_string(term);
  EXPECT_EQ(TakeEvents(),
            (std::vector<std::string>{"committed 1 of term 1", "committed 2 of term " + text,
                                      "serving term " + text}));
}

TEST_F(RaftNodeTest, R12_AFailedWriteEndsEverything) {
  Lead();
  disk_fails_ = true;
  executor_.Post([this] { ASSERT_TRUE(node_->Propose("lost").ok()); });
  scheduler_.RunFor(Duration::Milliseconds(1));
  EXPECT_EQ(TakeEvents(), std::vector<std::string>{"fatal"});
  sent_.clear();
  Receive(From(3, node_->core().term().value() + 5));
  scheduler_.RunFor(Duration::Seconds(5));
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(TakeEvents().empty());
  EXPECT_EQ(ErrorCodeOf(node_->Propose("more").status()), v1::STORAGE_ERROR);
}

}  // namespace
}  // namespace conclave::raft
