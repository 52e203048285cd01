#include "tests/simulation/controllers/simulation.h"

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/random/random.h"
#include "tests/simulation/controllers/control_plane.h"
#include "tests/simulation/controllers/fault_schedule.h"

namespace conclave::control_sim {
namespace {

constexpr Duration kFaultsFor = Duration::Seconds(40);
// A full session, an election or two, and pauses between attempts.
constexpr Duration kWholeWithin = Duration::Seconds(30);

// A session may be about to end when the last fault does.
constexpr Duration kWholeFor = Duration::Seconds(3);

Duration Ms(int64_t n) { return Duration::Milliseconds(n); }

// Does to the control plane what the seed says.
class Nemesis : public FaultSchedule {
 public:
  Nemesis(ControlPlane& plane, const Random& random, RunCounters& counters)
      : FaultSchedule(plane.scheduler(), random), plane_(plane), counters_(counters) {
    AddFault(0.5, 8, [this] { CrashController(); });
    AddFault(0.5, 8, [this] { CrashBroker(); });
    AddFault(0.2, 10, [this] { StopBroker(); });
    AddFault(0.15, 20, [this] { CutPower(); });
    AddFault(0.4, 8, [this] { Isolate(); });
    AddFault(0.4, 6, [this] { CutPair(); });
    AddFault(0.4, 5, [this] { CutOneWay(); });
    AddFault(0.4, 3, [this] { BreakStreams(); });
    AddFault(0.3, 8, [this] { Pause(); });
    AddFault(0.2, 15, [this] { FailDisk(); });
    AddFault(0.2, 10, [this] { StepClock(); });
    AddFault(0.3, 4, [this] { CutLeaderBriefly(); });
  }

  // No more faults, and those that last end.
  void End() {
    Finish();
    plane_.wire().HealAll();
    for (int node = 0; node < plane_.nodes(); ++node) {
      plane_.Resume(node);
      if (!plane_.IsUp(node) || plane_.IsEnding(node)) Restart(node);
    }
  }

 private:
  int AnyNode() { return static_cast<int>(random().Below(static_cast<uint64_t>(plane_.nodes()))); }
  // Often the one that leads, for there faults hurt.
  int AnyController() {
    const int active = plane_.Active();
    if (active >= 0 && random().Chance(0.5)) return active;
    return static_cast<int>(random().Below(ControlPlane::kControllers));
  }
  int AnyBroker() { return plane_.AnyBroker(random()); }

  void Crash(int node, Duration down_for) {
    if (!plane_.IsUp(node)) return;
    plane_.Crash(node);
    RestartLater(node, down_for);
  }
  void Restart(int node) {
    if (plane_.IsUp(node)) plane_.Crash(node);
    plane_.Start(node);
  }
  void RestartLater(int node, Duration down_for) {
    Later(down_for, [this, node] {
      if (!plane_.IsUp(node)) plane_.Start(node);
    });
  }

