#include "tests/simulation/cluster/nemesis.h"

#include <limits>
#include <utility>

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

namespace {

Duration Ms(int64_t n) { return Duration::Milliseconds(n); }

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr Duration kLongerThanASession = Duration::Seconds(12);
// Than a session, and after it replica.lag.time.max.ms.
constexpr Duration kLongerThanAnything = Duration::Seconds(20);

}  // namespace

Nemesis::Nemesis(Cluster& cluster, const Random& random, Coverage& coverage, std::string topic,
                 std::vector<std::string> clients, GroupWorkload* group, bool acknowledges_unsynced)
    : FaultSchedule(cluster.scheduler(), random),
      cluster_(cluster),
      plane_(cluster.plane()),
      coverage_(coverage),
      topic_(std::move(topic)),
      clients_(std::move(clients)),
      group_(group),
      acknowledges_unsynced_(acknowledges_unsynced) {
  AddFault(0.6, 6, [this] { CrashBroker(); });
  AddFault(0.5, 6, [this] { CrashLeader(); });
  AddFault(0.4, 8, [this] { CrashController(); });
  AddFault(0.2, 15, [this] { CutPower(); });
  AddFault(0.4, 10, [this] { CrashLeaderAfterCut(); });
  AddFault(0.5, 6, [this] { CutBrokers(); });
  AddFault(0.4, 8, [this] { Isolate(); });
  AddFault(0.3, 10, [this] { Split(); });
  AddFault(0.4, 9, [this] { Maroon(); });
  AddFault(0.4, 6, [this] { CutOneWay(); });
  AddFault(0.2, 10, [this] { Deafen(); });
  AddFault(0.4, 4, [this] { BreakStreams(); });
  AddFault(0.3, 7, [this] { Pause(); });
  AddFault(0.2, 10, [this] { StepClock(); });
  AddFault(0.2, 10, [this] { StopBroker(); });
  AddFault(0.15, 15, [this] { FailControllerDisk(); });
  // It loses what was not synced, at a moment that is not chosen here.
  if (!acknowledges_unsynced_) AddFault(0.15, 12, [this] { FailBrokerSync(); });
  AddFault(0.25, 12, [this] { FillDisk(); });
  AddFault(0.35, 6, [this] { Rot(); });
  if (acknowledges_unsynced_) AddFault(0.5, 8, [this] { ChangeFlushPolicy(); });
  if (group_ == nullptr) return;
  AddFault(0.5, 6, [this] { group_->CrashMember(); });
  AddFault(0.4, 8, [this] { PauseMember(); });
}

void Nemesis::End() {
  Finish();
  plane_.Say("no more faults");
  plane_.wire().HealAll();
  for (int node = 0; node < plane_.nodes(); ++node) {
    plane_.Resume(node);
    if (node >= ControlPlane::kControllers) plane_.DiskOf(node).SetCapacity(kNoLimit);
    if (plane_.IsEnding(node) && plane_.IsUp(node)) EndProcess(node);
    if (!plane_.IsUp(node)) plane_.Start(node);
  }
  // Steps add up. A leader whose clock stays more than message.timestamp.after.max.ms behind its
  // producers' refuses all they send, as it should: no cluster serves before its clocks are right.
  for (const auto& [node, error] : std::exchange(clock_errors_, {})) {
    plane_.StepWallClock(node, Duration() - error);
  }
}

int Nemesis::AnyController() {
  const int active = plane_.Active();
  if (active >= 0 && random().Chance(0.6)) return active;
  return static_cast<int>(random().Below(ControlPlane::kControllers));
}

int Nemesis::AnyBroker() {
  const int leader = random().Chance(0.4) ? cluster_.LeaderOf(topic_, 0) : -1;
  return leader >= 0 ? leader : plane_.AnyBroker(random());
}

int Nemesis::AnyBrokerBut(int broker) {
  int other = broker;
  while (other == broker) other = plane_.AnyBroker(random());
  return other;
}

std::string Nemesis::AnyName() {
  if (!clients_.empty() && random().Chance(0.2)) return clients_[random().Below(clients_.size())];
  return ControlPlane::NameOf(AnyNode());
}

// --- Crashes

void Nemesis::Crash(int node, Duration down_for) {
  if (!plane_.IsUp(node)) return;
  if (random().Chance(0.4) || !MayLosePower(node)) {
    coverage_.Count("processes killed");
    plane_.Kill(node);
  } else {
    coverage_.Count("nodes without power");
    plane_.Crash(node);
  }
  RestartLater(node, down_for);
}

bool Nemesis::MayLosePower(int node) {
  return !acknowledges_unsynced_ || node < ControlPlane::kControllers || cluster_.IsWhole(topic_);
}

