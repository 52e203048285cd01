#include "common/metadata/replay.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/metadata/topic_name.h"

namespace conclave {
namespace {

absl::Status Refused(std::string why) { return MakeError(v1::CORRUPT_MESSAGE, std::move(why)); }

absl::Status UnknownTopic(const std::string& topic_id_bytes) {
  const auto id = TopicId::FromBytes(topic_id_bytes);
  return Refused(
      id ? absl::StrCat("topic ", id->ToString(), " does not exist")
         : absl::StrCat("a topic id has ", topic_id_bytes.size(), " bytes instead of 16"));
}

// Sets or removes; what was there before is returned for the way back.
std::optional<std::string> SetConfig(ConfigMap& configs, const std::string& key,
                                     std::optional<std::string> value) {
  std::optional<std::string> before;
  const auto found = configs.find(key);
  if (found != configs.end()) before = std::move(found->second);
  if (value) {
    configs.insert_or_assign(key, *std::move(value));
  } else if (found != configs.end()) {
    configs.erase(found);
  }
  return before;
}

std::optional<std::string> ValueOf(const v1::ConfigRecord& record) {
  return record.has_value() ? std::optional<std::string>(record.value()) : std::nullopt;
}

}  // namespace

absl::Status MetadataReplay::Record(const v1::MetadataRecord& record) {
  switch (record.record_case()) {
    case v1::MetadataRecord::kCluster:
      return Replay(record.cluster());
    case v1::MetadataRecord::kRegisterBroker:
      return Replay(record.register_broker());
    case v1::MetadataRecord::kBrokerChange:
      return Replay(record.broker_change());
    case v1::MetadataRecord::kUnregisterBroker:
      return Replay(record.unregister_broker());
    case v1::MetadataRecord::kTopic:
      return Replay(record.topic());
    case v1::MetadataRecord::kRemoveTopic:
      return Replay(record.remove_topic());
    case v1::MetadataRecord::kPartition:
      return Replay(record.partition());
    case v1::MetadataRecord::kPartitionChange:
      return Replay(record.partition_change());
    case v1::MetadataRecord::kConfig:
      return Replay(record.config());
    case v1::MetadataRecord::kProducerIds:
      return Replay(record.producer_ids());
    case v1::MetadataRecord::RECORD_NOT_SET:
      break;
  }
  return MakeError(v1::UNSUPPORTED_VERSION,
                   "a record of a kind that this version does not know; a newer version wrote it, "
                   "upgrade this node");
}

absl::Status MetadataReplay::Restore(const v1::BrokerState& state) {
  auto broker = BrokerFromState(state);
  if (!broker.ok()) return broker.status();
  if (image_.FindBroker(broker->id) != nullptr) {
    return Refused(absl::StrCat("broker ", broker->id.value(), " is registered twice"));
  }
  PutBroker(*std::move(broker));
  return absl::OkStatus();
}

absl::Status MetadataReplay::RestoreDeleted(const std::string& topic_id) {
  const auto id = TopicId::FromBytes(topic_id);
  if (!id || id->IsNone()) return Refused("a deleted topic's id is no id");
  if (image_.FindTopic(*id) != nullptr || image_.deleted_topics_.Contains(*id)) {
    return Refused(absl::StrCat("deleted topic ", id->ToString(), " is there a second time"));
  }
  RememberDeleted(*id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Finish() {
  for (BrokerId id : delta_.brokers) {
    const Broker* broker = image_.FindBroker(id);
    if (broker != nullptr && !broker->fenced) continue;
    const auto& led = image_.PartitionsLedBy(id);
    if (!led.empty()) {
      return Refused(absl::StrCat("broker ", id.value(), " is ",
                                  broker == nullptr ? "unregistered" : "fenced",
                                  " and would still lead ", led.size(), " partitions, one of them ",
                                  ToString(*led.begin())));
    }
  }
  for (const PartitionId& id : delta_.partitions) {
    if (auto status = CheckLeader(id); !status.ok()) return status;
  }
  undo_.push_back([this, before = image_.position_] { image_.position_ = before; });
  image_.position_ = position_;
  return absl::OkStatus();
}

void MetadataReplay::RollBack() {
  for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) (*step)();
  undo_.clear();
  delta_ = MetadataDelta();
}

absl::Status MetadataReplay::Replay(const v1::ClusterRecord& record) {
  const auto id = ClusterId::FromBytes(record.cluster_id());
  if (!id || id->IsNone()) return Refused("the cluster id is no id");
  if (!image_.cluster_id_.IsNone() && image_.cluster_id_ != *id) {
    return Refused(absl::StrCat("cluster id ", id->ToString(), " would replace ",
                                image_.cluster_id_.ToString()));
  }
  undo_.push_back([this, before = image_.cluster_id_] { image_.cluster_id_ = before; });
  image_.cluster_id_ = *id;
  delta_.cluster_changed = true;
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::RegisterBrokerRecord& record) {
  auto broker =
      BrokerFromRegistration(record, BrokerEpoch(static_cast<int64_t>(position_.index.value())));
  if (!broker.ok()) return broker.status();
  const Broker* old = image_.FindBroker(broker->id);
  if (old != nullptr && old->epoch >= broker->epoch) {
    return Refused(absl::StrCat("broker ", broker->id.value(), " is registered under epoch ",
                                old->epoch.value(), ", which ", broker->epoch.value(),
                                " does not exceed"));
  }
  PutBroker(*std::move(broker));
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::BrokerChangeRecord& record) {
  const Broker* found = image_.FindBroker(BrokerId(record.broker_id()));
  if (found == nullptr || found->epoch != BrokerEpoch(record.broker_epoch())) {
    return Refused(absl::StrCat("a change of broker ", record.broker_id(), " under epoch ",
                                record.broker_epoch(), ", which is ",
                                found == nullptr ? "not registered" : "not its epoch"));
  }
  Broker changed = *found;
  if (record.has_fenced()) changed.fenced = record.fenced();
  if (record.has_stopping()) changed.stopping = record.stopping();
  PutBroker(std::move(changed));
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::UnregisterBrokerRecord& record) {
  const BrokerId id(record.broker_id());
  const Broker* found = image_.FindBroker(id);
  if (found == nullptr || found->epoch != BrokerEpoch(record.broker_epoch())) {
    return Refused(absl::StrCat("broker ", id.value(), " to unregister is not there under epoch ",
                                record.broker_epoch()));
  }
  if (const auto& held = image_.PartitionsOn(id); !held.empty()) {
    return Refused(absl::StrCat("broker ", id.value(), " to unregister holds ", held.size(),
                                " replicas, one of ", ToString(*held.begin())));
  }
  undo_.push_back([this, before = *found] { image_.PutBroker(before); });
  image_.RemoveBroker(id);
  delta_.brokers.insert(id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::TopicRecord& record) {
  const auto id = TopicId::FromBytes(record.topic_id());
  if (!id || id->IsNone()) return Refused("a topic's id is no id");
  if (auto status = CheckTopicName(record.name()); !status.ok()) {
    return Refused(std::string(status.message()));
  }
  if (image_.FindTopic(*id) != nullptr) {
    return Refused(absl::StrCat("topic id ", id->ToString(), " is taken"));
  }
  if (image_.deleted_topics_.Contains(*id)) {
    return Refused(absl::StrCat("topic id ", id->ToString(), " is that of a deleted topic"));
  }
  if (const Topic* other = image_.FindColliding(record.name()); other != nullptr) {
    return Refused(absl::StrCat("topic ", record.name(), " collides with topic ", other->name));
  }
  undo_.push_back([this, id = *id] { image_.TakeTopic(id); });
  image_.PutTopic(Topic{*id, record.name(), {}, {}});
  delta_.TopicCreated(*id, record.name());
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::RemoveTopicRecord& record) {
  const auto id = TopicId::FromBytes(record.topic_id());
  if (!id || image_.FindTopic(*id) == nullptr) return UnknownTopic(record.topic_id());
  auto topic = std::make_shared<Topic>(image_.TakeTopic(*id));
  delta_.TopicDeleted(*id, topic->name);
  undo_.push_back([this, topic] { image_.PutTopic(std::move(*topic)); });
  RememberDeleted(*id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::PartitionRecord& record) {
  const auto topic_id = TopicId::FromBytes(record.topic_id());
  const Topic* topic = topic_id ? image_.FindTopic(*topic_id) : nullptr;
  if (topic == nullptr) return UnknownTopic(record.topic_id());
  const PartitionId id{*topic_id, PartitionIndex(record.partition())};
  const auto count = static_cast<int64_t>(topic->partitions.size());
  if (record.partition() < 0 || record.partition() > count) {
    return Refused(absl::StrCat("partition ", record.partition(), " of topic ", topic->name,
                                " would leave a gap after ", count));
  }
  auto partition = PartitionFromRecord(record);
  if (!partition.ok()) return partition.status();
  if (auto status = CheckPartition(*partition); !status.ok()) return status;
  if (auto status = CheckReplicasAreRegistered(*partition); !status.ok()) return status;
  if (record.partition() == count) {
    undo_.push_back([this, id] { image_.RemoveLastPartition(id.topic); });
  } else {
    const Partition& before = topic->partitions[record.partition()];
    if (auto status = CheckSuccession(before, *partition); !status.ok()) return status;
    undo_.push_back([this, id, before] { image_.PutPartition(id, before); });
  }
  image_.PutPartition(id, *std::move(partition));
  delta_.partitions.insert(id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::PartitionChangeRecord& record) {
  const auto topic_id = TopicId::FromBytes(record.topic_id());
  if (!topic_id) return UnknownTopic(record.topic_id());
  const PartitionId id{*topic_id, PartitionIndex(record.partition())};
  const Partition* before = image_.FindPartition(id);
  if (before == nullptr) {
    return Refused(absl::StrCat("partition ", ToString(id), " does not exist"));
  }
  Partition after = PartitionAfter(*before, record);
  if (auto status = CheckPartition(after); !status.ok()) return status;
  if (auto status = CheckSuccession(*before, after); !status.ok()) return status;
  undo_.push_back([this, id, before = *before] { image_.PutPartition(id, before); });
  image_.PutPartition(id, std::move(after));
  delta_.partitions.insert(id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::ConfigRecord& record) {
  if (record.key().empty()) return Refused("a setting has no key");
  switch (record.resource()) {
    case v1::CONFIG_RESOURCE_TOPIC:
      return ReplayTopicConfig(record);
    case v1::CONFIG_RESOURCE_BROKER:
      return ReplayBrokerConfig(record);
    default:
      return MakeError(
          v1::UNSUPPORTED_VERSION,
          absl::StrCat("a setting of a kind of resource (", static_cast<int>(record.resource()),
                       ") that this version does not know; upgrade this node"));
  }
}

absl::Status MetadataReplay::ReplayTopicConfig(const v1::ConfigRecord& record) {
  const auto id = TopicId::Parse(record.resource_name());
  const auto found = id ? image_.topics_.find(*id) : image_.topics_.end();
  if (found == image_.topics_.end()) {
    return Refused(
        absl::StrCat("a setting of topic ", record.resource_name(), ", which does not exist"));
  }
  const std::string& key = record.key();
  auto before = SetConfig(found->second.configs, key, ValueOf(record));
  undo_.push_back([this, id = *id, key, before = std::move(before)] {
    SetConfig(image_.topics_.at(id).configs, key, before);
  });
  delta_.topic_configs.insert(*id);
  return absl::OkStatus();
}

absl::Status MetadataReplay::ReplayBrokerConfig(const v1::ConfigRecord& record) {
  const std::string& name = record.resource_name();
  const std::string& key = record.key();
  const auto set = [this](const std::string& name, const std::string& key,
                          std::optional<std::string> value) {
    ConfigMap& configs = image_.broker_configs_[name];
    auto before = SetConfig(configs, key, std::move(value));
    if (configs.empty()) image_.broker_configs_.erase(name);
    return before;
  };
  auto before = set(name, key, ValueOf(record));
  undo_.push_back([set, name, key, before = std::move(before)] { set(name, key, before); });
  delta_.broker_configs.insert(name);
  return absl::OkStatus();
}

absl::Status MetadataReplay::Replay(const v1::ProducerIdsRecord& record) {
  const ProducerId next(record.next_producer_id());
  if (next <= image_.next_producer_id_) {
    return Refused(absl::StrCat("next producer id ", next.value(), " does not rise above ",
                                image_.next_producer_id_.value()));
  }
  undo_.push_back([this, before = image_.next_producer_id_] { image_.next_producer_id_ = before; });
  image_.next_producer_id_ = next;
  delta_.producer_ids_changed = true;
  return absl::OkStatus();
}

void MetadataReplay::PutBroker(Broker broker) {
  const BrokerId id = broker.id;
  if (const Broker* old = image_.FindBroker(id); old != nullptr) {
    undo_.push_back([this, before = *old] { image_.PutBroker(before); });
  } else {
    undo_.push_back([this, id] { image_.RemoveBroker(id); });
  }
  image_.PutBroker(std::move(broker));
  delta_.brokers.insert(id);
}

void MetadataReplay::RememberDeleted(TopicId id) {
  const auto forgotten = image_.deleted_topics_.Add(id);
  undo_.push_back([this, forgotten] { image_.deleted_topics_.TakeBack(forgotten); });
}

absl::Status MetadataReplay::CheckReplicasAreRegistered(const Partition& partition) const {
  for (const PartitionReplica& replica : partition.replicas) {
    if (image_.FindBroker(replica.broker) == nullptr) {
      return Refused(absl::StrCat("a replica is on broker ", replica.broker.value(),
                                  ", which is not registered"));
    }
  }
  return absl::OkStatus();
}

absl::Status MetadataReplay::CheckLeader(const PartitionId& id) const {
  const BrokerId leader = image_.FindPartition(id)->leader;
  if (leader == kNoBroker) return absl::OkStatus();
  const Broker* broker = image_.FindBroker(leader);
  if (broker == nullptr || broker->fenced) {
    return Refused(absl::StrCat("leader ", leader.value(), " of partition ", ToString(id), " is ",
                                broker == nullptr ? "not registered" : "fenced"));
  }
  return absl::OkStatus();
}

}  // namespace conclave
