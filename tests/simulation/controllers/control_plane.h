#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_CONTROL_PLANE_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_CONTROL_PLANE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "broker/partition/testing/executor_syncs.h"
#include "broker/server/broker_node.h"
#include "client/admin/admin_client.h"
#include "common/fs/sim_file_system.h"
#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"
#include "common/sim/sim_wire.h"
#include "common/transport/memory_transport.h"
#include "controller/core/invariants.h"
#include "controller/server/controller_node.h"
#include "tests/simulation/controllers/admin_workload.h"
#include "tests/simulation/controllers/sim_raft_disk.h"

namespace conclave::control_sim {

// How long a sync takes, drawn for each.
struct DiskSpeed {
  Duration min = Duration::Microseconds(200);
  Duration max = Duration::Milliseconds(5);
  double slow = 0;
  Duration slow_max = Duration::Milliseconds(800);
};

// Three controllers, some brokers and an administrator of the real code, in one virtual world.
// After every event the invariants are looked at; the first that is broken is kept.
class ControlPlane {
 public:
  static constexpr int kControllers = 3;

  struct Options {
    int brokers = 3;
    SimWire::Options wire{};
    DiskSpeed disks{};
    // Of brokers; see SimFileSystem::Options.
    double zero_tails = 0;
    // Of brokers.
    Duration retention_check_interval = Duration::Seconds(60);
    // Of brokers: what they keep of their logs in memory. Little, so that disks are read, too.
    size_t tail_bytes = 512;
    // Is told what happens, if not null; outlives this.
    std::ostream* text = nullptr;
  };
  ControlPlane(const Random& random, const Options& options);
  ~ControlPlane();

  const Options& options() const { return options_; }

  // Nodes are numbered: controllers first, then brokers. A broker's id is its node's number.
  int nodes() const { return static_cast<int>(hosts_.size()); }
  int AnyBroker(Random& random) const {
    return kControllers + static_cast<int>(random.Below(hosts_.size() - kControllers));
  }
  // Addresses of all brokers, for clients.
  std::vector<std::string> BrokerEndpoints() const;
  SimScheduler& scheduler() { return scheduler_; }
  SimWire& wire() { return *wire_; }
  AdminWorkload& admin() { return *admin_; }

  // Runs until `end`, or until something is broken.
  void RunFor(Duration duration);
  // Empty: nothing.
  const std::string& violation() const { return violation_; }
  void Break(const std::string& what);
  void Say(const std::string& what);

  // --- What can be done to it; by events of the scheduler, not from within a node
  static std::string NameOf(int node);
  static std::string EndpointTextOf(int node);
  static ClusterId cluster_id();
  void Start(int node);
  // Power goes: nothing that runs is tidied up, and waiting writes are lost.
  void Crash(int node);
  // The process alone: what it wrote is with the operating system, synced or not.
  void Kill(int node);
  // The broker asks to be let go, and its process ends when it may.
  void StopBroker(int node);
  bool IsUp(int node) const { return hosts_[static_cast<size_t>(node)].executor != nullptr; }
  // It was asked to stop, or its disk is to fail it.
  bool IsEnding(int node) const { return host(node).stopping || host(node).may_fail; }
  void Pause(int node);
  void Resume(int node);
  void BreakStreams(int a, int b) { network_->BreakStreams(NameOf(a), NameOf(b)); }
  void FailDisk(int controller, bool written);
  void StepWallClock(int node, Duration step);
  // The node's process may end by itself from now on, until it is started again.
  void LetFail(int node) { host(node).may_fail = true; }

  // --- What can be asked
  // The controller that is active, of those up; -1 if there is none, or more than one.
  int Active() const;
  bool IsServing(int broker) const { return hosts_[static_cast<size_t>(broker)].serving; }
  // One controller is active, every broker takes part, and all see the same metadata. If not, why.
  std::string WhyNotWhole() const;
  const MetadataImage& ImageOf(int node) const;
  // Up.
  broker::BrokerNode& BrokerAt(int node) { return *host(node).broker; }
  MemoryNetwork& network() { return *network_; }
  // Of a broker.
  SimFileSystem& DiskOf(int node) { return *host(node).fs; }
  // Told of each replica that changes, on any broker, of those started before and after this call.
  void SetReplicaObserver(std::function<void(int node, broker::Replica&)> observer);
  // Is told of what nodes know, after the event by which they came to; from now on. Outlives this;
  // nullptr: nobody is.
  class Observer {
   public:
    virtual ~Observer() = default;
    // A node has another image than before.
    virtual void OnImage(int node, const MetadataImage& image) = 0;
    // The controller has become the active one of the term.
    virtual void OnActive(int controller, Term term) = 0;
  };
  void SetObserver(Observer* observer) { observer_ = observer; }
  // Processes that the node has had.
  uint64_t StartsOf(int node) const { return host(node).starts; }
  // Looks at the invariants; RunFor does after every event.
  void CheckAll();
  uint64_t commits_seen() const { return commits_seen_; }
  uint64_t activations() const { return activations_; }

 private:
  struct Host {
    std::unique_ptr<SimClock> clock;
    std::unique_ptr<SimExecutor> executor;
    // Of a controller: where Raft's log is written. Of a broker: where logs are synced.
    std::unique_ptr<SimExecutor> storage_executor;
    // Of a broker.
    std::unique_ptr<SimExecutor> partitions_executor;
    std::unique_ptr<SimExecutor> background_executor;
    std::unique_ptr<SimFileSystem> fs;
    std::unique_ptr<broker::ExecutorSyncs> syncs;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<controller::ControllerNode> controller;
    std::unique_ptr<broker::BrokerNode> broker;
    std::unique_ptr<Server> server;
    std::unique_ptr<SimRaftDisk> disk;
    uint64_t starts = 0;
    bool serving = false;
    bool was_active = false;
    bool may_fail = false;
    bool stopping = false;
    // What this process's image was last seen at.
    MetadataPosition seen;
  };

  void End(int node);
  void StartController(int node);
  void StartBroker(int node);
  std::unique_ptr<SimExecutor> SlowDisk(int node);
  static std::vector<std::unique_ptr<SimExecutor>*> ExecutorsOf(Host& h);
  void Failed(int node, const absl::Status& why);
  void CheckNode(int node);
  void ObserveReplicas(int node);
  Host& host(int node) { return hosts_[static_cast<size_t>(node)]; }
  const Host& host(int node) const { return hosts_[static_cast<size_t>(node)]; }

  Random random_;
  Random disk_random_;
  const Options options_;
  SimScheduler scheduler_;
  // Stopped, and still named by events under way.
  std::vector<std::unique_ptr<SimExecutor>> graveyard_;
  SimWire* wire_ = nullptr;
  std::unique_ptr<MemoryNetwork> network_;
  std::vector<Host> hosts_;
  std::function<void(int, broker::Replica&)> replica_observer_;
  Observer* observer_ = nullptr;

  SimClock admin_clock_{scheduler_};
  SimExecutor admin_executor_{scheduler_, admin_clock_};
  std::unique_ptr<Transport> admin_transport_;
  std::unique_ptr<AdminClient> admin_client_;
  std::unique_ptr<AdminWorkload> admin_;

  std::string violation_;
  controller::MetadataHistory history_;
  // The newest committed images, by index, from whichever controller showed them first.
  std::map<LogIndex, MetadataImage> committed_;
  MetadataPosition newest_;
  uint64_t commits_seen_ = 0;
  uint64_t activations_ = 0;
};

}  // namespace conclave::control_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_CONTROL_PLANE_H_
