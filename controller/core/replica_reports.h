#ifndef CONCLAVE_CONTROLLER_CORE_REPLICA_REPORTS_H_
#define CONCLAVE_CONTROLLER_CORE_REPLICA_REPORTS_H_

#include <compare>
#include <map>
#include <optional>
#include <string>

#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::controller {

// How far a replica has come: of two, the greater one has whatever the other may have that matters.
struct ReplicaEnd {
  LeaderEpoch last_epoch;
  Offset log_end;

  friend constexpr auto operator<=>(const ReplicaEnd&, const ReplicaEnd&) = default;
};

// What live brokers say of their replicas. Soft: of the active controller alone, and heard again
// with each heartbeat.
class ReplicaReports {
 public:
  struct Damage {
    // Which file, and which offsets; for people.
    std::string what;
    // What is not damaged can be served.
    bool open = false;
  };
  using Damages = std::map<PartitionId, Damage>;
  using Ends = std::map<PartitionId, ReplicaEnd>;

  // What is in the heartbeat takes the place of what was heard from the broker before. Whether
  // there is something to act on: it says something, or did before.
  bool Heard(BrokerId broker, const v1::BrokerHeartbeat& heartbeat);
  // Its session is over.
  void Forget(BrokerId broker) { brokers_.erase(broker); }
  void Clear() { brokers_.clear(); }

  const Damages& DamagedOn(BrokerId broker) const;
  const Ends& EndsOn(BrokerId broker) const;
  bool IsDamaged(BrokerId broker, const PartitionId& id) const;
  // nullopt: it has not said.
  std::optional<ReplicaEnd> EndOf(BrokerId broker, const PartitionId& id) const;

 private:
  struct Said {
    Damages damages;
    Ends ends;
  };
  // Those alone that have something to say.
  std::map<BrokerId, Said> brokers_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_REPLICA_REPORTS_H_
