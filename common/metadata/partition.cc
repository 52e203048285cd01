#include "common/metadata/partition.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status Refused(std::string why) { return MakeError(v1::CORRUPT_MESSAGE, std::move(why)); }

bool Contains(const std::vector<BrokerId>& brokers, BrokerId broker) {
  return std::find(brokers.begin(), brokers.end(), broker) != brokers.end();
}

std::vector<BrokerId> Typed(const google::protobuf::RepeatedField<int32_t>& ids) {
  std::vector<BrokerId> typed;
  typed.reserve(ids.size());
  for (int32_t id : ids) typed.emplace_back(id);
  return typed;
}

absl::Status CheckSubset(const Partition& partition, const std::vector<BrokerId>& subset,
                         const char* name) {
  for (size_t i = 0; i < subset.size(); ++i) {
    if (!partition.HasReplica(subset[i])) {
      return Refused(
          absl::StrCat(name, " names broker ", subset[i].value(), ", which holds no replica"));
    }
    if (std::find(subset.begin(), subset.begin() + i, subset[i]) != subset.begin() + i) {
      return Refused(absl::StrCat(name, " names broker ", subset[i].value(), " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReplicas(const Partition& partition) {
  const auto& replicas = partition.replicas;
  if (replicas.empty()) return Refused("a partition has no replicas");
  for (size_t i = 0; i < replicas.size(); ++i) {
    if (replicas[i].directory.IsNone()) {
      return Refused(
          absl::StrCat("the replica on broker ", replicas[i].broker.value(), " has no directory"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (replicas[j].broker == replicas[i].broker) {
        return Refused(absl::StrCat("broker ", replicas[i].broker.value(), " holds two replicas"));
      }
    }
  }
  return absl::OkStatus();
}

template <class Record>
void FillState(const PartitionId& id, const Partition& partition, Record& record) {
  record.set_topic_id(id.topic.ToBytes());
  record.set_partition(id.index.value());
  for (BrokerId broker : partition.isr) record.add_isr(broker.value());
  for (BrokerId broker : partition.elr) record.add_elr(broker.value());
  record.set_leader(partition.leader.value());
  record.set_leader_epoch(partition.leader_epoch.value());
  record.set_partition_epoch(partition.partition_epoch.value());
  record.set_note(partition.note);
  for (BrokerId broker : partition.stopped_uncleanly) {
    record.add_stopped_uncleanly(broker.value());
  }
  record.set_flush_policy(partition.flush_policy);
}

template <class Record>
void ReadState(const Record& record, Partition& partition) {
  partition.isr = Typed(record.isr());
  partition.elr = Typed(record.elr());
  partition.leader = BrokerId(record.leader());
  partition.leader_epoch = LeaderEpoch(record.leader_epoch());
  partition.partition_epoch = PartitionEpoch(record.partition_epoch());
  partition.note = record.note();
  partition.stopped_uncleanly = Typed(record.stopped_uncleanly());
  partition.flush_policy = record.flush_policy();
}

}  // namespace

std::string ToString(const PartitionId& id) {
  return absl::StrCat(id.topic.ToString(), "-", id.index.value());
}

bool Partition::HasReplica(BrokerId broker) const {
  return std::any_of(replicas.begin(), replicas.end(),
                     [broker](const PartitionReplica& r) { return r.broker == broker; });
}

bool Partition::InIsr(BrokerId broker) const { return Contains(isr, broker); }

bool Partition::InElr(BrokerId broker) const { return Contains(elr, broker); }

bool Partition::HasStoppedUncleanly(BrokerId broker) const {
  return Contains(stopped_uncleanly, broker);
}

std::vector<BrokerId> Partition::InAssignmentOrder(const std::vector<BrokerId>& brokers) const {
  std::vector<BrokerId> ordered;
  for (const PartitionReplica& replica : replicas) {
    if (Contains(brokers, replica.broker)) ordered.push_back(replica.broker);
  }
  return ordered;
}

absl::Status CheckPartition(const Partition& partition) {
  if (auto status = CheckReplicas(partition); !status.ok()) return status;
  if (auto status = CheckSubset(partition, partition.isr, "the ISR"); !status.ok()) return status;
  if (auto status = CheckSubset(partition, partition.elr, "the ELR"); !status.ok()) return status;
  if (auto status = CheckSubset(partition, partition.stopped_uncleanly,
                                "the list of those that stopped uncleanly");
      !status.ok()) {
    return status;
  }
  for (BrokerId broker : partition.elr) {
    if (partition.InIsr(broker)) {
      return Refused(absl::StrCat("broker ", broker.value(), " is in both ISR and ELR"));
    }
  }
  for (BrokerId broker : partition.stopped_uncleanly) {
    if (partition.InIsr(broker) || partition.InElr(broker)) {
      return Refused(absl::StrCat("broker ", broker.value(),
                                  " stopped uncleanly and is in the ISR or the ELR all the same"));
    }
  }
  if (!v1::FlushPolicy_IsValid(partition.flush_policy)) {
    return MakeError(v1::UNSUPPORTED_VERSION,
                     absl::StrCat("flush policy ", static_cast<int>(partition.flush_policy),
                                  " is not known to this version; upgrade this node"));
  }
  if (partition.leader != kNoBroker && !partition.InIsr(partition.leader)) {
    return Refused(absl::StrCat("leader ", partition.leader.value(), " is not in the ISR"));
  }
  if (partition.isr.empty() && partition.note.empty()) {
    return Refused("the ISR is empty and no note says why");
  }
  if (partition.leader_epoch < LeaderEpoch(0) || partition.partition_epoch < PartitionEpoch(0)) {
    return Refused("an epoch is negative");
  }
  return absl::OkStatus();
}

absl::Status CheckSuccession(const Partition& before, const Partition& after) {
  if (after.partition_epoch <= before.partition_epoch) {
    return Refused(absl::StrCat("partition epoch ", after.partition_epoch.value(),
                                " does not rise above ", before.partition_epoch.value()));
  }
  if (after.leader_epoch < before.leader_epoch) {
    return Refused(absl::StrCat("leader epoch ", after.leader_epoch.value(), " falls below ",
                                before.leader_epoch.value()));
  }
  if (after.leader != before.leader && after.leader_epoch == before.leader_epoch) {
    return Refused(absl::StrCat("leader changes from ", before.leader.value(), " to ",
                                after.leader.value(), " within leader epoch ",
                                after.leader_epoch.value()));
  }
  return absl::OkStatus();
}

v1::PartitionRecord ToRecord(const PartitionId& id, const Partition& partition) {
  v1::PartitionRecord record;
  FillState(id, partition, record);
  for (const PartitionReplica& replica : partition.replicas) {
    v1::Replica* out = record.add_replicas();
    out->set_broker_id(replica.broker.value());
    out->set_directory_id(replica.directory.ToBytes());
  }
  return record;
}

v1::PartitionChangeRecord ToChangeRecord(const PartitionId& id, const Partition& partition) {
  v1::PartitionChangeRecord record;
  FillState(id, partition, record);
  return record;
}

absl::StatusOr<Partition> PartitionFromRecord(const v1::PartitionRecord& record) {
  Partition partition;
  ReadState(record, partition);
  for (const v1::Replica& replica : record.replicas()) {
    const auto directory = DirectoryId::FromBytes(replica.directory_id());
    if (!directory) {
      return Refused(absl::StrCat("the directory id of the replica on broker ", replica.broker_id(),
                                  " has ", replica.directory_id().size(), " bytes instead of 16"));
    }
    partition.replicas.push_back({BrokerId(replica.broker_id()), *directory});
  }
  return partition;
}

Partition PartitionAfter(const Partition& before, const v1::PartitionChangeRecord& record) {
  Partition after;
  after.replicas = before.replicas;
  ReadState(record, after);
  return after;
}

}  // namespace conclave
