#include "common/metadata/image.h"

#include <utility>

#include "common/metadata/topic_name.h"

namespace conclave {
namespace {

const std::set<PartitionId>& FindSet(const std::map<BrokerId, std::set<PartitionId>>& sets,
                                     BrokerId broker) {
  static const auto* const kEmpty = new std::set<PartitionId>();
  const auto found = sets.find(broker);
  return found == sets.end() ? *kEmpty : found->second;
}

// Leaves no empty set behind, so that a broker that is gone costs nothing.
void EraseFrom(std::map<BrokerId, std::set<PartitionId>>& sets, BrokerId broker,
               const PartitionId& id) {
  const auto found = sets.find(broker);
  if (found == sets.end()) return;
  found->second.erase(id);
  if (found->second.empty()) sets.erase(found);
}

}  // namespace

const Broker* MetadataImage::FindBroker(BrokerId id) const {
  const auto found = brokers_.find(id);
  return found == brokers_.end() ? nullptr : &found->second;
}

const Topic* MetadataImage::FindTopic(TopicId id) const {
  const auto found = topics_.find(id);
  return found == topics_.end() ? nullptr : &found->second;
}

const Topic* MetadataImage::FindTopic(std::string_view name) const {
  const Topic* topic = FindColliding(name);
  return topic != nullptr && topic->name == name ? topic : nullptr;
}

const Topic* MetadataImage::FindColliding(std::string_view name) const {
  const auto found = topic_by_canonical_name_.find(CanonicalTopicName(name));
  return found == topic_by_canonical_name_.end() ? nullptr : FindTopic(found->second);
}

const Partition* MetadataImage::FindPartition(const PartitionId& id) const {
  const Topic* topic = FindTopic(id.topic);
  if (topic == nullptr || id.index < PartitionIndex(0)) return nullptr;
  const auto index = static_cast<size_t>(id.index.value());
  return index < topic->partitions.size() ? &topic->partitions[index] : nullptr;
}

const std::set<PartitionId>& MetadataImage::PartitionsOn(BrokerId broker) const {
  return FindSet(partitions_on_, broker);
}

const std::set<PartitionId>& MetadataImage::PartitionsLedBy(BrokerId broker) const {
  return FindSet(partitions_led_by_, broker);
}

bool operator==(const MetadataImage& a, const MetadataImage& b) {
  return a.position_ == b.position_ && a.cluster_id_ == b.cluster_id_ &&
         a.next_producer_id_ == b.next_producer_id_ && a.brokers_ == b.brokers_ &&
         a.topics_ == b.topics_ && a.deleted_topics_ == b.deleted_topics_ &&
         a.broker_configs_ == b.broker_configs_;
}

void MetadataImage::PutBroker(Broker broker) {
  const BrokerId id = broker.id;
  brokers_.insert_or_assign(id, std::move(broker));
}

void MetadataImage::RemoveBroker(BrokerId id) { brokers_.erase(id); }

void MetadataImage::PutTopic(Topic topic) {
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    Index({topic.id, PartitionIndex(static_cast<int32_t>(i))}, topic.partitions[i]);
  }
  partition_count_ += topic.partitions.size();
  topic_by_canonical_name_.emplace(CanonicalTopicName(topic.name), topic.id);
  const TopicId id = topic.id;
  topics_.emplace(id, std::move(topic));
}

Topic MetadataImage::TakeTopic(TopicId id) {
  Topic topic = std::move(topics_.extract(id).mapped());
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    Unindex({id, PartitionIndex(static_cast<int32_t>(i))}, topic.partitions[i]);
  }
  partition_count_ -= topic.partitions.size();
  topic_by_canonical_name_.erase(CanonicalTopicName(topic.name));
  return topic;
}

void MetadataImage::PutPartition(const PartitionId& id, Partition partition) {
  std::vector<Partition>& partitions = topics_.at(id.topic).partitions;
  const auto index = static_cast<size_t>(id.index.value());
  if (index == partitions.size()) {
    partitions.emplace_back();
    ++partition_count_;
  } else {
    Unindex(id, partitions[index]);
  }
  Index(id, partition);
  partitions[index] = std::move(partition);
}

void MetadataImage::RemoveLastPartition(TopicId id) {
  std::vector<Partition>& partitions = topics_.at(id).partitions;
  Unindex({id, PartitionIndex(static_cast<int32_t>(partitions.size()) - 1)}, partitions.back());
  partitions.pop_back();
  --partition_count_;
}

void MetadataImage::Index(const PartitionId& id, const Partition& partition) {
  for (const PartitionReplica& replica : partition.replicas) {
    partitions_on_[replica.broker].insert(id);
  }
  partitions_led_by_[partition.leader].insert(id);
}

void MetadataImage::Unindex(const PartitionId& id, const Partition& partition) {
  for (const PartitionReplica& replica : partition.replicas) {
    EraseFrom(partitions_on_, replica.broker, id);
  }
  EraseFrom(partitions_led_by_, partition.leader, id);
}

}  // namespace conclave
