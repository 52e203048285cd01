#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_NEMESIS_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_NEMESIS_H_

#include <map>
#include <string>
#include <vector>

#include "common/random/random.h"
#include "common/types/time.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/coverage.h"
#include "tests/simulation/cluster/group_workload.h"
#include "tests/simulation/controllers/fault_schedule.h"

namespace conclave::cluster_sim {

// Does to the cluster what the seed says: each run its own kinds of fault, at its own pace.
//
// A message is lost, and what followed it, as on a real stream: with the stream. It comes twice
// where an answer is lost and the client sends again.
class Nemesis : public FaultSchedule {
 public:
  // Aims at the partitions of `topic`, at the nodes named in `clients`, and at the members of
  // `group`, which may be null. With `acknowledges_unsynced` (flush.policy=replicated) one broker
  // at a time loses its power, and none before the last one has caught up: what the policy
  // survives.
  Nemesis(Cluster& cluster, const Random& random, Coverage& coverage, std::string topic,
          std::vector<std::string> clients, GroupWorkload* group, bool acknowledges_unsynced);

  // No more faults, and those that last end.
  void End();

 private:
  int AnyController();
  int AnyNode() { return static_cast<int>(random().Below(static_cast<uint64_t>(plane_.nodes()))); }
  // Often one that leads, for there faults hurt.
  int AnyBroker();
  int AnyBrokerBut(int broker);
  std::string AnyName();

  void Crash(int node, Duration down_for);
  // With the loss of what it has not synced, where that is survived.
  bool MayLosePower(int node);
  void EndProcess(int node);
  void RestartLater(int node, Duration within);
  Duration DownFor();

  void CrashBroker();
  void CrashLeader();
  void CrashController();
  // Several at the same moment.
  void CutPower();
  // A follower is cut off, the leader goes on without it, and dies as it returns: what each wrote
  // alone has to be told apart.
  void CrashLeaderAfterCut();

  void Cut(const std::string& a, const std::string& b);
  void Heal();
  void HealAfter(Duration min, Duration max);
  void CutBrokers();
  void Isolate();
  // Any shape: the nodes fall into two groups.
  void Split();
  // A leader, a follower and the clients are left without the controllers and the others for longer
  // than anything waits: whatever they go on with has to be undone.
  void Maroon();
  void CutOneWay();
  // A node hears nobody, and is heard.
  void Deafen();
  void BreakStreams();

  void Pause();
  void PauseMember();
  void StepClock();
  void StopBroker();
  void FailControllerDisk();
  void FailBrokerSync();
  void FillDisk();
  // A byte of a closed segment of a leader's changes on the disk, and somebody reads it.
  void Rot();
  void ChangeFlushPolicy();

  Cluster& cluster_;
  control_sim::ControlPlane& plane_;
  Coverage& coverage_;
  const std::string topic_;
  const std::vector<std::string> clients_;
  GroupWorkload* const group_;
  const bool acknowledges_unsynced_;
  bool policy_is_fsync_ = false;
  // Until then the others that heal do not: it takes a session, and more, until what was marooned
  // is replaced.
  MonotonicTime marooned_until_;
  // By how much nodes' wall clocks have been set wrong.
  std::map<int, Duration> clock_errors_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_NEMESIS_H_
