#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/partition_file.h"
#include "broker/partition/metadata_update.h"
#include "broker/partition/replica_set.h"
#include "common/error/error.h"

// What the metadata makes of the partitions.
namespace conclave::broker {

using replication::LeaderReplica;

void ReplicaSet::OnMetadata(const v1::WatchMetadataResponse& update) {
  MetadataDelta delta;
  if (absl::Status applied = ApplyUpdate(update, image_, delta); !applied.ok()) {
    return Fail(applied);
  }
  if (TakesPart() && took_part_) Apply(delta);
}

void ReplicaSet::TakePart(BrokerEpoch epoch) {
  epoch_ = epoch;
  isr_changes_.SetBrokerEpoch(epoch);
  leaders_.SetBrokerEpoch(epoch);
  if (TakesPart()) ApplyAll();
}

void ReplicaSet::ApplyAll() {
  ApplyBrokers();
  if (!std::exchange(took_part_, true)) SetAsideStrays();
  for (const PartitionId& id : std::set(image_.PartitionsOn(options_.self))) ApplyPartition(id);
  RemoveHealed();
  Report();
  if (observer_) observer_(nullptr);
}

void ReplicaSet::Apply(const MetadataDelta& delta) {
  if (!delta.brokers.empty()) ApplyBrokers();
  for (const auto& [topic, name] : delta.deleted_topics) {
    std::vector<PartitionId> gone;
    for (auto it = replicas_.lower_bound({topic, PartitionIndex(0)});
         it != replicas_.end() && it->first.topic == topic; ++it) {
      gone.push_back(it->first);
    }
    for (const PartitionId& id : gone) SetAside(id, DataDirectory::Aside::kDeleted);
    for (const PartitionId& id : DamagedIds()) {
      if (id.topic == topic) DropDamaged(id, DataDirectory::Aside::kDeleted);
    }
  }
  for (const PartitionId& id : delta.partitions) ApplyPartition(id);
  for (const TopicId topic : delta.topic_configs) {
    const Topic* found = image_.FindTopic(topic);
    if (found == nullptr) continue;
    for (size_t i = 0; i < found->partitions.size(); ++i) {
      ApplyPartition({topic, PartitionIndex(static_cast<int32_t>(i))});
    }
  }
  RemoveHealed();
  Report();
  if (observer_) observer_(&delta);
}

void ReplicaSet::ApplyBrokers() {
  brokers_.clear();
  std::map<BrokerId, LeaderStreams::Address> addresses;
  for (const auto& [id, broker] : image_.brokers()) {
    brokers_[id] = {broker.epoch, broker.IsEligible()};
    if (id != options_.self) addresses[id] = {broker.endpoint, broker.epoch};
  }
  leaders_.SetBrokers(std::move(addresses));
  for (const auto& [id, replica] : replicas_) {
    if (replica->leader() == nullptr) continue;
    replica->leader()->SetBrokers(brokers_, executor_.clock().Now());
    Touch(*replica);
  }
}

void ReplicaSet::ApplyPartition(const PartitionId& id) {
  const Topic* topic = image_.FindTopic(id.topic);
  const Partition* partition = image_.FindPartition(id);
  if (topic == nullptr || partition == nullptr || failed_) return;
  Replica* replica = Find(id);
  if (!partition->HasReplica(options_.self)) {
    if (replica != nullptr) SetAside(id, DataDirectory::Aside::kStray);
    if (damaged_.contains(id)) DropDamaged(id, DataDirectory::Aside::kStray);
    return;
  }
  if (damaged_.contains(id)) {
    replica = Heal(id, *partition);
  } else if (replica == nullptr) {
    replica = Make({topic->name, id.topic, id.index});
  }
  if (replica == nullptr) return;
  replica->SetConfig(ResolveTopicConfig(topic->configs, partition->replicas.size()));
  SetPart(*topic, *partition, *replica);
}

Replica* ReplicaSet::Make(const PartitionIdentity& identity) {
  const auto directory = directory_->Create(identity);
  const absl::Status opened =
      directory.ok() ? OpenLog(*directory, identity, Opening::kNew) : directory.status();
  const PartitionId id{identity.topic_id, identity.partition};
  if (opened.ok()) {
    unmade_.erase(id);
    return Find(id);
  }
  if (ErrorCodeOf(opened) != v1::OUT_OF_RESOURCES) {
    Fail(opened);
  } else if (unmade_.insert_or_assign(id, opened).second) {
    LOG(ERROR) << PartitionDirectoryName(identity.topic, identity.partition)
               << " cannot be made yet, and is tried again: " << Describe(opened);
  }
  return nullptr;
}

absl::Status ReplicaSet::WhyUnmade(const PartitionId& id) const {
  const auto found = unmade_.find(id);
  return found == unmade_.end() ? absl::OkStatus() : found->second;
}

void ReplicaSet::MakeUnmade() {
  for (const auto& [id, why] : std::map(unmade_)) {
    const Partition* partition = image_.FindPartition(id);
    if (partition == nullptr || !partition->HasReplica(options_.self)) {
      unmade_.erase(id);
    } else {
      ApplyPartition(id);
    }
  }
}

void ReplicaSet::SetPart(const Topic& topic, const Partition& partition, Replica& replica) {
  if (partition.leader == options_.self) {
    leaders_.End(replica.id());
    replication::PartitionState state;
    state.leader_epoch = partition.leader_epoch;
    state.partition_epoch = partition.partition_epoch;
    for (const PartitionReplica& member : partition.replicas) {
      state.replicas.push_back(member.broker);
    }
    state.isr = partition.isr;
    state.elr = partition.elr;
    if (partition.flush_policy == v1::FLUSH_POLICY_REPLICATED) {
      state.flush_policy = replication::FlushPolicy::kReplicated;
    }
    const size_t minimum = EffectiveMinInsyncReplicas(topic.configs, partition.replicas.size());
    replica.Lead(state, static_cast<int>(minimum), brokers_);
  } else if (partition.leader == kNoBroker) {
    leaders_.End(replica.id());
    replica.StandBy();
  } else {
    const bool begins_anew = BeginsAnew(partition, replica);
    const bool same = replica.following() == partition.leader &&
                      replica.follower()->leader_epoch() == partition.leader_epoch &&
                      replica.begins_anew() == begins_anew;
    replica.SetBeginsAnew(begins_anew);
    replica.Follow(partition.leader, partition.leader_epoch);
    if (!same) leaders_.Begin(replica);
  }
  Touch(replica);
}

void ReplicaSet::SetAside(const PartitionId& id, DataDirectory::Aside where) {
  const auto it = replicas_.find(id);
  leaders_.End(id);
  it->second->StandBy();
  it->second->Settle();
  it->second->log().ReleaseReserved();
  const std::string directory = it->second->log().directory();
  by_id_.Erase(id);
  replicas_.erase(it);
  MoveAside(id, directory, where);
}

void ReplicaSet::MoveAside(const PartitionId& id, const std::string& directory,
                           DataDirectory::Aside where) {
  const auto moved = directory_->SetAside(directory, id, where);
  if (!moved.ok()) return Fail(moved.status());
  const std::string name = moved->substr(ParentPath(*moved).size() + 1);
  switch (where) {
    case DataDirectory::Aside::kDeleted:
      return RemoveLater(where, name, options_.file_delete_delay);
    case DataDirectory::Aside::kDamaged:
      healing_.emplace(id, name);
      LOG(WARNING) << directory << " is set aside as " << *moved
                   << " while the leader's records are copied, and removed after that";
      return;
    case DataDirectory::Aside::kStray:
      LOG(WARNING) << directory << " is set aside as " << *moved
                   << ", for the metadata does not know it, or not on this broker; remove it when "
                      "its records are not needed any more";
      return;
  }
}

void ReplicaSet::SetAsideStrays() {
  std::vector<PartitionId> strays;
  for (const auto& [id, replica] : replicas_) {
    const Partition* partition = image_.FindPartition(id);
    if (partition == nullptr || !partition->HasReplica(options_.self)) strays.push_back(id);
  }
  for (const PartitionId& id : strays) SetAside(id, DataDirectory::Aside::kStray);
  for (const PartitionId& id : DamagedIds()) {
    const Partition* partition = image_.FindPartition(id);
    if (partition == nullptr || !partition->HasReplica(options_.self)) {
      DropDamaged(id, DataDirectory::Aside::kStray);
    }
  }
}

}  // namespace conclave::broker
