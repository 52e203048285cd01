#include "raft/core/test_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "raft/core/voter_set.h"

namespace conclave::raft {
namespace {

ReplicaKey KeyOf(int id, uint64_t disk) {
  return {NodeId(id), DirectoryId::FromRandom(static_cast<uint64_t>(id), disk)};
}

}  // namespace

TestCluster::TestCluster(int voters, int observers, std::function<void(Config&)> configure) {
  std::vector<VoterSet::Member> members;
  nodes_.resize(static_cast<size_t>(voters + observers));
  for (int id = 1; id <= voters + observers; ++id) {
    Config& config = node(id).config;
    config.cluster_id = ClusterId::FromRandom(7, 7);
    config.self = KeyOf(id, 1);
    config.endpoint = "c" + std::to_string(id) + ":7300";
    for (int other = 1; other <= voters; ++other) config.bootstrap_nodes.push_back(NodeId(other));
    if (configure) configure(config);
    if (id <= voters) members.push_back({config.self, config.endpoint});
  }
  const VoterSet set = VoterSet::Of(members).value();
  for (int id = 1; id <= voters; ++id) node(id).disk = FormatInitialVoters(set);
  for (int id = 1; id <= voters + observers; ++id) Restart(id);
}

ReplicaKey TestCluster::key(int id) const { return node(id).config.self; }

void TestCluster::TimeOut(int id) {
  now_ = now_ + node(id).config.election_timeout_max;
  core(id).Tick(now_);
  Pump(id);
}

void TestCluster::Elect(int id) {
  TimeOut(id);
  Settle();
  ASSERT_EQ(core(id).role(), Role::kLeader) << "node " << id;
}

void TestCluster::Advance(Duration duration) {
  const MonotonicTime end = now_ + duration;
  Settle();
  for (;;) {
    MonotonicTime next = end;
    for (const Node& node : nodes_) {
      if (node.core) next = std::min(next, node.core->NextDeadline());
    }
    now_ = std::max(now_, next);
    for (int id = 1; id <= static_cast<int>(nodes_.size()); ++id) {
      if (!IsUp(id) || core(id).NextDeadline() > now_) continue;
      core(id).Tick(now_);
      EXPECT_GT(core(id).NextDeadline(), now_) << "node " << id << " would spin";
    }
    Settle();
    if (now_ >= end) return;
  }
}

void TestCluster::Settle() {
  for (bool busy = true; busy;) {
    busy = false;
    for (int id = 1; id <= static_cast<int>(nodes_.size()); ++id) busy |= IsUp(id) && Pump(id);
    while (!wire_.empty()) {
      busy = true;
      const v1::RaftMessage message = std::move(wire_.front());
      wire_.pop_front();
      Receive(message.to().node_id(), message);
    }
  }
}

LogPosition TestCluster::Propose(int id, const std::string& data) {
  const auto position = core(id).Propose(data, now_);
  EXPECT_TRUE(position.ok()) << position.status();
  return position.value_or(LogPosition());
}

void TestCluster::Isolate(int id) {
  for (int other = 1; other <= static_cast<int>(nodes_.size()); ++other) {
    Cut(id, other);
    Cut(other, id);
  }
}

void TestCluster::Rejoin(int id) {
  for (int other = 1; other <= static_cast<int>(nodes_.size()); ++other) {
    Mend(id, other);
    Mend(other, id);
  }
}

void TestCluster::Sync(int id) {
  Node& n = node(id);
  n.hold_sync = false;
  if (n.held.empty()) return;
  const WriteTicket ticket = n.held.back().ticket;
  for (const Write& write : std::exchange(n.held, {})) Store(id, write);
  n.durable = ticket;
  for (const DeferredMessage& deferred : std::exchange(n.deferred, {})) Send(deferred.message);
  n.core->Persisted(ticket, now_);
}

void TestCluster::Crash(int id) {
  Node& n = node(id);
  n.core.reset();
  n.held.clear();
  n.deferred.clear();
  n.hold_sync = false;
}

void TestCluster::Restart(int id) {
  Node& n = node(id);
  n.core = RaftCore::Create(n.config, n.disk, Random(1000 + ++starts_), now_).value();
  n.durable = WriteTicket();
  n.committed.clear();
  Pump(id);
}

void TestCluster::Wipe(int id) {
  if (IsUp(id)) Crash(id);
  node(id).config.self = KeyOf(id, 2);
  node(id).disk = RecoveredState();
}

v1::RaftMessage TestCluster::Message(int from, int to, Term term) const {
  v1::RaftMessage message;
  message.set_cluster_id(node(to).config.cluster_id.ToBytes());
  message.mutable_from()->set_node_id(from);
  message.mutable_from()->set_directory_id(key(from).directory.ToBytes());
  message.mutable_to()->set_node_id(to);
  message.mutable_to()->set_directory_id(key(to).directory.ToBytes());
  message.set_term(term.value());
  return message;
}

std::vector<v1::RaftMessage> TestCluster::Inbox(int id) const {
  std::vector<v1::RaftMessage> inbox;
  std::copy_if(wire_.begin(), wire_.end(), std::back_inserter(inbox),
               [&](const v1::RaftMessage& m) { return m.to().node_id() == id; });
  return inbox;
}

void TestCluster::Receive(int id, const v1::RaftMessage& message) {
  if (!IsUp(id)) return;
  core(id).Receive(message, now_);
  Pump(id);
}

std::string TestCluster::Terms(int id) {
  std::string terms;
  const RaftLog& log = core(id).log();
  for (LogIndex i(1); i <= log.last_index(); ++i) {
    terms += (i > LogIndex(1) ? " " : "") + ToString(log.At(i).term);
  }
  return terms;
}

// Does what one or more Readys say. False if there was none.
bool TestCluster::Pump(int id) {
  Node& n = node(id);
  bool any = false;
  while (n.core->HasReady()) {
    any = true;
    Ready ready = n.core->TakeReady();
    for (const v1::RaftMessage& message : ready.messages) Send(message);
    for (DeferredMessage& deferred : ready.deferred) n.deferred.push_back(std::move(deferred));
    if (ready.write) {
      n.held.push_back(*std::move(ready.write));
      if (!n.hold_sync) Sync(id);
    }
    n.committed.insert(n.committed.end(), ready.committed.begin(), ready.committed.end());
    n.rejections.insert(n.rejections.end(), ready.rejections.begin(), ready.rejections.end());
    n.reads.insert(n.reads.end(), ready.reads.begin(), ready.reads.end());
    n.failed_reads.insert(n.failed_reads.end(), ready.failed_reads.begin(),
                          ready.failed_reads.end());
  }
  return any;
}

void TestCluster::Store(int id, const Write& write) {
  RecoveredState& disk = node(id).disk;
  if (write.hard_state) disk.hard_state = *write.hard_state;
  if (write.truncate_from) {
    while (!disk.entries.empty() && disk.entries.back().index >= *write.truncate_from) {
      disk.entries.pop_back();
    }
  }
  disk.entries.insert(disk.entries.end(), write.entries.begin(), write.entries.end());
}

void TestCluster::Send(const v1::RaftMessage& message) {
  if (cut_.count({message.from().node_id(), message.to().node_id()}) > 0) return;
  // An answer to a forged sender.
  const int to = message.to().node_id();
  if (to < 1 || to > static_cast<int>(nodes_.size())) return;
  if (passes_ && !passes_(message)) return;
  wire_.push_back(message);
}

Entry TestEntry(uint64_t index, uint64_t term, const std::string& data) {
  return {.index = LogIndex(index),
          .term = Term(term),
          .kind = EntryKind::kData,
          .data = std::make_shared<const std::string>(data)};
}

}  // namespace conclave::raft
