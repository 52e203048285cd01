#include "tests/simulation/cluster/simulation.h"

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/consumer_workload.h"
#include "tests/simulation/cluster/offsets_workload.h"
#include "tests/simulation/cluster/producer_workload.h"
#include "tests/simulation/controllers/fault_schedule.h"

namespace conclave::cluster_sim {
namespace {

using control_sim::ControlPlane;

constexpr char kTopic[] = "t";
constexpr Duration kFaultsFor = Duration::Seconds(30);
// A full session, elections, catching up, and pauses between attempts.
constexpr Duration kWholeWithin = Duration::Seconds(60);
// Longer than any delivery or request is given.
constexpr Duration kQuietWithin = Duration::Seconds(90);

Duration Ms(int64_t n) { return Duration::Milliseconds(n); }

// Does to the cluster what the seed says.
class Nemesis : public FaultSchedule {
 public:
  Nemesis(Cluster& cluster, const Random& random, RunCounters& counters)
      : FaultSchedule(cluster.scheduler(), random),
        cluster_(cluster),
        plane_(cluster.plane()),
        counters_(counters) {
    AddFault(0.6, 6, [this] { CrashBroker(); });
    AddFault(0.5, 6, [this] { CrashLeader(); });
    AddFault(0.4, 8, [this] { CrashController(); });
    AddFault(0.2, 15, [this] { CutPower(); });
    AddFault(0.5, 6, [this] { CutBrokers(); });
    AddFault(0.4, 8, [this] { Isolate(); });
    AddFault(0.4, 6, [this] { CutOneWay(); });
    AddFault(0.3, 7, [this] { Pause(); });
    AddFault(0.4, 4, [this] { BreakStreams(); });
    AddFault(0.2, 10, [this] { StopBroker(); });
  }

  // No more faults, and those that last end.
  void End() {
    Finish();
    plane_.wire().HealAll();
    for (int node = 0; node < ControlPlane::kNodes; ++node) {
      plane_.Resume(node);
      if (plane_.IsEnding(node) && plane_.IsUp(node)) plane_.Crash(node);
      if (!plane_.IsUp(node)) plane_.Start(node);
    }
  }

 private:
  int AnyController() { return static_cast<int>(random().Below(ControlPlane::kControllers)); }
  int AnyNode() { return static_cast<int>(random().Below(ControlPlane::kNodes)); }
  int AnyBroker() {
    return ControlPlane::kControllers + static_cast<int>(random().Below(ControlPlane::kBrokers));
  }

  void Crash(int node, Duration down_for) {
    if (!plane_.IsUp(node)) return;
    plane_.Crash(node);
    Later(down_for, [this, node] {
      if (!plane_.IsUp(node)) plane_.Start(node);
    });
  }

