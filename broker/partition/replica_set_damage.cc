#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/partition/replica_set.h"
#include "common/error/error.h"

// What becomes of replicas that have lost records they had (semantics, section 2).
namespace conclave::broker {
namespace {

// Whether the controller goes by what this replica has: it has not heard of the damage yet.
bool IsCounted(const Partition& partition, BrokerId self) {
  return partition.InIsr(self) || partition.InElr(self) || partition.HasStoppedUncleanly(self);
}

}  // namespace

void ReplicaSet::FindMissing() {
  for (const auto& [key, high_watermark] : directory_->high_watermarks()) {
    const PartitionId id{key.topic_id, key.partition};
    if (high_watermark == Offset(0) || Find(id) != nullptr || damaged_.contains(id)) continue;
    // Of a topic that was deleted meanwhile it says nothing, and the metadata will tell.
    damaged_[id] = {
        {"", id.topic, id.index},
        "",
        absl::StrCat("its directory is not in ", directory_->path(),
                     " any more, and had committed records up to offset ", high_watermark.value()),
        std::nullopt};
  }
}

Replica* ReplicaSet::Heal(const PartitionId& id, const Partition& partition) {
  Damaged& damaged = damaged_.at(id);
  damaged.identity.topic = image_.FindTopic(id.topic)->name;
  if (partition.leader == kNoBroker) return nullptr;
  if (partition.leader != options_.self) {
    if (IsCounted(partition, options_.self)) return nullptr;
    const PartitionIdentity identity = damaged.identity;
    LOG(WARNING) << identity.topic << "-" << id.index << ": is copied from broker "
                 << partition.leader << ", for " << damaged.what;
    DropDamaged(id, DataDirectory::Aside::kDamaged);
    return MakeAnew(identity);
  }
  // The controller knows of the damage since before this broker was unfenced: an operator wants it.
  const Damaged given_up = damaged;
  LOG(WARNING) << given_up.identity.topic << "-" << id.index
               << ": goes on with what is left of it, for this replica was elected; "
               << given_up.what;
  if (given_up.directory.empty()) {
    damaged_.erase(id);
    return MakeAnew(given_up.identity);
  }
  return GiveUp(id);
}

Replica* ReplicaSet::GiveUp(const PartitionId& id) {
  for (;;) {
    const Damaged given_up = damaged_.at(id);
    const absl::Status opened = OpenLog(given_up.directory, given_up.identity, Opening::kGiveUp);
    if (!opened.ok()) {
      Fail(opened);
      return nullptr;
    }
    if (Replica* replica = Find(id)) {
      damaged_.erase(id);
      return replica;
    }
    // There may be another gap, before the one that was given up.
    const Damaged& left = damaged_.at(id);
    const bool nearer = left.damage && (!given_up.damage || left.damage->first_missing <
                                                                given_up.damage->first_missing);
    if (!nearer) return nullptr;
  }
}

bool ReplicaSet::BeginsAnew(const Partition& partition, const Replica& replica) const {
  return replica.damage() && partition.leader != kNoBroker && partition.leader != options_.self &&
         !IsCounted(partition, options_.self);
}

void ReplicaSet::ReplaceDamaged(const PartitionId& id) {
  const Partition* partition = image_.FindPartition(id);
  Replica* replica = Find(id);
  if (partition == nullptr || replica == nullptr) return;
  // What was damaged may have been removed meanwhile: then the log goes on.
  if (BeginsAnew(*partition, *replica)) {
    const PartitionIdentity identity = replica->identity();
    LOG(WARNING) << replica->name() << ": is copied from broker " << partition->leader << ", for "
                 << *replica->damage();
    SetAside(id, DataDirectory::Aside::kDamaged);
    checkpoints_due_ = true;
  }
  ApplyPartition(id);
  Report();
}

Replica* ReplicaSet::MakeAnew(const PartitionIdentity& identity) {
  if (failed_) return nullptr;
  checkpoints_due_ = true;
  return Make(identity);
}

void ReplicaSet::DropDamaged(const PartitionId& id, DataDirectory::Aside where) {
  const std::string directory = damaged_.at(id).directory;
  damaged_.erase(id);
  if (!directory.empty()) MoveAside(id, directory, where);
}

std::vector<PartitionId> ReplicaSet::DamagedIds() const {
  std::vector<PartitionId> ids;
  for (const auto& [id, damaged] : damaged_) ids.push_back(id);
  return ids;
}

void ReplicaSet::RemoveHealed() {
  for (auto it = healing_.begin(); it != healing_.end();) {
    const Partition* partition = image_.FindPartition(it->first);
    Replica* replica = Find(it->first);
    const bool healed =
        partition == nullptr || (partition->InIsr(options_.self) && replica != nullptr &&
                                 !replica->damage() && !damaged_.contains(it->first));
    if (!healed) {
      ++it;
      continue;
    }
    RemoveLater(DataDirectory::Aside::kDamaged, it->second, Duration());
    it = healing_.erase(it);
  }
}

void ReplicaSet::Report() {
  ReplicaReport report;
  for (const auto& [id, damaged] : damaged_) report.damaged[id] = {damaged.what, false};
  for (const PartitionId& id : std::set(damaged_open_)) {
    const Replica* replica = Find(id);
    if (replica != nullptr && replica->damage()) {
      report.damaged[id] = {*replica->damage(), true};
    } else {
      damaged_open_.erase(id);
    }
  }
  // Whoever else is in sync is to lead, rather than one that has no log.
  for (const auto& [id, why] : unmade_) {
    report.damaged[id] = {absl::StrCat("its log cannot be made: ", why.message()), true};
  }
  for (const PartitionId& id : image_.PartitionsLedBy(kNoBroker)) {
    if (!image_.FindPartition(id)->HasStoppedUncleanly(options_.self)) continue;
    if (const Replica* replica = Find(id)) {
      report.ends[id] = {replica->log().last_epoch(), replica->log().log_end()};
    }
  }
  if (report == reported_) return;
  reported_ = report;
  environment_.on_report(reported_);
}

}  // namespace conclave::broker
