#ifndef CONCLAVE_TESTS_SIMULATION_REPLICATION_MODEL_CONTROLLER_H_
#define CONCLAVE_TESTS_SIMULATION_REPLICATION_MODEL_CONTROLLER_H_

#include <functional>
#include <map>

#include "broker/replication/leader_replica.h"
#include "broker/replication/types.h"
#include "common/types/ids.h"

namespace conclave::replication_simulation {

// What brokers see of the metadata, whole.
struct Metadata {
  uint64_t version = 0;
  BrokerId leader = kNoBroker;
  replication::PartitionState state;
  std::map<BrokerId, replication::LeaderReplica::BrokerInfo> brokers;
};

// A linearizable model of what the controller does for one partition: the rules of elections and
// ISR changes, without sessions or Raft.
class ModelController {
 public:
  // `changed` is called after each change. `reelect_without_epoch`: the fault of that name.
  ModelController(int brokers, bool reelect_without_epoch, std::function<void()> changed);

  BrokerEpoch Register(BrokerId broker);
  void Fence(BrokerId broker);
  void Unfence(BrokerId broker, BrokerEpoch epoch);
  enum class Outcome { kTaken, kStale, kRefused };
  Outcome AlterIsr(BrokerId leader, LeaderEpoch leader_epoch,
                   const replication::LeaderReplica::Proposal& proposal);

  const Metadata& metadata() const { return metadata_; }
  uint64_t elections() const { return elections_; }

 private:
  bool IsEligible(BrokerId broker) const;
  void ElectIfNeeded(bool force);
  void Changed();

  const bool reelect_without_epoch_;
  const std::function<void()> changed_;
  Metadata metadata_;
  int64_t last_broker_epoch_ = 0;
  uint64_t elections_ = 0;
};

}  // namespace conclave::replication_simulation

#endif  // CONCLAVE_TESTS_SIMULATION_REPLICATION_MODEL_CONTROLLER_H_
