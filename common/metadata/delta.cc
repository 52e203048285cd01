#include "common/metadata/delta.h"

#include <utility>

#include "common/metadata/image.h"

namespace conclave {
namespace {

// Calls `differs` with each key whose value is in one map alone, or unequal.
template <class Map, class Function>
void ForEachDifference(const Map& before, const Map& after, Function differs) {
  for (const auto& [key, value] : before) {
    const auto found = after.find(key);
    if (found == after.end() || !(found->second == value)) differs(key);
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) differs(key);
  }
}

void CompareTopics(const Topic* before, const Topic& after, MetadataDelta& delta) {
  for (size_t i = 0; i < after.partitions.size(); ++i) {
    if (before != nullptr && i < before->partitions.size() &&
        before->partitions[i] == after.partitions[i]) {
      continue;
    }
    delta.partitions.insert({after.id, PartitionIndex(static_cast<int32_t>(i))});
  }
  if (before == nullptr ? !after.configs.empty() : before->configs != after.configs) {
    delta.topic_configs.insert(after.id);
  }
}

}  // namespace

bool MetadataDelta::empty() const { return *this == MetadataDelta(); }

void MetadataDelta::TopicCreated(TopicId id, std::string name) {
  created_topics.emplace(id, std::move(name));
}

void MetadataDelta::TopicDeleted(TopicId id, std::string name) {
  partitions.erase(partitions.lower_bound({id, PartitionIndex(0)}),
                   partitions.upper_bound({id, PartitionIndex(INT32_MAX)}));
  topic_configs.erase(id);
  if (created_topics.erase(id) == 0) deleted_topics.emplace(id, std::move(name));
}

void MetadataDelta::Merge(const MetadataDelta& later) {
  cluster_changed |= later.cluster_changed;
  producer_ids_changed |= later.producer_ids_changed;
  brokers.insert(later.brokers.begin(), later.brokers.end());
  broker_configs.insert(later.broker_configs.begin(), later.broker_configs.end());
  for (const auto& [id, name] : later.deleted_topics) TopicDeleted(id, name);
  for (const auto& [id, name] : later.created_topics) TopicCreated(id, name);
  partitions.insert(later.partitions.begin(), later.partitions.end());
  topic_configs.insert(later.topic_configs.begin(), later.topic_configs.end());
}

MetadataDelta DeltaBetween(const MetadataImage& before, const MetadataImage& after) {
  MetadataDelta delta;
  delta.cluster_changed = before.cluster_id() != after.cluster_id();
  delta.producer_ids_changed = before.next_producer_id() != after.next_producer_id();
  ForEachDifference(before.brokers(), after.brokers(),
                    [&](BrokerId id) { delta.brokers.insert(id); });
  ForEachDifference(before.broker_configs(), after.broker_configs(),
                    [&](const std::string& name) { delta.broker_configs.insert(name); });
  for (const auto& [id, topic] : before.topics()) {
    if (after.FindTopic(id) == nullptr) delta.TopicDeleted(id, topic.name);
  }
  for (const auto& [id, topic] : after.topics()) {
    const Topic* old = before.FindTopic(id);
    if (old == nullptr) delta.TopicCreated(id, topic.name);
    CompareTopics(old, topic, delta);
  }
  return delta;
}

}  // namespace conclave
