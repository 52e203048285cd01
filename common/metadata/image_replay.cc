#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/metadata/image.h"
#include "common/metadata/replay.h"

namespace conclave {
namespace {

absl::Status InBatch(MetadataPosition position, const std::string& where,
                     const absl::Status& status) {
  return MakeError(
      ErrorCodeOf(status),
      absl::StrCat("metadata batch at index ", position.index.value(), " (term ",
                   position.term.value(), ") refused", where, ": ", std::string(status.message())));
}

// The records of an image in an order that replay accepts.
template <class Visit>
absl::Status ForEachRecord(const v1::MetadataImageProto& proto, Visit visit) {
  v1::MetadataRecord record;
  if (!proto.cluster_id().empty()) {
    record.mutable_cluster()->set_cluster_id(proto.cluster_id());
    if (auto status = visit(record); !status.ok()) return status;
  }
  for (const v1::TopicRecord& topic : proto.topics()) {
    *record.mutable_topic() = topic;
    if (auto status = visit(record); !status.ok()) return status;
  }
  for (const v1::PartitionRecord& partition : proto.partitions()) {
    *record.mutable_partition() = partition;
    if (auto status = visit(record); !status.ok()) return status;
  }
  for (const v1::ConfigRecord& config : proto.configs()) {
    *record.mutable_config() = config;
    if (auto status = visit(record); !status.ok()) return status;
  }
  if (proto.next_producer_id() != 0) {
    record.mutable_producer_ids()->set_next_producer_id(proto.next_producer_id());
    if (auto status = visit(record); !status.ok()) return status;
  }
  return absl::OkStatus();
}

v1::ConfigRecord MakeConfigRecord(v1::ConfigResource resource, const std::string& name,
                                  const std::string& key, const std::string& value) {
  v1::ConfigRecord record;
  record.set_resource(resource);
  record.set_resource_name(name);
  record.set_key(key);
  record.set_value(value);
  return record;
}

// An image holds each partition once; replay by itself would take a second one as a change.
absl::Status CheckNoPartitionTwice(const v1::MetadataImageProto& proto,
                                   const MetadataImage& image) {
  if (static_cast<size_t>(proto.partitions_size()) == image.partition_count()) {
    return absl::OkStatus();
  }
  return MakeError(v1::CORRUPT_MESSAGE, "a partition is there twice");
}

}  // namespace

absl::Status MetadataImage::Apply(MetadataPosition position, const v1::MetadataBatch& batch,
                                  MetadataDelta* delta) {
  if (position.index <= position_.index || position.term < position_.term) {
    return InBatch(
        position, "",
        MakeError(v1::CORRUPT_MESSAGE,
                  absl::StrCat("this image stands at index ", position_.index.value(), " (term ",
                               position_.term.value(), ") and positions only rise")));
  }
  MetadataReplay replay(*this, position);
  for (int i = 0; i < batch.records_size(); ++i) {
    if (auto status = replay.Record(batch.records(i)); !status.ok()) {
      replay.RollBack();
      return InBatch(position, absl::StrCat(" at record ", i), status);
    }
  }
  if (auto status = replay.Finish(); !status.ok()) {
    replay.RollBack();
    return InBatch(position, " as a whole", status);
  }
  if (delta != nullptr) delta->Merge(replay.delta());
  return absl::OkStatus();
}

v1::MetadataImageProto MetadataImage::ToProto() const {
  v1::MetadataImageProto proto;
  if (!cluster_id_.IsNone()) proto.set_cluster_id(cluster_id_.ToBytes());
  for (const auto& [id, broker] : brokers_) *proto.add_brokers() = ToState(broker);
  for (const auto& [id, topic] : topics_) {
    v1::TopicRecord* record = proto.add_topics();
    record->set_name(topic.name);
    record->set_topic_id(id.ToBytes());
    for (size_t i = 0; i < topic.partitions.size(); ++i) {
      *proto.add_partitions() =
          ToRecord({id, PartitionIndex(static_cast<int32_t>(i))}, topic.partitions[i]);
    }
    for (const auto& [key, value] : topic.configs) {
      *proto.add_configs() = MakeConfigRecord(v1::CONFIG_RESOURCE_TOPIC, id.ToString(), key, value);
    }
  }
  for (const auto& [name, configs] : broker_configs_) {
    for (const auto& [key, value] : configs) {
      *proto.add_configs() = MakeConfigRecord(v1::CONFIG_RESOURCE_BROKER, name, key, value);
    }
  }
  proto.set_next_producer_id(next_producer_id_.value());
  for (const TopicId& id : deleted_topics_.in_order()) proto.add_deleted_topic_ids(id.ToBytes());
  return proto;
}

absl::StatusOr<MetadataImage> MetadataImage::FromProto(const v1::MetadataImageProto& proto,
                                                       MetadataPosition position) {
  MetadataImage image;
  MetadataReplay replay(image, position);
  const auto restore = [&]() -> absl::Status {
    for (const v1::BrokerState& broker : proto.brokers()) {
      if (auto status = replay.Restore(broker); !status.ok()) return status;
    }
    auto status = ForEachRecord(
        proto, [&](const v1::MetadataRecord& record) { return replay.Record(record); });
    if (!status.ok()) return status;
    if (status = CheckNoPartitionTwice(proto, image); !status.ok()) return status;
    for (const std::string& id : proto.deleted_topic_ids()) {
      if (status = replay.RestoreDeleted(id); !status.ok()) return status;
    }
    return replay.Finish();
  };
  if (auto status = restore(); !status.ok()) {
    return MakeError(ErrorCodeOf(status),
                     absl::StrCat("metadata image at index ", position.index.value(),
                                  " refused: ", std::string(status.message())));
  }
  return image;
}

}  // namespace conclave
