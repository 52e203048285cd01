#include "controller/core/leadership_plan.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/topic_config.h"

namespace conclave::controller {
namespace {

void Erase(std::vector<BrokerId>& brokers, BrokerId broker) {
  brokers.erase(std::remove(brokers.begin(), brokers.end(), broker), brokers.end());
}

std::string Names(const std::vector<BrokerId>& brokers) {
  return absl::StrCat(brokers.size() == 1 ? "broker " : "brokers ",
                      absl::StrJoin(brokers, ", ", [](std::string* out, BrokerId broker) {
                        absl::StrAppend(out, broker.value());
                      }));
}

// An empty ISR has lost its last member with a directory.
std::string LostNote(BrokerId broker, DirectoryId directory) {
  return absl::StrCat(
      "possible loss of acknowledged records: broker ", broker.value(),
      " came back without directory ", directory.ToString(),
      ", which held the last in-sync replica. To go on with what is left, "
      "set unclean.leader.election.enable=true on the topic; or delete and create the topic");
}

}  // namespace

bool LeadershipPlan::IsEligible(BrokerId id) const {
  if (const auto marked = eligible_.find(id); marked != eligible_.end()) return marked->second;
  const Broker* broker = image_.FindBroker(id);
  return broker != nullptr && broker->IsEligible();
}

bool LeadershipPlan::IsUncleanAllowed(TopicId topic) const {
  return unclean_.contains(topic) || IsUncleanElectionEnabled(image_.FindTopic(topic)->configs);
}

const Partition& LeadershipPlan::Current(const PartitionId& id) const {
  if (const auto found = edited_.find(id); found != edited_.end()) return found->second;
  const Partition* partition = image_.FindPartition(id);
  CHECK(partition != nullptr) << "no partition " << ToString(id);
  return *partition;
}

Partition& LeadershipPlan::Edit(const PartitionId& id) {
  return edited_.try_emplace(id, Current(id)).first->second;
}

std::optional<BrokerId> LeadershipPlan::CleanCandidate(const Partition& partition) const {
  for (const PartitionReplica& replica : partition.replicas) {
    if (partition.InIsr(replica.broker) && IsEligible(replica.broker)) return replica.broker;
  }
  return std::nullopt;
}

std::optional<BrokerId> LeadershipPlan::UncleanCandidate(const PartitionId& id,
                                                         const Partition& partition) const {
  if (!IsUncleanAllowed(id.topic)) return std::nullopt;
  for (const PartitionReplica& replica : partition.replicas) {
    if (IsEligible(replica.broker)) return replica.broker;
  }
  return std::nullopt;
}

void LeadershipPlan::Elect(const PartitionId& id, const std::string& why_none) {
  Partition& partition = Edit(id);
  const std::vector<BrokerId> isr_before = partition.isr;
  if (const auto clean = CleanCandidate(partition)) {
    partition.leader = *clean;
    partition.note.clear();
  } else if (const auto unclean = UncleanCandidate(id, partition)) {
    partition.leader = *unclean;
    partition.isr = {*unclean};
    Erase(partition.elr, *unclean);
    partition.note = absl::StrCat(
        "possible loss of acknowledged records: unclean election of broker ", unclean->value(),
        isr_before.empty() ? ", with no replica left in sync"
                           : absl::StrCat(", while ", Names(isr_before), " was in sync and away"));
  } else {
    partition.leader = kNoBroker;
    partition.note = why_none;
  }
  partition.leader_epoch = image_.FindPartition(id)->leader_epoch + 1;
}

void LeadershipPlan::ElectIfLeaderless(const PartitionId& id) {
  const Partition& partition = Current(id);
  if (partition.leader != kNoBroker) return;
  if (CleanCandidate(partition) || UncleanCandidate(id, partition)) Elect(id, "");
}

void LeadershipPlan::FenceReplica(const PartitionId& id, const Fenced& fenced) {
  const Partition& current = Current(id);
  if (current.InIsr(fenced.broker) && current.isr.size() > 1) Erase(Edit(id).isr, fenced.broker);
  if (Current(id).leader != fenced.broker) return;
  Elect(id,
        absl::StrCat("no leader: ", Names(Current(id).isr),
                     ", the last in sync, cannot lead now; broker ", fenced.broker.value(),
                     " led until it was fenced (", fenced.why, "). Bring the last in sync back"));
}

void LeadershipPlan::Fence(const std::vector<Fenced>& brokers) {
  for (const Fenced& fenced : brokers) eligible_[fenced.broker] = false;
  for (const Fenced& fenced : brokers) {
    for (const PartitionId& id : image_.PartitionsOn(fenced.broker)) FenceReplica(id, fenced);
  }
}

void LeadershipPlan::Unfence(BrokerId broker) {
  eligible_[broker] = true;
  for (const PartitionId& id : image_.PartitionsOn(broker)) ElectIfLeaderless(id);
}

void LeadershipPlan::MoveAwayFrom(BrokerId broker) {
  eligible_[broker] = false;
  for (const PartitionId& id : image_.PartitionsOn(broker)) {
    if (Current(id).leader == broker && CleanCandidate(Current(id))) Elect(id, "");
    const Partition& partition = Current(id);
    if (partition.leader == broker || !partition.InIsr(broker)) continue;
    const size_t minimum =
        EffectiveMinInsyncReplicas(image_.FindTopic(id.topic)->configs, partition.replicas.size());
    // The last one stays, whatever the minimum.
    if (partition.isr.size() > std::max<size_t>(minimum, 1)) Erase(Edit(id).isr, broker);
  }
}

void LeadershipPlan::LoseReplica(const PartitionId& id, BrokerId broker, DirectoryId replacement) {
  Partition& partition = Edit(id);
  const auto replica =
      std::find_if(partition.replicas.begin(), partition.replicas.end(),
                   [broker](const PartitionReplica& r) { return r.broker == broker; });
  const std::string note = LostNote(broker, std::exchange(replica->directory, replacement));
  const bool was_in_sync = partition.InIsr(broker);
  Erase(partition.isr, broker);
  Erase(partition.elr, broker);
  if (partition.leader == broker) {
    Elect(id, note);
  } else if (was_in_sync && partition.isr.empty()) {
    partition.note = note;
    ElectIfLeaderless(id);
  }
}

void LeadershipPlan::LoseDirectories(BrokerId broker, const std::vector<DirectoryId>& kept,
                                     Random& random) {
  for (const PartitionId& id : image_.PartitionsOn(broker)) {
    for (const PartitionReplica& replica : image_.FindPartition(id)->replicas) {
      if (replica.broker != broker) continue;
      if (std::find(kept.begin(), kept.end(), replica.directory) != kept.end()) continue;
      LoseReplica(id, broker, kept[random.Below(kept.size())]);
    }
  }
}

void LeadershipPlan::AllowUncleanElection(TopicId topic) {
  unclean_.insert(topic);
  const auto& leaderless = image_.PartitionsLedBy(kNoBroker);
  for (auto id = leaderless.lower_bound({topic, PartitionIndex(0)});
       id != leaderless.end() && id->topic == topic; ++id) {
    ElectIfLeaderless(*id);
  }
}

void LeadershipPlan::ElectWhereLeaderless() {
  for (const PartitionId& id : image_.PartitionsLedBy(kNoBroker)) ElectIfLeaderless(id);
}

void LeadershipPlan::AddRecords(BatchBuilder& builder) const {
  for (const auto& [id, edited] : edited_) {
    const Partition& before = *image_.FindPartition(id);
    if (edited == before) continue;
    Partition after = edited;
    after.partition_epoch = before.partition_epoch + 1;
    v1::MetadataRecord record;
    if (after.replicas == before.replicas) {
      *record.mutable_partition_change() = ToChangeRecord(id, after);
    } else {
      *record.mutable_partition() = ToRecord(id, after);
    }
    builder.Add(std::move(record));
  }
}

}  // namespace conclave::controller
