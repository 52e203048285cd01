#ifndef CONCLAVE_RAFT_CORE_TEST_CLUSTER_H_
#define CONCLAVE_RAFT_CORE_TEST_CLUSTER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "raft/core/raft_core.h"

namespace conclave::raft {

// Cores on a perfect network and disks that sync at once, until a test says otherwise. Nothing
// happens by itself: time moves when a test moves it. Nodes are numbered from 1.
class TestCluster {
 public:
  // Voters 1 to `voters`, formatted alike; then empty nodes, which are observers.
  explicit TestCluster(int voters, int observers = 0,
                       std::function<void(Config&)> configure = nullptr);

  RaftCore& core(int id) { return *node(id).core; }
  ReplicaKey key(int id) const;
  MonotonicTime now() const { return now_; }
  const std::vector<Entry>& committed(int id) { return node(id).committed; }
  const std::vector<Rejection>& rejections(int id) { return node(id).rejections; }
  const std::vector<ConfirmedRead>& reads(int id) { return node(id).reads; }
  const std::vector<ReadContext>& failed_reads(int id) { return node(id).failed_reads; }
  // What is on the node's disk.
  const RecoveredState& disk(int id) { return node(id).disk; }

  // Lets `id` time out, at a moment when nobody has heard of a leader for long, and everything that
  // follows from it happen.
  void Elect(int id);
  // As Elect, but nothing happens yet beyond the timeout itself.
  void TimeOut(int id);
  // Moves time, in steps that miss no deadline, delivering as it goes.
  void Advance(Duration duration);
  // Delivers until nothing is left to do. Time stands still.
  void Settle();
  LogPosition Propose(int id, const std::string& data);

  // One way.
  void Cut(int from, int to) { cut_.insert({from, to}); }
  void Mend(int from, int to) { cut_.erase({from, to}); }
  void Isolate(int id);
  void Rejoin(int id);
  // Messages for which this is false are lost.
  void OnlyIf(std::function<bool(const v1::RaftMessage&)> passes) { passes_ = std::move(passes); }

  // Writes are queued, and become durable by Sync.
  void HoldSync(int id) { node(id).hold_sync = true; }
  void Sync(int id);
  // Power is lost, with every write that is held.
  void Crash(int id);
  void Restart(int id);
  bool IsUp(int id) { return node(id).core != nullptr; }
  // An empty disk, with another directory id.
  void Wipe(int id);
  // Puts another log and term on the disk of a node that is down.
  void Format(int id, RecoveredState state) { node(id).disk = std::move(state); }

  // A message as node `from` would address it to `to`.
  v1::RaftMessage Message(int from, int to, Term term) const;
  // What waits to be delivered to `id`.
  std::vector<v1::RaftMessage> Inbox(int id) const;
  void Receive(int id, const v1::RaftMessage& message);

  // "term@..." of each entry: "1 2 2 3".
  std::string Terms(int id);

 private:
  struct Node {
    Config config;
    RecoveredState disk;
    std::unique_ptr<RaftCore> core;
    WriteTicket durable;
    bool hold_sync = false;
    std::vector<Write> held;
    std::vector<DeferredMessage> deferred;
    std::vector<Entry> committed;
    std::vector<Rejection> rejections;
    std::vector<ConfirmedRead> reads;
    std::vector<ReadContext> failed_reads;
  };

  Node& node(int id) { return nodes_.at(static_cast<size_t>(id - 1)); }
  const Node& node(int id) const { return nodes_.at(static_cast<size_t>(id - 1)); }
  bool Pump(int id);
  void Store(int id, const Write& write);
  void Send(const v1::RaftMessage& message);

  MonotonicTime now_ = MonotonicTime() + Duration::Seconds(100);
  std::vector<Node> nodes_;
  std::deque<v1::RaftMessage> wire_;
  std::set<std::pair<int, int>> cut_;
  std::function<bool(const v1::RaftMessage&)> passes_;
  uint64_t starts_ = 0;
};

// An entry for logs written out by a test.
Entry TestEntry(uint64_t index, uint64_t term, const std::string& data = "");

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_TEST_CLUSTER_H_
