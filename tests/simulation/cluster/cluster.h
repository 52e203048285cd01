#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_CLUSTER_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/admin/admin_client.h"
#include "common/metadata/partition.h"
#include "common/random/random.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/types/ids.h"
#include "conclave/v1/fetch.pb.h"
#include "conclave/v1/produce.pb.h"
#include "tests/simulation/cluster/data_invariants.h"
#include "tests/simulation/controllers/control_plane.h"

namespace conclave::cluster_sim {

// A simulated cluster with the invariants of its data, and a client that talks to single brokers as
// a test wants it, without a client library's retries. Brokers are nodes
// ControlPlane::kControllers and up; a broker's id is its node's number.
class Cluster {
 public:
  Cluster(uint64_t seed, const control_sim::ControlPlane::Options& options);
  ~Cluster();

  control_sim::ControlPlane& plane() { return plane_; }
  SimScheduler& scheduler() { return plane_.scheduler(); }
  const DataInvariants::Counters& counters() const { return invariants_.counters(); }
  const DataInvariants::Leaders& leaders() const { return invariants_.leaders(); }
  Random& random() { return random_; }

  // Until something is broken, `done` holds, or the time is over. True if it holds.
  bool RunUntil(Duration limit, const std::function<bool()>& done);
  void RunFor(Duration duration) {
    RunUntil(duration, [] { return false; });
  }
  const std::string& violation() const { return plane_.violation(); }

  // Makes a topic and waits until every partition has a leader that leads; "" or why not.
  std::string CreateTopic(const std::string& name, int partitions, int replicas,
                          const std::map<std::string, std::string>& configs = {});
  // Asks until it is answered; "" or why not.
  std::string DeleteTopic(const std::string& name);
  // "" or why not.
  std::string Alter(const std::string& topic, const std::map<std::string, std::string>& configs);
  // Without waiting for what comes of it.
  void AlterLater(const std::string& topic, const std::map<std::string, std::string>& configs);
  std::string ElectUncleanly(const std::string& topic, int partition);
  // The error in the answer, or that there was none.
  void DeleteRecords(const std::string& topic, int partition, Offset before,
                     std::function<void(const absl::Status&, const v1::DeleteRecordsResult&)> done);
  PartitionId IdOf(const std::string& topic, int partition) const;
  // As the active controller's committed image has it; nullptr: there is none.
  const Partition* StateOf(const std::string& topic, int partition) const;
  // The node that leads, and knows it; -1: none.
  int LeaderOf(const std::string& topic, int partition);
  // A bit of the first of several segments at the partition's leader changes on the disk, and
  // somebody reads it. False: there is no such segment.
  bool RotAtLeader(const std::string& topic, int partition);
  // Reads what is rotten and was not replaced, as anybody may.
  void ReadRotten();
  // Every broker is up and in the ISR of every partition of the topic, and nothing is damaged.
  bool IsWhole(const std::string& topic) { return WhyNotWhole(topic).empty(); }
  // "" or the first thing that is not so.
  std::string WhyNotWhole(const std::string& topic);
  // What each of a partition's replicas has, for people.
  std::string DescribeReplicas(const std::string& topic, int partition);

  // --- The client

  using Answer = std::function<void(const absl::Status&, const v1::ProducePartitionResult&)>;
  // One batch, asked of `broker`. Acknowledgements under acks=all are held against the invariants.
  void Produce(int broker, const std::string& topic, int partition,
               const std::vector<std::string>& values, v1::Acks acks, Duration timeout,
               Answer answer);
  // More has failed than the topic's flush policy survives.
  void ExcuseLoss(const std::string& topic, int partition) {
    invariants_.ExcuseLoss(IdOf(topic, partition));
  }
  // A client was told that the record at `offset` is committed: holds that against the invariants.
  void Acknowledged(const std::string& topic, int partition, Offset offset);
  // The leader's high watermark; nullopt: nobody leads at the moment.
  std::optional<Offset> EndOf(const std::string& topic, int partition);
  // All values below the leader's high watermark, by offset from 0; of those that retention has
  // removed, nothing.
  std::vector<std::optional<std::string>> ReadAll(const std::string& topic, int partition);
  Transport& transport() { return *transport_; }
  SimExecutor& executor() { return executor_; }
  void Break(const std::string& what) { plane_.Break(what); }

 private:
  const MetadataImage* ActiveImage() const;
  // No node has seen another policy in effect.
  bool IsFsyncEverywhere(const PartitionId& id) const;
  // As any node has it; nullptr: none has.
  const Topic* FindTopic(const std::string& topic) const;

  // What the first segment of the replica is called; nullopt: there is but one, or none is synced.
  std::optional<std::string> FirstSegment(int node, broker::Replica& replica);

  struct Rotten {
    int node = 0;
    PartitionId id;
  };

  Random random_;
  std::vector<Rotten> rotten_;
  std::map<std::string, TopicId> acknowledged_in_;
  control_sim::ControlPlane plane_;
  DataInvariants invariants_;
  SimClock clock_;
  SimExecutor executor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<AdminClient> admin_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_CLUSTER_H_
