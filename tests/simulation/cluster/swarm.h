#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_SWARM_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_SWARM_H_

#include <map>
#include <optional>
#include <string>

#include "common/random/random.h"
#include "common/types/time.h"
#include "tests/simulation/controllers/control_plane.h"

namespace conclave::cluster_sim {

// The sizes of one run: its cluster, its network and disks, and the work that clients do. Each seed
// draws its own (swarm testing, Groce et al. 2012); which faults strike is drawn by the Nemesis.
struct Swarm {
  control_sim::ControlPlane::Options cluster;
  int partitions = 1;
  int replicas = 3;
  std::map<std::string, std::string> topic_settings;

  int producers = 1;
  Duration between_sends;
  // A client of committed offsets.
  bool offsets = true;
  // Besides the one that reads everything.
  int group_members = 0;
  // Whether old segments are removed: consumers that fall behind would miss records then, and there
  // are none.
  bool retention = false;
  // Whether records are deleted by offset, too, and how far apart; only with retention.
  std::optional<Duration> between_removals;
  // flush.policy=replicated: fewer than the minimum ISR lose power at once, then, and the policy is
  // changed back and forth.
  bool acknowledges_unsynced = false;
  // Whether an administrator makes and deletes other topics.
  bool admin = false;
  Duration between_admin_requests;

  Duration faults_for;

  static Swarm Draw(Random random);

  // Of the clients one producer and the one that reads everything, to measure with.
  void KeepOneProducer(int sends_a_second);
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_SWARM_H_