void Nemesis::EndProcess(int node) {
  if (MayLosePower(node)) {
    plane_.Crash(node);
  } else {
    plane_.Kill(node);
  }
}

void Nemesis::RestartLater(int node, Duration within) {
  Later(within, [this, node] {
    if (!plane_.IsUp(node)) plane_.Start(node);
  });
}

Duration Nemesis::DownFor() { return Ms(random().Chance(0.4) ? 60 : 8'000); }

void Nemesis::CrashBroker() {
  coverage_.Count("broker crashes");
  Crash(plane_.AnyBroker(random()), DownFor());
}

void Nemesis::CrashLeader() {
  const int leader = cluster_.LeaderOf(topic_, 0);
  if (leader < 0) return;
  coverage_.Count("leader crashes");
  Crash(leader, DownFor());
}

void Nemesis::CrashController() {
  coverage_.Count("controller crashes");
  Crash(AnyController(), DownFor());
}

void Nemesis::CutPower() {
  coverage_.Count("power cuts");
  const bool all = random().Chance(0.4);
  for (int node = 0; node < plane_.nodes(); ++node) {
    if (all || random().Chance(0.6)) Crash(node, Ms(3'000));
  }
}

void Nemesis::CrashLeaderAfterCut() {
  const int leader = cluster_.LeaderOf(topic_, 0);
  if (leader < 0) return;
  coverage_.Count("leaders cut off and crashed");
  plane_.Say("cut " + ControlPlane::NameOf(leader) + " from other brokers, to crash it");
  for (int other = ControlPlane::kControllers; other < plane_.nodes(); ++other) {
    if (other != leader) Cut(ControlPlane::NameOf(leader), ControlPlane::NameOf(other));
  }
  After(Ms(random().Between(50, 3'000)), [this, leader] {
    Crash(leader, DownFor());
    Heal();
  });
}

// --- The network

void Nemesis::Cut(const std::string& a, const std::string& b) { plane_.wire().CutBothWays(a, b); }

void Nemesis::HealAfter(Duration min, Duration max) {
  After(Ms(random().Between(min.milliseconds(), max.milliseconds())), [this] { Heal(); });
}

void Nemesis::Heal() {
  if (cluster_.scheduler().now() < marooned_until_) return;
  plane_.Say("heal");
  plane_.wire().HealAll();
}

void Nemesis::CutBrokers() {
  coverage_.Count("brokers cut from brokers");
  const int broker = AnyBroker();
  const bool all = random().Chance(0.5);
  plane_.Say("cut " + ControlPlane::NameOf(broker) + " from other brokers");
  for (int other = ControlPlane::kControllers; other < plane_.nodes(); ++other) {
    if (other != broker && (all || random().Chance(0.5))) {
      Cut(ControlPlane::NameOf(broker), ControlPlane::NameOf(other));
    }
  }
  HealAfter(Duration(), Duration::Seconds(random().Chance(0.5) ? 2 : 15));
}

void Nemesis::Isolate() {
  coverage_.Count("nodes isolated");
  const int node = random().Chance(0.7) ? AnyBroker() : AnyController();
  plane_.Say("isolate " + ControlPlane::NameOf(node));
  for (int other = 0; other < plane_.nodes(); ++other) {
    if (other != node) Cut(ControlPlane::NameOf(node), ControlPlane::NameOf(other));
  }
  if (random().Chance(0.5)) {
    for (const std::string& client : clients_) Cut(ControlPlane::NameOf(node), client);
  }
  HealAfter(Ms(1'000), kLongerThanAnything);
}

void Nemesis::Split() {
  coverage_.Count("splits");
  std::vector<std::string> sides[2];
  for (int node = 0; node < plane_.nodes(); ++node) {
    sides[random().Below(2)].push_back(ControlPlane::NameOf(node));
  }
  for (const std::string& client : clients_) sides[random().Below(2)].push_back(client);
  plane_.Say("split");
  for (const std::string& a : sides[0]) {
    for (const std::string& b : sides[1]) Cut(a, b);
  }
  HealAfter(Ms(1'000), kLongerThanAnything);
}

void Nemesis::Maroon() {
  const int leader = cluster_.LeaderOf(random().Chance(0.7) ? topic_ : "__consumer_offsets", 0);
  if (leader < 0) return;
  coverage_.Count("leaders marooned");
  // Mostly another one: what the two of them hold is enough for the minimum ISR.
  const int with = random().Chance(0.8) ? AnyBrokerBut(leader) : leader;
  const bool with_clients = random().Chance(0.7);
  plane_.Say("maroon " + ControlPlane::NameOf(leader) + " and " + ControlPlane::NameOf(with));
  for (int other = 0; other < plane_.nodes(); ++other) {
    if (other == leader || other == with) continue;
    Cut(ControlPlane::NameOf(leader), ControlPlane::NameOf(other));
    if (with != leader) Cut(ControlPlane::NameOf(with), ControlPlane::NameOf(other));
    if (!with_clients) continue;
    for (const std::string& client : clients_) Cut(client, ControlPlane::NameOf(other));
  }
  marooned_until_ = cluster_.scheduler().now() + kLongerThanASession;
  HealAfter(kLongerThanASession, kLongerThanAnything);
}

void Nemesis::CutOneWay() {
  const std::string a = AnyName();
  const std::string b = AnyName();
  if (a == b) return;
  coverage_.Count("one-way cuts");
  plane_.Say("cut " + a + " to " + b);
  plane_.wire().Cut(a, b);
  HealAfter(Duration(), Duration::Seconds(10));
}

void Nemesis::Deafen() {
  coverage_.Count("nodes deafened");
  const int node = random().Chance(0.5) ? AnyBroker() : AnyController();
  plane_.Say("deafen " + ControlPlane::NameOf(node));
  for (int other = 0; other < plane_.nodes(); ++other) {
    if (other != node) plane_.wire().Cut(ControlPlane::NameOf(other), ControlPlane::NameOf(node));
  }
  HealAfter(Duration(), Duration::Seconds(10));
}

void Nemesis::BreakStreams() {
  coverage_.Count("streams broken");
  plane_.network().BreakStreams(ControlPlane::NameOf(AnyBroker()), AnyName());
}

// --- Clocks, disks, and stops

void Nemesis::Pause() {
  const int node = random().Chance(0.7) ? AnyBroker() : AnyController();
  if (!plane_.IsUp(node)) return;
  coverage_.Count("pauses");
  plane_.Pause(node);
  Later(random().Chance(0.5) ? Ms(900) : kLongerThanASession,
        [this, node] { plane_.Resume(node); });
}

void Nemesis::PauseMember() {
  group_->PauseMember(random().Chance(0.5) ? Ms(900) : kLongerThanASession);
}

void Nemesis::StepClock() {
  coverage_.Count("clock steps");
  const int node = AnyNode();
  const Duration step = Duration::Seconds(random().Between(-3'600, 3'600));
  clock_errors_[node] = clock_errors_[node] + step;
  plane_.StepWallClock(node, step);
}

void Nemesis::StopBroker() {
  const int node = AnyBroker();
  if (!plane_.IsUp(node)) return;
  coverage_.Count("clean stops");
  plane_.StopBroker(node);
  After(Duration::Seconds(8), [this, node] {
    if (plane_.IsUp(node) && plane_.IsEnding(node)) EndProcess(node);
    if (!plane_.IsUp(node)) plane_.Start(node);
  });
}

void Nemesis::FailControllerDisk() {
  const int node = AnyController();
  if (!plane_.IsUp(node)) return;
  coverage_.Count("controller writes failed");
  plane_.FailDisk(node, random().Chance(0.5));
  RestartLater(node, Duration::Seconds(5));
}

void Nemesis::FailBrokerSync() {
  const int node = AnyBroker();
  if (!plane_.IsUp(node)) return;
  coverage_.Count("broker syncs failed");
  plane_.Say("a sync of " + ControlPlane::NameOf(node) + " will fail");
  plane_.LetFail(node);
  plane_.DiskOf(node).FailSync(static_cast<int>(random().Between(1, 20)));
  RestartLater(node, Duration::Seconds(8));
}

void Nemesis::FillDisk() {
  const int node = AnyBroker();
  coverage_.Count("disks filled");
  plane_.Say("the disk of " + ControlPlane::NameOf(node) + " is full");
  SimFileSystem& disk = plane_.DiskOf(node);
  disk.SetCapacity(disk.used_bytes() + random().Below(2'000));
  Later(kLongerThanASession, [this, node] {
    plane_.Say("the disk of " + ControlPlane::NameOf(node) + " has room");
    plane_.DiskOf(node).SetCapacity(kNoLimit);
  });
}

void Nemesis::Rot() {
  // Only where a good replica survives.
  if (!cluster_.IsWhole(topic_)) return;
  if (cluster_.RotAtLeader(topic_, 0)) coverage_.Count("bits rotten");
}

void Nemesis::ChangeFlushPolicy() {
  policy_is_fsync_ = !policy_is_fsync_;
  coverage_.Count("flush policy changes");
  cluster_.AlterLater(topic_, {{"flush.policy", policy_is_fsync_ ? "fsync" : "replicated"}});
}

}  // namespace conclave::cluster_sim
