#include "tests/simulation/cluster/swarm.h"

namespace conclave::cluster_sim {
namespace {

Duration Ms(int64_t n) { return Duration::Milliseconds(n); }

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

}  // namespace

Swarm Swarm::Draw(Random random) {
  Swarm swarm;
  swarm.cluster.brokers = random.Chance(0.6) ? 3 : static_cast<int>(random.Between(4, 5));
  swarm.cluster.wire = DrawWire(random);
  swarm.cluster.disks = DrawDisks(random);
  if (random.Chance(0.3)) swarm.cluster.zero_tails = 0.5;
  swarm.partitions = static_cast<int>(random.Between(1, 3));
  swarm.replicas = random.Chance(0.85) ? 3 : 2;
  if (random.Chance(0.1)) swarm.topic_settings.emplace("min.insync.replicas", "1");
  // Segments of a few batches, so that logs roll, and recovery meets several.
  if (random.Chance(0.5)) {
    swarm.topic_settings["segment.bytes"] = std::to_string(random.Between(1'024, 20'000));
  }
  if (random.Chance(0.2)) {
    swarm.retention = true;
    swarm.topic_settings["segment.bytes"] = std::to_string(random.Between(1'024, 5'000));
    swarm.topic_settings["retention.bytes"] = std::to_string(random.Between(2'000, 20'000));
    swarm.cluster.retention_check_interval = Ms(random.Between(300, 5'000));
  }
  swarm.producers = random.Chance(0.7) ? 1 : 2;
  swarm.between_sends = Ms(random.Chance(0.4) ? 10 : 100);
  if (random.Chance(0.5) && !swarm.retention)
    swarm.group_members = static_cast<int>(random.Between(1, 3));
  swarm.admin = random.Chance(0.3);
  swarm.between_admin_requests = Ms(random.Between(100, 1'000));
  // Of its own, so that the rest stays as it was drawn.
  Random flush = random.Fork("flush");
  if (swarm.replicas == 3 && !swarm.topic_settings.contains("min.insync.replicas") &&
      flush.Chance(0.2)) {
    swarm.acknowledges_unsynced = true;
    swarm.topic_settings["flush.policy"] = "replicated";
    swarm.topic_settings["flush.ms"] = flush.Chance(0.5) ? "3600000" : "500";
  }
  Random removals = random.Fork("removals");
  if (swarm.retention && removals.Chance(0.6)) {
    swarm.between_removals = Ms(removals.Between(200, 5'000));
  }
  Random tail = random.Fork("tail");
  constexpr size_t kTails[] = {0, 512, 4096, size_t{32} << 20};
  swarm.cluster.tail_bytes = kTails[tail.Below(4)];
  swarm.faults_for = Duration::Seconds(random.Between(25, 45));
  return swarm;
}

void Swarm::KeepOneProducer(int sends_a_second) {
  producers = 1;
  // A tenth are bursts of 2 to 20.
  between_sends = Duration::Nanoseconds(2'000'000'000 / sends_a_second);
  offsets = admin = false;
  between_removals.reset();
  group_members = 0;
}

}  // namespace conclave::cluster_sim
