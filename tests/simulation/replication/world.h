#ifndef CONCLAVE_TESTS_SIMULATION_REPLICATION_WORLD_H_
#define CONCLAVE_TESTS_SIMULATION_REPLICATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/replication/follower_replica.h"
#include "broker/replication/leader_replica.h"
#include "common/random/random.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "tests/simulation/replication/invariants.h"
#include "tests/simulation/replication/model_controller.h"
#include "tests/simulation/replication/sim_log.h"

namespace conclave::replication_simulation {

// What is made wrong on purpose, in the driver around the real replicas, to see that the invariants
// notice.
enum class Fault {
  kNone,
  kEpochIgnored,             // a follower takes in what an old leader sends
  kTruncateToHighWatermark,  // a follower cuts its log to its own mark, and asks nobody
  kReelectionWithoutNewEpoch,
  kUnsyncedFollowerCounts,  // a follower acknowledges what it has not synced
};

struct Result {
  std::optional<Violation> violation;
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  uint64_t acknowledged = 0;
  uint64_t elections = 0;
  uint64_t truncations = 0;
  uint64_t lost_unsynced = 0;  // Crashes that lost records.
  uint64_t shrinks = 0;
  uint64_t expands = 0;
};

// One partition of three replicas on one virtual clock: the real LeaderReplica and FollowerReplica,
// a model of the controller, logs that lose what was not synced, streams that delay and break.
Result RunSeed(uint64_t seed, Fault fault);

}  // namespace conclave::replication_simulation

#endif  // CONCLAVE_TESTS_SIMULATION_REPLICATION_WORLD_H_
