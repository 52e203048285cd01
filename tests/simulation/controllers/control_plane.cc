#include "tests/simulation/controllers/control_plane.h"

#include <glog/logging.h>

#include <utility>

#include "common/error/error.h"
#include "raft/core/voter_set.h"

namespace conclave::control_sim {
namespace {

constexpr size_t kImagesKept = 64;
constexpr char kDataDir[] = "data";

const ClusterId kCluster = ClusterId::FromRandom(1, 2);

Endpoint EndpointOf(int node) {
  return {ControlPlane::NameOf(node),
          static_cast<uint16_t>(node < ControlPlane::kControllers ? 7300 : 7400)};
}

DirectoryId DirectoryOf(int node) {
  return DirectoryId::FromRandom(static_cast<uint64_t>(node + 1), 3);
}

raft::VoterSet Voters() {
  std::vector<raft::VoterSet::Member> members;
  for (int i = 0; i < ControlPlane::kControllers; ++i) {
    members.push_back({{NodeId(i), DirectoryOf(i)}, ToString(EndpointOf(i))});
  }
  return *raft::VoterSet::Of(std::move(members));
}

ControllerConfig ConfigOfController(int node) {
  ControllerConfig config;
  config.node_id = NodeId(node);
  config.listener = EndpointOf(node);
  config.heartbeat_interval = Duration::Milliseconds(200);
  config.election_timeout_min = Duration::Milliseconds(500);
  config.election_timeout_max = Duration::Milliseconds(1000);
  config.broker_session_timeout = Duration::Seconds(6);
  config.broker_session_grace = Duration::Milliseconds(200);
  return config;
}

BrokerConfig ConfigOfBroker(int node, const ControlPlane::Options& options) {
  BrokerConfig config;
  config.broker_id = BrokerId(node);
  config.listener = EndpointOf(node);
  config.data_dir = kDataDir;
  config.heartbeat_interval = Duration::Milliseconds(500);
  config.replica_lag_time_max = Duration::Seconds(10);
  config.file_delete_delay = Duration::Seconds(60);
  config.retention_check_interval = options.retention_check_interval;
  config.tail_bytes = options.tail_bytes;
  for (int i = 0; i < ControlPlane::kControllers; ++i) config.controllers.push_back(EndpointOf(i));
  return config;
}

Identity IdentityOf(int node) {
  return {node < ControlPlane::kControllers ? NodeRole::kController : NodeRole::kBroker, node,
          kCluster, DirectoryOf(node)};
}

std::string ToText(MetadataPosition position) {
  return "(term " + ToString(position.term) + ", index " + ToString(position.index) + ")";
}

}  // namespace

ControlPlane::ControlPlane(const Random& random, const Options& options)
    : random_(random),
      disk_random_(random.Fork("disks")),
      options_(options),
      wire_(new SimWire(scheduler_, random.Fork("wire"), options.wire)),
      network_(std::make_unique<MemoryNetwork>(std::unique_ptr<Wire>(wire_))) {
  wire_->SetBreakStreams(
      [this](const std::string& a, const std::string& b) { network_->BreakStreams(a, b); });
  hosts_.resize(static_cast<size_t>(kControllers + options.brokers));
  for (int node = 0; node < nodes(); ++node) {
    host(node).clock = std::make_unique<SimClock>(scheduler_);
    if (node < kControllers) {
      host(node).disk = std::make_unique<SimRaftDisk>(raft::FormatInitialVoters(Voters()));
    } else {
      SimFileSystem::Options disk;
      disk.zero_tails = options.zero_tails;
      disk.clock = host(node).clock.get();
      host(node).fs = std::make_unique<SimFileSystem>(disk);
      CHECK(CreateDirectories(*host(node).fs, kDataDir).ok());
    }
    Start(node);
  }
  admin_transport_ = network_->Join("admin");
  AdminClient::Options admin_options;
  for (int node = nodes(); node-- > 0;) {
    admin_options.bootstrap.push_back(ToString(EndpointOf(node)));
  }
  admin_options.timeout = Duration::Seconds(15);
  admin_options.attempt_timeout = Duration::Seconds(3);
  admin_client_ = std::make_unique<AdminClient>(admin_options, *admin_transport_, admin_executor_,
                                                random.Fork("topic ids"));
  admin_ = std::make_unique<AdminWorkload>(
      admin_executor_, *admin_client_, random.Fork("admin"),
      [this](const std::string& what) { Break(what); },
      [this](const std::string& what) { Say(what); });
}

ControlPlane::~ControlPlane() {
  for (int node = 0; node < nodes(); ++node) {
    if (IsUp(node)) Crash(node);
  }
  admin_executor_.Stop();
}

std::string ControlPlane::NameOf(int node) {
  return (node < kControllers ? "controller-" : "broker-") + std::to_string(node);
}

std::string ControlPlane::EndpointTextOf(int node) { return ToString(EndpointOf(node)); }

ClusterId ControlPlane::cluster_id() { return kCluster; }

std::vector<std::string> ControlPlane::BrokerEndpoints() const {
  std::vector<std::string> endpoints;
  for (int node = kControllers; node < nodes(); ++node) endpoints.push_back(EndpointTextOf(node));
  return endpoints;
}

void ControlPlane::RunFor(Duration duration) {
  const MonotonicTime end = scheduler_.now() + duration;
  // An event of its own at the end, so that time gets there.
  const auto over = std::make_shared<bool>(false);
  scheduler_.At(end, [over] { *over = true; });
  while (!*over && violation_.empty() && scheduler_.RunOne()) CheckAll();
}

void ControlPlane::Break(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = what;
  Say("BROKEN: " + what);
}

void ControlPlane::Say(const std::string& what) {
  if (options_.text == nullptr) return;
  *options_.text << scheduler_.now() << " " << what << "\n";
}

void ControlPlane::Start(int node) {
  Host& h = host(node);
  CHECK(!IsUp(node));
  Say("start " + NameOf(node));
  ++h.starts;
  h.seen = MetadataPosition();
  h.may_fail = false;
  h.stopping = false;
  h.transport = network_->Join(NameOf(node));
  h.executor = std::make_unique<SimExecutor>(scheduler_, *h.clock);
  if (node < kControllers) {
    StartController(node);
  } else {
    StartBroker(node);
  }
}

std::unique_ptr<SimExecutor> ControlPlane::SlowDisk(int node) {
  SimExecutor::Options slow_disk;
  slow_disk.duration = [this] {
    const Duration max =
        disk_random_.Chance(options_.disks.slow) ? options_.disks.slow_max : options_.disks.max;
    return Duration::Nanoseconds(
        disk_random_.Between(options_.disks.min.nanoseconds(), max.nanoseconds()));
  };
  return std::make_unique<SimExecutor>(scheduler_, *host(node).clock, slow_disk);
}

void ControlPlane::StartController(int node) {
  Host& h = host(node);
  h.storage_executor = SlowDisk(node);
  auto made = controller::ControllerNode::Create(
      ConfigOfController(node), IdentityOf(node), h.disk->state(), h.disk->NewStorage(),
      {.transport = *h.transport,
       .executor = *h.executor,
       .storage_executor = *h.storage_executor,
       .random = random_.Fork(NameOf(node) + "#" + std::to_string(h.starts)),
       .on_fatal = [this, node](const absl::Status& why) { Failed(node, why); }});
  if (!made.ok()) return Break(NameOf(node) + " does not start: " + Describe(made.status()));
  h.controller = *std::move(made);
  MethodTable methods;
  h.controller->AddMethods(methods);
  h.server = *h.transport->Listen(ToString(EndpointOf(node)), methods.Take());
  h.executor->Post([raw = h.controller.get(), node] { raw->Start(ToString(EndpointOf(node))); });
}

void ControlPlane::StartBroker(int node) {
  Host& h = host(node);
  h.storage_executor = SlowDisk(node);
  h.partitions_executor = std::make_unique<SimExecutor>(scheduler_, *h.clock);
  h.background_executor = std::make_unique<SimExecutor>(scheduler_, *h.clock);
  h.syncs = std::make_unique<broker::ExecutorSyncs>(*h.storage_executor);
  auto made = broker::BrokerNode::Create(
      ConfigOfBroker(node, options_), IdentityOf(node),
      {.transport = *h.transport,
       .executor = *h.executor,
       .partitions = *h.partitions_executor,
       .background = *h.background_executor,
       .fs = *h.fs,
       .syncs = *h.syncs,
       .random = random_.Fork(NameOf(node) + "#" + std::to_string(h.starts)),
       .on_fatal = [this, node](const absl::Status& why) { Failed(node, why); },
       .on_serving =
           [this, node](bool serving) {
             Say(NameOf(node) + (serving ? " is active" : " is fenced"));
             host(node).serving = serving;
           }});
  if (!made.ok()) return Break(NameOf(node) + " does not start: " + Describe(made.status()));
  h.broker = *std::move(made);
  ObserveReplicas(node);
  MethodTable methods;
  h.broker->AddMethods(methods);
  h.server = *h.transport->Listen(ToString(EndpointOf(node)), methods.Take());
  h.executor->Post([raw = h.broker.get(), node] { raw->Start(ToString(EndpointOf(node))); });
}

void ControlPlane::SetReplicaObserver(std::function<void(int, broker::Replica&)> observer) {
  replica_observer_ = std::move(observer);
  for (int node = kControllers; node < nodes(); ++node) {
    if (IsUp(node)) ObserveReplicas(node);
  }
}

void ControlPlane::ObserveReplicas(int node) {
  if (!replica_observer_) return;
  host(node).broker->replicas().SetReplicaObserver(
      [this, node](broker::Replica& replica) { replica_observer_(node, replica); });
}

void ControlPlane::Failed(int node, const absl::Status& why) {
  if (!host(node).may_fail) return Break(NameOf(node) + " ended: " + Describe(why));
  Say(NameOf(node) + " ends: " + Describe(why));
  // The process ends; not from within its own task. With the machine or without: what the kernel
  // could not write it may still show to the next process.
  const bool power = host(node).fs == nullptr || disk_random_.Chance(0.5);
  scheduler_.After(Duration(), [this, node, power, life = host(node).starts] {
    if (!IsUp(node) || host(node).starts != life) return;
    power ? Crash(node) : Kill(node);
  });
}

std::vector<std::unique_ptr<SimExecutor>*> ControlPlane::ExecutorsOf(Host& h) {
  std::vector<std::unique_ptr<SimExecutor>*> executors;
  for (auto* executor :
       {&h.executor, &h.storage_executor, &h.partitions_executor, &h.background_executor}) {
    if (*executor != nullptr) executors.push_back(executor);
  }
  return executors;
}

void ControlPlane::Crash(int node) {
  Say("crash " + NameOf(node));
  End(node);
  if (host(node).fs != nullptr) host(node).fs->Crash(disk_random_);
}

void ControlPlane::Kill(int node) {
  Say("kill " + NameOf(node));
  End(node);
  if (host(node).fs != nullptr) host(node).fs->KillProcess();
}

void ControlPlane::End(int node) {
  Host& h = host(node);
  network_->Kill(NameOf(node));
  // The disk may have been done with what it had not reported.
  if (h.storage_executor != nullptr && disk_random_.Chance(0.5)) h.storage_executor->RunNext();
  for (std::unique_ptr<SimExecutor>* executor : ExecutorsOf(h)) (*executor)->Stop();
  h.server.reset();
  h.controller.reset();
  h.broker.reset();
  h.transport.reset();
  h.syncs.reset();
  for (std::unique_ptr<SimExecutor>* executor : ExecutorsOf(h)) {
    graveyard_.push_back(std::move(*executor));
  }
  h.serving = false;
  h.was_active = false;
}

void ControlPlane::StopBroker(int node) {
  Say("stop " + NameOf(node));
  host(node).stopping = true;
  host(node).executor->Post([this, node, life = host(node).starts] {
    host(node).broker->Shutdown([this, node, life] {
      host(node).broker->Close([this, node, life](const absl::Status& closed) {
        // A broker that never took part has nothing to close; one whose disk is full stops
        // uncleanly.
        if (!closed.ok() && ErrorCodeOf(closed) != v1::NOT_READY &&
            ErrorCodeOf(closed) != v1::OUT_OF_RESOURCES && !host(node).may_fail) {
          Break(NameOf(node) + " does not close: " + Describe(closed));
        }
        // After a clean stop there is nothing that the power could take. Who did not close what it
        // has ends as a process does: what else it may lose is for who stopped it to say.
        const bool power = closed.ok();
        scheduler_.After(Duration(), [this, node, life, power] {
          if (!IsUp(node) || host(node).starts != life) return;
          power ? Crash(node) : Kill(node);
        });
      });
    });
  });
}

void ControlPlane::Pause(int node) {
  Say("pause " + NameOf(node));
  for (std::unique_ptr<SimExecutor>* executor : ExecutorsOf(host(node))) (*executor)->Pause();
}

void ControlPlane::Resume(int node) {
  if (!IsUp(node) || !host(node).executor->paused()) return;
  Say("resume " + NameOf(node));
  for (std::unique_ptr<SimExecutor>* executor : ExecutorsOf(host(node))) (*executor)->Resume();
}

void ControlPlane::FailDisk(int controller, bool written) {
  Say("the disk of " + NameOf(controller) + " will fail");
  host(controller).may_fail = true;
  host(controller).disk->FailNext(written);
}

void ControlPlane::StepWallClock(int node, Duration step) { host(node).clock->StepWall(step); }

const MetadataImage& ControlPlane::ImageOf(int node) const {
  const Host& h = host(node);
  return node < kControllers ? h.controller->committed() : h.broker->image();
}

int ControlPlane::Active() const {
  int active = -1;
  for (int node = 0; node < kControllers; ++node) {
    if (!IsUp(node) || !host(node).controller->IsActive()) continue;
    if (active >= 0) return -1;
    active = node;
  }
  return active;
}

std::string ControlPlane::WhyNotWhole() const {
  for (int node = 0; node < nodes(); ++node) {
    if (!IsUp(node)) return NameOf(node) + " is down";
  }
  const int active = Active();
  if (active < 0) return "no single controller is active";
  const MetadataImage& image = ImageOf(active);
  for (int node = 0; node < nodes(); ++node) {
    if (node >= kControllers) {
      if (!IsServing(node)) return NameOf(node) + " does not take part";
      const Broker* broker = image.FindBroker(BrokerId(node));
      if (broker == nullptr) return NameOf(node) + " is not registered";
      if (broker->fenced) return NameOf(node) + " is fenced";
    }
    if (ImageOf(node).position() != image.position()) {
      return NameOf(node) + " has metadata at " + ToText(ImageOf(node).position()) + ", " +
             NameOf(active) + " at " + ToText(image.position());
    }
    if (!(ImageOf(node) == image)) return NameOf(node) + " has other metadata";
  }
  return "";
}

void ControlPlane::CheckAll() {
  for (int node = 0; node < nodes(); ++node) {
    if (IsUp(node)) CheckNode(node);
  }
}

void ControlPlane::CheckNode(int node) {
  Host& h = host(node);
  if (node < kControllers) {
    if (h.controller == nullptr) return;
    if (!h.disk->violation().empty()) Break(NameOf(node) + ": " + h.disk->violation());
    const bool active = h.controller->IsActive();
    if (active && !h.was_active) {
      ++activations_;
      Say(NameOf(node) + " is active");
      if (observer_ != nullptr) observer_->OnActive(node, h.controller->term());
    }
    h.was_active = active;
  }
  const MetadataImage& image = ImageOf(node);
  if (image.position() == h.seen) return;
  if (image.position().index <= h.seen.index || image.position().term < h.seen.term) {
    return Break("metadata of " + NameOf(node) + " went back from " + ToText(h.seen) + " to " +
                 ToText(image.position()));
  }
  h.seen = image.position();
  if (observer_ != nullptr) observer_->OnImage(node, image);
  const auto known = committed_.find(h.seen.index);
  if (known != committed_.end()) {
    if (known->second.position() != h.seen || !(known->second == image)) {
      Break("two histories: " + NameOf(node) + " has other metadata at " + ToText(h.seen));
    }
    return;
  }
  // Those behind catch up through images that were seen before, or were passed over in one step.
  if (h.seen.index <= newest_.index) return;
  if (node >= kControllers) {
    return Break(NameOf(node) + " has metadata at " + ToText(h.seen) +
                 " that no controller has shown as committed");
  }
  if (h.seen.term < newest_.term) Break("terms of committed metadata fell");
  newest_ = h.seen;
  ++commits_seen_;
  if (const absl::Status good = controller::CheckImage(image); !good.ok()) {
    Break("the image at " + ToText(h.seen) + ": " + std::string(good.message()));
  }
  if (const absl::Status good = history_.Observe(image); !good.ok()) {
    Break("the history at " + ToText(h.seen) + ": " + std::string(good.message()));
  }
  committed_.emplace(h.seen.index, image);
  if (committed_.size() > kImagesKept) committed_.erase(committed_.begin());
}

}  // namespace conclave::control_sim