  void CrashController() {
    ++counters_.controller_crashes;
    Crash(AnyController(), Ms(random().Chance(0.3) ? 50 : 8'000));
  }
  void CrashBroker() {
    ++counters_.broker_crashes;
    Crash(AnyBroker(), Ms(random().Chance(0.3) ? 50 : 10'000));
  }
  void StopBroker() {
    const int node = AnyBroker();
    if (!plane_.IsUp(node)) return;
    ++counters_.broker_stops;
    plane_.StopBroker(node);
    // However long that took: when faults are over, or after that time, it is up again.
    After(Duration::Seconds(10), [this, node] { Restart(node); });
  }
  void CutPower() {
    ++counters_.power_cuts;
    for (int node = 0; node < plane_.nodes(); ++node) {
      if (node < ControlPlane::kControllers || random().Chance(0.5)) Crash(node, Ms(3'000));
    }
  }
  void Isolate() {
    ++counters_.partitions;
    const int node = random().Chance(0.7) ? AnyController() : AnyBroker();
    const bool also_admin = random().Chance(0.5);
    for (int other = 0; other < plane_.nodes(); ++other) {
      if (other != node) CutBetween(ControlPlane::NameOf(node), ControlPlane::NameOf(other));
    }
    if (also_admin) CutBetween(ControlPlane::NameOf(node), "admin");
    Later(Duration::Seconds(12), [this] { plane_.wire().HealAll(); });
  }
  void CutBetween(const std::string& a, const std::string& b) { plane_.wire().CutBothWays(a, b); }
  void CutPair() {
    ++counters_.partitions;
    const std::string a = ControlPlane::NameOf(AnyController());
    const std::string b = ControlPlane::NameOf(AnyNode());
    if (a == b) return;
    plane_.Say("cut " + a + " and " + b);
    CutBetween(a, b);
    Later(Duration::Seconds(10), [this, a, b] {
      plane_.wire().Heal(a, b);
      plane_.wire().Heal(b, a);
    });
  }
  void CutOneWay() {
    ++counters_.one_way_cuts;
    std::string a = ControlPlane::NameOf(AnyController());
    std::string b = ControlPlane::NameOf(AnyNode());
    if (a == b) return;
    if (random().Chance(0.5)) std::swap(a, b);
    plane_.Say("cut " + a + " to " + b);
    plane_.wire().Cut(a, b);
    Later(Duration::Seconds(10), [this, a, b] { plane_.wire().Heal(a, b); });
  }
  // The active controller loses its peers, and not its clients, for about as long as it takes them
  // to elect another and it to give up: requests are open while two believe that they lead (R7).
  void CutLeaderBriefly() {
    const int leader = plane_.Active();
    if (leader < 0) return;
    ++counters_.leader_cuts;
    for (int other = 0; other < ControlPlane::kControllers; ++other) {
      if (other == leader) continue;
      const std::string a = ControlPlane::NameOf(leader);
      const std::string b = ControlPlane::NameOf(other);
      plane_.BreakStreams(leader, other);
      CutBetween(a, b);
      plane_.scheduler().After(Ms(random().Between(500, 1'000)), [this, a, b] {
        plane_.wire().Heal(a, b);
        plane_.wire().Heal(b, a);
      });
    }
  }
  void BreakStreams() {
    ++counters_.stream_breaks;
    plane_.BreakStreams(AnyController(), AnyNode());
  }
  void Pause() {
    const int node = random().Chance(0.6) ? AnyController() : AnyBroker();
    if (!plane_.IsUp(node)) return;
    ++counters_.pauses;
    plane_.Pause(node);
    Later(random().Chance(0.5) ? Ms(900) : Duration::Seconds(9),
          [this, node] { plane_.Resume(node); });
  }
  void FailDisk() {
    const int node = AnyController();
    if (!plane_.IsUp(node)) return;
    ++counters_.disk_errors;
    plane_.FailDisk(node, random().Chance(0.5));
    RestartLater(node, Duration::Seconds(5));
  }
  void StepClock() {
    ++counters_.clock_steps;
    plane_.StepWallClock(AnyNode(), Duration::Seconds(random().Between(-3'600, 3'600)));
  }

  ControlPlane& plane_;
  RunCounters& counters_;
};

SimWire::Options DrawWire(Random& random) {
  SimWire::Options wire;
  wire.delay_max = Ms(random.Chance(0.7) ? 3 : 40);
  if (random.Chance(0.3)) wire.slow = 0.02;
  if (random.Chance(0.15)) wire.break_streams = 0.003;
  wire.break_after = Ms(random.Between(1'000, 15'000));
  return wire;
}

DiskSpeed DrawDisks(Random& random) {
  DiskSpeed disks;
  disks.max = Ms(random.Chance(0.7) ? 5 : 60);
  if (random.Chance(0.2)) disks.slow = 0.02;
  return disks;
}

void RecoverWhole(ControlPlane& plane) {
  const MonotonicTime until = plane.scheduler().now() + kWholeWithin;
  MonotonicTime whole_since = MonotonicTime::Never();
  while (plane.violation().empty()) {
    const MonotonicTime now = plane.scheduler().now();
    const std::string why = plane.admin().idle() ? plane.WhyNotWhole() : "requests are open";
    if (!why.empty()) {
      whole_since = MonotonicTime::Never();
    } else if (whole_since == MonotonicTime::Never()) {
      whole_since = now;
    } else if (now - whole_since >= kWholeFor) {
      break;
    }
    if (now >= until) {
      return plane.Break("not whole " + std::to_string(kWholeWithin.milliseconds() / 1000) +
                         " s after the last fault: " + why);
    }
    plane.RunFor(Ms(100));
  }
  if (!plane.violation().empty()) return;
  bool answered = false;
  plane.admin().CreateOne([&](const absl::Status& created) {
    answered = true;
    if (!created.ok()) plane.Break("a whole control plane refused a topic: " + Describe(created));
  });
  plane.RunFor(Duration::Seconds(5));
  if (!answered) plane.Break("a whole control plane did not answer within 5 s");
  if (!plane.violation().empty()) return;
  if (const std::string why = plane.WhyNotWhole(); !why.empty()) {
    return plane.Break("not whole for good: " + why);
  }
  const MetadataImage& image = plane.ImageOf(plane.Active());
  if (const absl::Status led = controller::CheckEverybodyIsLed(image); !led.ok()) {
    plane.Break("at the end: " + std::string(led.message()));
  }
  if (const std::string wrong = plane.admin().CheckFinal(image); !wrong.empty()) {
    plane.Break("at the end: " + wrong);
  }
}

}  // namespace

RunResult RunSeed(const RunOptions& options) {
  RunResult result;
  const Random random(options.seed);
  Random draws = random.Fork("swarm");
  const SimWire::Options wire = DrawWire(draws);
  const DiskSpeed disks = DrawDisks(draws);
  const Duration admin_pause = Ms(draws.Between(50, 600));
  ControlPlane plane(random, {.wire = wire, .disks = disks, .text = options.trace});
  Nemesis nemesis(plane, random.Fork("nemesis"), result.counters);
  plane.admin().Start(admin_pause);
  plane.RunFor(Duration::Seconds(4));
  nemesis.Begin();
  plane.RunFor(kFaultsFor);
  if (plane.violation().empty()) {
    plane.Say("no more faults");
    SimWire::Options calm = wire;
    calm.break_streams = 0;
    calm.slow = 0;
    plane.wire().SetOptions(calm);
    plane.admin().Stop();
    nemesis.End();
    RecoverWhole(plane);
  }
  if (!plane.violation().empty()) {
    std::ostringstream text;
    text << plane.scheduler().now() << ": " << plane.violation();
    result.violation = text.str();
  }
  RunCounters& counters = result.counters;
  counters.events = plane.scheduler().events();
  counters.commits = plane.commits_seen();
  counters.activations = plane.activations();
  counters.topics_created = plane.admin().counters().created;
  counters.topics_deleted = plane.admin().counters().deleted;
  counters.lists = plane.admin().counters().listed;
  counters.requests_failed = plane.admin().counters().failed;
  result.trace_hash = plane.scheduler().trace_hash();
  return result;
}

RunCounters& RunCounters::operator+=(const RunCounters& other) {
  events += other.events;
  commits += other.commits;
  activations += other.activations;
  topics_created += other.topics_created;
  topics_deleted += other.topics_deleted;
  lists += other.lists;
  requests_failed += other.requests_failed;
  controller_crashes += other.controller_crashes;
  broker_crashes += other.broker_crashes;
  broker_stops += other.broker_stops;
  power_cuts += other.power_cuts;
  partitions += other.partitions;
  one_way_cuts += other.one_way_cuts;
  leader_cuts += other.leader_cuts;
  stream_breaks += other.stream_breaks;
  pauses += other.pauses;
  disk_errors += other.disk_errors;
  clock_steps += other.clock_steps;
  return *this;
}

std::string RunCounters::ToString() const {
  std::ostringstream text;
  text << events << " events, " << commits << " commits, " << activations << " activations, "
       << topics_created << " topics created, " << topics_deleted << " deleted, " << lists
       << " lists, " << requests_failed << " requests failed; " << controller_crashes
       << " controller crashes, " << broker_crashes << " broker crashes, " << broker_stops
       << " broker stops, " << power_cuts << " power cuts, " << partitions << " partitions, "
       << one_way_cuts << " one-way cuts, " << leader_cuts << " brief cuts of leaders, "
       << stream_breaks << " broken streams, " << pauses << " pauses, " << disk_errors
       << " disk errors, " << clock_steps << " clock steps";
  return text.str();
}

std::string ReplayCommand(uint64_t seed) {
  return "bazel run //tests/simulation/controllers:replay -- " + std::to_string(seed);
}

}  // namespace conclave::control_sim
