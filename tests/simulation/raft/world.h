#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_WORLD_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "common/types/time.h"
#include "tests/simulation/raft/commit_invariants.h"
#include "tests/simulation/raft/election_invariants.h"
#include "tests/simulation/raft/log_matching.h"
#include "tests/simulation/raft/sim_network.h"
#include "tests/simulation/raft/sim_node.h"
#include "tests/simulation/raft/simulation.h"
#include "tests/simulation/raft/swarm.h"
#include "tests/simulation/raft/trace.h"

namespace conclave::raft::sim {

// The cluster, its clock, and the driver of its cores. What is done to it is the nemesis's choice
// (see nemesis.h). Every event ends with the invariants checked.
class World {
 public:
  World(const RunOptions& options, const Swarm& swarm, const Random& random);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Handles events up to `end`, or to the first violation.
  void RunUntil(MonotonicTime end);
  // Calls `action` at `at`, in the order of calls among equals.
  void At(MonotonicTime at, std::function<void()> action);

  // Called with the number of whoever comes to lead a term.
  void OnNewLeader(std::function<void(int)> observer) { on_new_leader_ = std::move(observer); }

  MonotonicTime now() const { return now_; }
  const MaybeViolation& violation() const { return violation_; }
  void Break(Violation violation);
  RunCounters& counters() { return counters_; }
  Trace& trace() { return trace_; }
  void Say(const std::string& line);

  // --- What can be done to it ------------------------------------------------------------------
  int nodes() const { return static_cast<int>(nodes_.size()); }
  SimNode& node(int number) { return nodes_[static_cast<size_t>(number)]; }
  SimNetwork& network() { return network_; }
  void Crash(int number);
  void Start(int number);
  // Down, with an empty disk of another directory id.
  void Wipe(int number);
  void ResetStream(int at, int from);
  void Propose(int number, std::string data);
  void Read(int number);
  // No more losses, stalls or delays; everybody is up.
  void HealAll();

  // --- What can be asked -----------------------------------------------------------------------
  bool IsUp(int number) { return node(number).core != nullptr; }
  // The leader of the highest term among those up; -1 for none.
  int Leader();
  LogIndex last_committed() const { return commits_.last_committed(); }
  // Adds what a living core has counted.
  void Collect(const RaftCore& core);

 private:
  enum class Kind : uint8_t { kDeliver, kTimer, kDisk, kAction };

  struct Event {
    MonotonicTime at;
    uint64_t order = 0;
    Kind kind = Kind::kAction;
    int node = -1;
    uint64_t incarnation = 0;
    std::shared_ptr<const v1::RaftMessage> message;
    std::function<void()> action;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void Push(Event event);
  void Handle(Event event);
  bool HandleForNode(SimNode& node, Event& event);
  bool HandleTimer(SimNode& node);
  bool HandleDisk(SimNode& node);
  void Persisted(SimNode& node, WriteTicket ticket);

  void Pump(SimNode& node);
  void Submit(SimNode& node, Write write);
  void SendOut(SimNode& node, v1::RaftMessage message);
  void ArmTimer(SimNode& node);
  void CheckState(SimNode& node);
  void CheckWrite(const SimNode& node, const Write& write);
  void CheckCommitted(const SimNode& node, const Entry& entry);
  bool OnDisk(const ReplicaKey& key, LogPosition position) const;

  const RunOptions options_;
  Swarm swarm_;
  Random random_;
  Random disk_random_;
  Trace trace_;
  RunCounters counters_;
  MonotonicTime now_;
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<SimNode> nodes_;
  std::vector<std::pair<ReplicaKey, SimDisk>> wiped_;  // as they were
  SimNetwork network_;
  uint64_t starts_ = 0;
  uint64_t reads_ = 0;
  std::function<void(int)> on_new_leader_;
  bool crash_wanted_ = false;  // by what was just sent

  ElectionInvariants elections_;
  LogMatching logs_;
  CommitInvariants commits_;
  MaybeViolation violation_;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_WORLD_H_
