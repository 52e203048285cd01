#ifndef CONCLAVE_BROKER_PARTITION_ISR_CHANGES_H_
#define CONCLAVE_BROKER_PARTITION_ISR_CHANGES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "broker/partition/replica.h"
#include "common/executor/executor.h"
#include "common/metadata/partition.h"
#include "common/rpc/failover_caller.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::broker {

// Takes leaders' proposals of new ISRs to the active controller (KIP-497), many in a request, one
// request at a time, and tells the leaders what came of them. What was accepted they hear from the
// metadata.
//
// Not thread-safe; on the partitions' executor. Destroyed after that has stopped.
class IsrChanges {
 public:
  struct Partitions {
    std::function<Replica*(const PartitionId&)> find;
    std::function<void(Replica&)> touch;
  };

  IsrChanges(BrokerId self, Partitions partitions, FailoverCaller& controllers, Executor& executor);

  void SetBrokerEpoch(BrokerEpoch epoch) { epoch_ = epoch; }
  // Replaces an earlier proposal that was not sent yet.
  void Propose(const PartitionId& id, LeaderEpoch leader_epoch,
               const replication::LeaderReplica::Proposal& proposal);
  // Sends what was proposed, unless a request is under way.
  void Flush();

 private:
  void Answered(const v1::AlterPartitionRequest& request,
                absl::StatusOr<v1::AlterPartitionResponse> response);
  // What one partition's proposal came to.
  void Outcome(const v1::PartitionAlteration& alteration, const absl::Status& status);
  // The leader that made the proposal and waits for it still; nullptr: not any more.
  Replica* StillWaiting(const v1::PartitionAlteration& alteration) const;

  const BrokerId self_;
  const Partitions partitions_;
  FailoverCaller& controllers_;
  Executor& executor_;
  BrokerEpoch epoch_;
  std::map<PartitionId, v1::PartitionAlteration> proposed_;
  bool under_way_ = false;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_ISR_CHANGES_H_
