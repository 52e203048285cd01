#include "controller/core/invariants.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/topic_config.h"

namespace conclave::controller {
namespace {

absl::Status Broken(const PartitionId& id, const std::string& what) {
  return absl::InternalError(absl::StrCat("partition ", ToString(id), ": ", what));
}

bool IsUnfenced(const MetadataImage& image, BrokerId id) {
  const Broker* broker = image.FindBroker(id);
  return broker != nullptr && !broker->fenced;
}

absl::Status CheckLeader(const MetadataImage& image, const PartitionId& id,
                         const Partition& partition) {
  if (partition.leader == kNoBroker) return absl::OkStatus();
  const auto& isr = partition.isr;
  if (std::count(isr.begin(), isr.end(), partition.leader) != 1) {
    return Broken(id, absl::StrCat("leader ", partition.leader.value(), " is not in sync"));
  }
  if (!IsUnfenced(image, partition.leader)) {
    return Broken(id, absl::StrCat("leader ", partition.leader.value(), " is fenced"));
  }
  return absl::OkStatus();
}

absl::Status CheckIsr(const MetadataImage& image, const PartitionId& id,
                      const Partition& partition) {
  if (partition.isr.empty()) {
    const bool noted =
        !partition.elr.empty() || partition.note.find("possible loss") != std::string::npos;
    return partition.leader == kNoBroker && noted ? absl::OkStatus()
                                                  : Broken(id, "its ISR is empty without a reason");
  }
  for (BrokerId member : partition.isr) {
    const auto holds = [member](const PartitionReplica& r) { return r.broker == member; };
    if (std::count_if(partition.replicas.begin(), partition.replicas.end(), holds) != 1) {
      return Broken(id, absl::StrCat("broker ", member.value(), " is in sync without a replica"));
    }
    const bool last = partition.isr.size() == 1 && partition.leader == kNoBroker;
    if (!IsUnfenced(image, member) && !last) {
      return Broken(id,
                    absl::StrCat("broker ", member.value(), " is fenced, in sync and not last"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElr(const MetadataImage& image, const PartitionId& id,
                      const Partition& partition) {
  const size_t minimum =
      EffectiveMinInsyncReplicas(image.FindTopic(id.topic)->configs, partition.replicas.size());
  if (partition.leader == kNoBroker || partition.elr.empty() || partition.isr.size() < minimum) {
    return absl::OkStatus();
  }
  return Broken(id, "its ISR has reached the minimum, and its ELR is not empty");
}

template <class Visit>
absl::Status ForEachPartition(const MetadataImage& image, Visit visit) {
  for (const auto& [topic_id, topic] : image.topics()) {
    for (size_t i = 0; i < topic.partitions.size(); ++i) {
      const PartitionId id{topic_id, PartitionIndex(static_cast<int32_t>(i))};
      if (auto status = visit(id, topic.partitions[i]); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIndexes(const MetadataImage& image) {
  std::map<BrokerId, std::set<PartitionId>> on;
  std::map<BrokerId, std::set<PartitionId>> led;
  size_t count = 0;
  const auto gather = [&](const PartitionId& id, const Partition& partition) {
    ++count;
    for (const PartitionReplica& replica : partition.replicas) on[replica.broker].insert(id);
    led[partition.leader].insert(id);
    return absl::OkStatus();
  };
  if (auto status = ForEachPartition(image, gather); !status.ok()) return status;
  bool agree =
      count == image.partition_count() && led[kNoBroker] == image.PartitionsLedBy(kNoBroker);
  for (const auto& [id, broker] : image.brokers()) {
    agree = agree && on[id] == image.PartitionsOn(id) && led[id] == image.PartitionsLedBy(id);
  }
  return agree ? absl::OkStatus() : absl::InternalError("the image's indexes disagree with it");
}

}  // namespace

absl::Status CheckImage(const MetadataImage& image) {
  const auto check = [&](const PartitionId& id, const Partition& partition) {
    if (auto status = CheckLeader(image, id, partition); !status.ok()) return status;
    if (auto status = CheckIsr(image, id, partition); !status.ok()) return status;
    return CheckElr(image, id, partition);
  };
  if (auto status = ForEachPartition(image, check); !status.ok()) return status;
  return CheckIndexes(image);
}

absl::Status CheckEverybodyIsLed(const MetadataImage& image) {
  return ForEachPartition(image, [&](const PartitionId& id, const Partition& partition) {
    if (partition.leader != kNoBroker) return absl::OkStatus();
    const ConfigMap& configs = image.FindTopic(id.topic)->configs;
    const auto unclean = configs.find("unclean.leader.election.enable");
    const bool any = unclean != configs.end() && unclean->second == "true";
    for (const PartitionReplica& replica : partition.replicas) {
      const Broker* broker = image.FindBroker(replica.broker);
      if (!broker->fenced && !broker->stopping &&
          (any || partition.InIsr(broker->id) || partition.InElr(broker->id))) {
        return Broken(id, absl::StrCat("broker ", broker->id.value(), " could lead it"));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status MetadataHistory::Observe(const MetadataImage& committed) {
  for (const auto& [id, broker] : committed.brokers()) {
    BrokerEpoch& epoch = broker_epochs_[id];
    if (broker.epoch < epoch) {
      return absl::InternalError(absl::StrCat("the epoch of broker ", id.value(), " fell"));
    }
    epoch = broker.epoch;
  }
  if (committed.next_producer_id() < next_producer_id_) {
    return absl::InternalError("producer ids fell");
  }
  next_producer_id_ = committed.next_producer_id();
  return ForEachPartition(committed, [this](const PartitionId& id, const Partition& partition) {
    return ObservePartition(id, partition);
  });
}

absl::Status MetadataHistory::ObservePartition(const PartitionId& id, const Partition& partition) {
  const auto [seen, is_new] =
      epochs_.try_emplace(id, Epochs{partition.leader_epoch, partition.partition_epoch});
  Epochs& epochs = seen->second;
  if (partition.leader_epoch < epochs.leader || partition.partition_epoch < epochs.partition) {
    return Broken(id, "an epoch fell");
  }
  epochs = {partition.leader_epoch, partition.partition_epoch};
  if (partition.leader == kNoBroker) return absl::OkStatus();
  const auto [leader, is_first] =
      leaders_.try_emplace({id, partition.leader_epoch}, partition.leader);
  if (leader->second != partition.leader) {
    return Broken(
        id, absl::StrCat("brokers ", leader->second.value(), " and ", partition.leader.value(),
                         " both led in leader epoch ", partition.leader_epoch.value()));
  }
  return absl::OkStatus();
}

}  // namespace conclave::controller