  Duration DownFor() { return Ms(random().Chance(0.4) ? 60 : 8'000); }

  void CrashBroker() {
    ++counters_.broker_crashes;
    Crash(AnyBroker(), DownFor());
  }
  void CrashLeader() {
    const int leader = cluster_.LeaderOf(kTopic, 0);
    if (leader < 0) return;
    ++counters_.leader_crashes;
    Crash(leader, DownFor());
  }
  void CrashController() {
    ++counters_.controller_crashes;
    const int active = plane_.Active();
    Crash(active >= 0 && random().Chance(0.7) ? active : AnyController(), DownFor());
  }
  void CutPower() {
    ++counters_.power_cuts;
    for (int node = 0; node < ControlPlane::kNodes; ++node) {
      if (node >= ControlPlane::kControllers || random().Chance(0.5)) Crash(node, Ms(3'000));
    }
  }

  void Cut(int a, int b) {
    plane_.wire().CutBothWays(ControlPlane::NameOf(a), ControlPlane::NameOf(b));
  }
  void HealLater(Duration max) {
    Later(max, [this] {
      plane_.Say("heal");
      plane_.wire().HealAll();
    });
  }
  // A broker loses one of the others, or both, and not the controllers.
  void CutBrokers() {
    ++counters_.cuts;
    const int broker = AnyBroker();
    const bool both = random().Chance(0.5);
    plane_.Say("cut " + ControlPlane::NameOf(broker) + " from other brokers");
    for (int other = ControlPlane::kControllers; other < ControlPlane::kNodes; ++other) {
      if (other != broker && (both || random().Chance(0.5))) Cut(broker, other);
    }
    HealLater(Duration::Seconds(random().Chance(0.5) ? 2 : 15));
  }
  void Isolate() {
    ++counters_.cuts;
    const int node = random().Chance(0.7) ? AnyBroker() : AnyController();
    plane_.Say("isolate " + ControlPlane::NameOf(node));
    for (int other = 0; other < ControlPlane::kNodes; ++other) {
      if (other != node) Cut(node, other);
    }
    if (random().Chance(0.5)) plane_.wire().CutBothWays(ControlPlane::NameOf(node), "client");
    HealLater(Duration::Seconds(12));
  }
  void CutOneWay() {
    ++counters_.one_way_cuts;
    const int a = AnyNode();
    const int b = AnyNode();
    if (a == b) return;
    plane_.Say("cut " + ControlPlane::NameOf(a) + " to " + ControlPlane::NameOf(b));
    plane_.wire().Cut(ControlPlane::NameOf(a), ControlPlane::NameOf(b));
    HealLater(Duration::Seconds(10));
  }
  void Pause() {
    const int node = random().Chance(0.7) ? AnyBroker() : AnyController();
    if (!plane_.IsUp(node)) return;
    ++counters_.pauses;
    plane_.Pause(node);
    Later(random().Chance(0.5) ? Ms(900) : Duration::Seconds(12),
          [this, node] { plane_.Resume(node); });
  }
  void BreakStreams() {
    ++counters_.stream_breaks;
    const int broker = AnyBroker();
    const std::string other = random().Chance(0.3) ? "client" : ControlPlane::NameOf(AnyNode());
    plane_.network().BreakStreams(ControlPlane::NameOf(broker), other);
  }
  void StopBroker() {
    const int node = AnyBroker();
    if (!plane_.IsUp(node)) return;
    ++counters_.broker_stops;
    plane_.StopBroker(node);
    After(Duration::Seconds(8), [this, node] {
      if (plane_.IsUp(node) && plane_.IsEnding(node)) plane_.Crash(node);
      if (!plane_.IsUp(node)) plane_.Start(node);
    });
  }

  Cluster& cluster_;
  ControlPlane& plane_;
  RunCounters& counters_;
};

SimWire::Options DrawWire(Random& random) {
  SimWire::Options wire;
  wire.delay_max = Ms(random.Chance(0.7) ? 3 : 40);
  if (random.Chance(0.3)) wire.slow = 0.02;
  if (random.Chance(0.15)) wire.break_streams = 0.002;
  wire.break_after = Ms(random.Between(1'000, 15'000));
  return wire;
}

control_sim::DiskSpeed DrawDisks(Random& random) {
  control_sim::DiskSpeed disks;
  disks.max = Ms(random.Chance(0.7) ? 5 : 60);
  if (random.Chance(0.2)) disks.slow = 0.02;
  return disks;
}

// The rest of a run whose faults are over.
void Recover(Cluster& cluster, ProducerWorkload& producer, ConsumerWorkload& consumer,
             OffsetsWorkload& offsets) {
  if (!cluster.RunUntil(kWholeWithin, [&] { return cluster.IsWhole(kTopic); })) {
    return cluster.Break("not whole " + std::to_string(kWholeWithin.milliseconds() / 1000) +
                         " s after the last fault: " + cluster.plane().WhyNotWhole());
  }
  const uint64_t before = producer.counters().acknowledged;
  if (!cluster.RunUntil(Duration::Seconds(30),
                        [&] { return producer.counters().acknowledged > before; })) {
    return cluster.Break("a whole cluster acknowledged nothing within 30 s");
  }
  const uint64_t committed = offsets.counters().committed;
  const uint64_t read = offsets.counters().read;
  if (!cluster.RunUntil(Duration::Seconds(30), [&] {
        return offsets.counters().committed > committed && offsets.counters().read > read;
      })) {
    return cluster.Break("a whole cluster committed or read no offset within 30 s");
  }
  producer.Stop();
  offsets.Stop();
  if (!cluster.RunUntil(kQuietWithin, [&] { return producer.idle() && offsets.idle(); })) {
    return cluster.Break("sends without an outcome " +
                         std::to_string(kQuietWithin.milliseconds() / 1000) + " s later");
  }
  const MonotonicTime until = cluster.scheduler().now() + Duration::Seconds(20);
  while (!consumer.IsAtEnd() && cluster.violation().empty()) {
    if (cluster.scheduler().now() >= until) {
      return cluster.Break("the consumer has not read everything within 20 s");
    }
    cluster.RunFor(Ms(100));
  }
  producer.CheckFinal();
  consumer.CheckFinal();
}

}  // namespace

RunCounters& RunCounters::operator+=(const RunCounters& o) {
  events += o.events;
  sent += o.sent;
  acknowledged += o.acknowledged;
  refused += o.refused;
  unknown += o.unknown;
  polled += o.polled;
  offsets_committed += o.offsets_committed;
  offsets_read += o.offsets_read;
  batches_committed += o.batches_committed;
  batches_compared += o.batches_compared;
  leaders += o.leaders;
  truncations += o.truncations;
  broker_crashes += o.broker_crashes;
  leader_crashes += o.leader_crashes;
  controller_crashes += o.controller_crashes;
  power_cuts += o.power_cuts;
  cuts += o.cuts;
  one_way_cuts += o.one_way_cuts;
  pauses += o.pauses;
  stream_breaks += o.stream_breaks;
  broker_stops += o.broker_stops;
  return *this;
}

std::string RunCounters::ToString() const {
  std::ostringstream out;
  out << events << " events, " << sent << " values sent: " << acknowledged << " acknowledged, "
      << refused << " refused, " << unknown << " unknown, " << polled << " polled; "
      << offsets_committed << " offsets committed, " << offsets_read << " read; "
      << batches_committed << " batches committed, " << batches_compared << " compared; " << leaders
      << " leaders, " << truncations << " truncations; " << broker_crashes << " brokers, "
      << leader_crashes << " leaders and " << controller_crashes << " controllers crashed, "
      << power_cuts << " power cuts, " << cuts << " cuts, " << one_way_cuts << " one-way cuts, "
      << pauses << " pauses, " << stream_breaks << " breaks of streams, " << broker_stops
      << " stops";
  return out.str();
}

RunResult RunSeed(const RunOptions& options) {
  RunResult result;
  Random random(options.seed);
  Random draw = random.Fork("swarm");
  const SimWire::Options wire = DrawWire(draw);
  const control_sim::DiskSpeed disks = DrawDisks(draw);
  Cluster cluster(options.seed, wire, disks, options.trace);
  const int partitions = static_cast<int>(draw.Between(1, 3));
  const std::string created = cluster.CreateTopic(kTopic, partitions, 3);
  if (!created.empty()) {
    result.violation = cluster.violation().empty() ? created : cluster.violation();
    return result;
  }
  ProducerWorkload producer(cluster, random.Fork("workload"), kTopic, partitions);
  ConsumerWorkload consumer(cluster, random.Fork("consumer"), kTopic, partitions);
  consumer.Start();
  OffsetsWorkload offsets(cluster, random.Fork("offsets"), kTopic);
  offsets.Start();
  Nemesis nemesis(cluster, random.Fork("nemesis"), result.counters);
  producer.Start(Ms(draw.Chance(0.5) ? 10 : 100));
  nemesis.Begin();
  cluster.RunFor(kFaultsFor);
  nemesis.End();
  if (cluster.violation().empty()) Recover(cluster, producer, consumer, offsets);
  // Events of the world name what lives here.
  result.violation = cluster.violation();
  if (!result.violation.empty()) {
    std::ostringstream out;
    out << cluster.scheduler().now() << ": " << result.violation;
    result.violation = out.str();
  }
  RunCounters& c = result.counters;
  c.events = cluster.scheduler().events();
  c.sent = producer.counters().sent;
  c.acknowledged = producer.counters().acknowledged;
  c.refused = producer.counters().refused;
  c.unknown = producer.counters().unknown;
  c.polled = consumer.polled();
  c.offsets_committed = offsets.counters().committed;
  c.offsets_read = offsets.counters().read;
  c.batches_committed = cluster.counters().batches_committed;
  c.batches_compared = cluster.counters().batches_compared;
  c.leaders = cluster.counters().leaders;
  c.truncations = cluster.counters().truncations;
  result.trace_hash = cluster.scheduler().trace_hash();
  cluster.executor().Stop();
  return result;
}

std::string ReplayCommand(uint64_t seed) {
  return "bazel run //tests/simulation/cluster:replay -- " + std::to_string(seed);
}

}  // namespace conclave::cluster_sim
