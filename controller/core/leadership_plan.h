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

namespace conclave::controller {

// What becomes of partitions when brokers come, go and lose directories: the rules of leaders and
// in-sync replicas, all of them here.
//
// - A leader is an eligible (unfenced, not stopping) member of the ISR, the first in assignment
//   order. Without one, an eligible replica where the topic allows unclean election; else none, and
//   the note says why.
// - A fenced broker leaves the ISR, except that the last member stays.
// - A lost directory takes the replica out of the ISR even as the last.
// - Each election raises the leader epoch, each change the partition epoch; by one a plan.
//
// Calls accumulate; brokers marked earlier stay so for later calls. AddRecords gives one record for
// each partition that came out different.
class LeadershipPlan {
 public:
  // `image` outlives this and does not change meanwhile.
  explicit LeadershipPlan(const MetadataImage& image) : image_(image) {}

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
  // `broker`'s replicas in other directories than `kept` are gone. They get one of `kept`, drawn.
  void LoseDirectories(BrokerId broker, const std::vector<DirectoryId>& kept, Random& random);
  // As if the topic allowed unclean election already; its partitions without a leader get one.
  void AllowUncleanElection(TopicId topic);
  // Every partition without a leader that could have one gets it.
  void ElectWhereLeaderless();

  void AddRecords(BatchBuilder& builder) const;

 private:
  bool IsEligible(BrokerId broker) const;
  bool IsUncleanAllowed(TopicId topic) const;
  // As it stands in this plan.
  const Partition& Current(const PartitionId& id) const;
  Partition& Edit(const PartitionId& id);
  // The eligible member of the ISR that comes first in assignment order.
  std::optional<BrokerId> CleanCandidate(const Partition& partition) const;
  std::optional<BrokerId> UncleanCandidate(const PartitionId& id, const Partition& partition) const;

  // Gives the partition another leader than it has, or none with `why_none` as note.
  void Elect(const PartitionId& id, const std::string& why_none);
  // Where there is no leader and could be one.
  void ElectIfLeaderless(const PartitionId& id);
  void FenceReplica(const PartitionId& id, const Fenced& fenced);
  void LoseReplica(const PartitionId& id, BrokerId broker, DirectoryId replacement);

  const MetadataImage& image_;
  // Brokers whose eligibility this plan changes.
  std::map<BrokerId, bool> eligible_;
  std::set<TopicId> unclean_;
  // Partitions visited; not all of them differ from the image.
  std::map<PartitionId, Partition> edited_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_LEADERSHIP_PLAN_H_
