#include "controller/core/leader_election.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/leadership_plan.h"
#include "controller/core/unknown_topic.h"

namespace conclave::controller {
namespace {

absl::StatusOr<std::set<PartitionId>> PartitionsOf(const MetadataImage& image,
                                                   const v1::ElectLeadersRequest& request) {
  const Topic* topic = image.FindTopic(request.topic());
  if (topic == nullptr) return UnknownTopic(request.topic());
  const auto count = static_cast<int32_t>(topic->partitions.size());
  std::set<PartitionId> ids;
  for (const int32_t index : request.partitions()) {
    if (index < 0 || index >= count) {
      return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                       absl::StrCat("topic ", topic->name, " has no partition ", index, "; it has ",
                                    count, ", from 0"));
    }
    ids.insert({topic->id, PartitionIndex(index)});
  }
  if (request.partitions().empty()) {
    for (int32_t index = 0; index < count; ++index) ids.insert({topic->id, PartitionIndex(index)});
  }
  return ids;
}

absl::Status WhyNot(v1::ElectionType type, const std::string& name, const Partition& partition) {
  const std::string leader = absl::StrCat("broker ", partition.leader.value(), " leads ", name);
  if (type == v1::ELECTION_TYPE_UNCLEAN) {
    if (partition.leader != kNoBroker) {
      return MakeError(v1::ELECTION_NOT_NEEDED,
                       leader + "; an unclean election is for partitions without a leader");
    }
    return MakeError(
        v1::ELIGIBLE_LEADERS_NOT_AVAILABLE,
        absl::StrCat("no broker that holds a replica of ", name, " is active; start one of them"));
  }
  const BrokerId preferred = partition.replicas.front().broker;
  if (partition.leader == preferred) {
    return MakeError(v1::ELECTION_NOT_NEEDED, leader + " already, as preferred");
  }
  return MakeError(
      v1::ELIGIBLE_LEADERS_NOT_AVAILABLE,
      absl::StrCat("broker ", preferred.value(), ", preferred for ", name,
                   ", is not active or not in sync; 'conclave topic describe' shows the ISR"));
}

}  // namespace

absl::StatusOr<Change<v1::ElectLeadersResponse>> ElectLeaders(
    const MetadataImage& image, const ReplicaReports& reports,
    const v1::ElectLeadersRequest& request, Now now) {
  if (request.type() != v1::ELECTION_TYPE_PREFERRED &&
      request.type() != v1::ELECTION_TYPE_UNCLEAN) {
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("election type ", static_cast<int>(request.type()),
                                  " is not known; preferred and unclean are"));
  }
  const auto ids = PartitionsOf(image, request);
  if (!ids.ok()) return ids.status();
  LeadershipPlan plan(image, reports);
  Change<v1::ElectLeadersResponse> change;
  for (const PartitionId& id : *ids) {
    if (request.type() == v1::ELECTION_TYPE_UNCLEAN) {
      plan.ElectUncleanly(id);
    } else {
      plan.ElectPreferred(id);
    }
    const Partition& before = *image.FindPartition(id);
    const Partition& after = plan.Current(id);
    v1::ElectLeaderResult& result = *change.response.add_partitions();
    result.set_partition(id.index.value());
    result.set_leader(after.leader.value());
    result.set_leader_epoch(after.leader_epoch.value());
    if (after.leader_epoch == before.leader_epoch) {
      *result.mutable_error() = ErrorFromStatus(
          WhyNot(request.type(), absl::StrCat(request.topic(), "-", id.index.value()), before));
    }
  }
  BatchBuilder builder(now.wall);
  plan.AddRecords(builder);
  change.batches = builder.Take();
  return change;
}

}  // namespace conclave::controller
