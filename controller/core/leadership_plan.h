#ifndef CONCLAVE_CONTROLLER_CORE_LEADERSHIP_PLAN_H_
#define CONCLAVE_CONTROLLER_CORE_LEADERSHIP_PLAN_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/metadata/image.h"
#include "common/metadata/partition.h"
#include "common/random/random.h"
#include "common/types/ids.h"
#include "controller/core/batch_builder.h"
#include "controller/core/replica_reports.h"

namespace conclave::controller {

// `isr` is the ISR from now on; who leaves it, or stays out, while it is under `minimum` is
// eligible (KIP-966).
void ChangeIsr(Partition& partition, std::vector<BrokerId> isr, size_t minimum);

// What becomes of partitions when brokers come, go and lose directories: the rules of leaders and
// in-sync replicas, all of them here.
//
// - A leader is an eligible (unfenced, not stopping) member of the ISR, the first in assignment
//   order; without one, of the ELR. Where both are empty because their members stopped uncleanly,
//   the one of these with the greatest end, once all are back. Without that, an eligible replica
//   where the topic allows unclean election; else none, and the note says why.
// - A fenced broker leaves the ISR, except that the last member stays.
// - Who leaves the ISR while it falls under the minimum is in the ELR, until the ISR has reached
//   the minimum (KIP-966).
// - An unclean stop takes a replica out of both under FLUSH_POLICY_REPLICATED; a lost directory and
//   damage do under any policy, and even the last. Whom an unclean stop took out while the ISR fell
//   under the minimum is remembered, as the ELR is, until it has reached the minimum: others may
//   have stopped as well, and not be known to have.
// - Each election raises the leader epoch, each change the partition epoch; by one a plan.
//
// Calls accumulate; brokers marked earlier stay so for later calls. AddRecords gives one record for
// each partition that came out different.
class LeadershipPlan {
 public:
  // `image` and `reports` outlive this and do not change meanwhile.
  LeadershipPlan(const MetadataImage& image, const ReplicaReports& reports)
      : image_(image), reports_(reports) {}

  struct Fenced {
    BrokerId broker;
    // Goes into the notes of partitions that are left without a leader.
    std::string why;
  };

  // These are fenced together, and none is elected in place of another. In the order in which their
  // sessions ended: of an ISR that they share the last one stays.
  void Fence(const std::vector<Fenced>& brokers);
  // Partitions without a leader that `broker` may lead get one.
  void Unfence(BrokerId broker);
  // What `broker` leads moves where it can; it leaves each ISR that keeps its minimum without it.
  void MoveAwayFrom(BrokerId broker);
  // `broker`, fenced, has lost what it had not synced.
  void StoppedUncleanly(BrokerId broker);
  // What `broker` reports as damaged leaves ISR and ELR. One whose log is open stays where no other
  // could lead: what it can serve is better than nothing.
  void TakeOutDamaged(BrokerId broker);
  // `broker`'s replicas in other directories than `kept` are gone. They get one of `kept`, drawn.
  void LoseDirectories(BrokerId broker, const std::vector<DirectoryId>& kept, Random& random);
  // As if the topic allowed unclean election already; its partitions without a leader get one.
  void AllowUncleanElection(TopicId topic);
  // The same for one partition, for once.
  void ElectUncleanly(const PartitionId& id);
  // The first replica in assignment order leads, if it is in sync and can.
  void ElectPreferred(const PartitionId& id);
  // The topic's minimum of in-sync replicas is another from now on: nobody is eligible for having
  // left under the old one, where there is a leader that may go by the new one.
  void ForgetEligible(TopicId topic);
  void SetFlushPolicy(TopicId topic, v1::FlushPolicy policy);
  // Every partition without a leader that could have one gets it.
  void ElectWhereLeaderless();
  // Where there is no leader and could be one.
  void ElectIfLeaderless(const PartitionId& id);

  // As it stands in this plan.
  const Partition& Current(const PartitionId& id) const;

  void AddRecords(BatchBuilder& builder) const;

 private:
  bool IsEligible(BrokerId broker) const;
  bool IsUncleanAllowed(const PartitionId& id) const;
  size_t MinimumOf(const PartitionId& id) const;
  Partition& Edit(const PartitionId& id);
  // The eligible member of the ISR, or else of the ELR, that comes first in assignment order.
  std::optional<BrokerId> CleanCandidate(const Partition& partition) const;
  // Of those that stopped uncleanly, the one that has come furthest; nullopt: not all are back.
  std::optional<BrokerId> FurthestCandidate(const PartitionId& id,
                                            const Partition& partition) const;
  std::optional<BrokerId> UncleanCandidate(const PartitionId& id, const Partition& partition) const;

  void LeadUncleanly(const PartitionId& id, BrokerId leader, std::string why);
  // Gives the partition another leader than it has, or none with `why_none` as note.
  void Elect(const PartitionId& id, const std::string& why_none);
  void LeaveIsr(const PartitionId& id, BrokerId broker);
  // Out of ISR, ELR, and those that are waited for. Elects another where it led, or was the last.
  void TakeOut(const PartitionId& id, BrokerId broker, const std::string& note);
  void FenceReplica(const PartitionId& id, const Fenced& fenced);
  void StopReplica(const PartitionId& id, BrokerId broker);
  void LoseReplica(const PartitionId& id, BrokerId broker, DirectoryId replacement);

  const MetadataImage& image_;
  const ReplicaReports& reports_;
  // Brokers whose eligibility this plan changes.
  std::map<BrokerId, bool> eligible_;
  std::set<TopicId> unclean_;
  std::set<PartitionId> unclean_once_;
  // Partitions visited; not all of them differ from the image.
  std::map<PartitionId, Partition> edited_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_LEADERSHIP_PLAN_H_
