#include "controller/core/describe.h"

#include <map>
#include <string>

#include "common/config/topic_config.h"
#include "common/error/error.h"
#include "controller/core/unknown_topic.h"

namespace conclave::controller {
namespace {

void FillPartition(PartitionIndex index, const Partition& partition,
                   v1::PartitionDescription& out) {
  const v1::PartitionRecord record = ToRecord({TopicId(), index}, partition);
  out.set_partition(record.partition());
  out.set_leader(record.leader());
  out.set_leader_epoch(record.leader_epoch());
  out.set_partition_epoch(record.partition_epoch());
  *out.mutable_replicas() = record.replicas();
  *out.mutable_isr() = record.isr();
  *out.mutable_elr() = record.elr();
  out.set_note(record.note());
  *out.mutable_stopped_uncleanly() = record.stopped_uncleanly();
  out.set_flush_policy(record.flush_policy());
}

void FillTopic(const Topic& topic, v1::TopicDescription& out) {
  out.set_name(topic.name);
  out.set_topic_id(topic.id.ToBytes());
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    FillPartition(PartitionIndex(static_cast<int32_t>(i)), topic.partitions[i],
                  *out.add_partitions());
  }
  const size_t replicas = topic.partitions.empty() ? 1 : topic.partitions.front().replicas.size();
  for (const EffectiveSetting& setting : DescribeTopicConfig(topic.configs, replicas)) {
    v1::ConfigEntry& entry = *out.add_configs();
    entry.set_key(setting.definition->key);
    entry.set_value(setting.value);
    entry.set_origin(setting.origin == SettingOrigin::kTopic ? v1::CONFIG_ORIGIN_TOPIC
                                                             : v1::CONFIG_ORIGIN_DEFAULT);
    entry.set_default_value(setting.default_value);
    entry.set_documentation(setting.definition->documentation);
  }
}

v1::BrokerLifecycle LifecycleOf(const Broker& broker) {
  if (broker.fenced) return v1::BROKER_LIFECYCLE_FENCED;
  return broker.stopping ? v1::BROKER_LIFECYCLE_STOPPING : v1::BROKER_LIFECYCLE_ACTIVE;
}

}  // namespace

v1::DescribeTopicsResponse DescribeTopics(const MetadataImage& image,
                                          const v1::DescribeTopicsRequest& request) {
  v1::DescribeTopicsResponse response;
  if (request.names().empty()) {
    std::map<std::string, const Topic*> by_name;
    for (const auto& [id, topic] : image.topics()) by_name.emplace(topic.name, &topic);
    for (const auto& [name, topic] : by_name) FillTopic(*topic, *response.add_topics());
  }
  for (const std::string& name : request.names()) {
    v1::TopicDescription& out = *response.add_topics();
    if (const Topic* topic = image.FindTopic(name); topic != nullptr) {
      FillTopic(*topic, out);
      continue;
    }
    out.set_name(name);
    *out.mutable_error() = ErrorFromStatus(UnknownTopic(name));
  }
  return response;
}

v1::DescribeClusterResponse DescribeCluster(const MetadataImage& image) {
  v1::DescribeClusterResponse response;
  response.set_cluster_id(image.cluster_id().ToBytes());
  for (const auto& [id, broker] : image.brokers()) {
    v1::BrokerDescription& out = *response.add_brokers();
    out.set_broker_id(id.value());
    out.set_endpoint(broker.endpoint);
    out.set_state(LifecycleOf(broker));
    out.set_broker_epoch(broker.epoch.value());
    out.set_leads(static_cast<int32_t>(image.PartitionsLedBy(id).size()));
    out.set_replicas(static_cast<int32_t>(image.PartitionsOn(id).size()));
    out.set_rack(broker.rack);
    for (DirectoryId directory : broker.directories) out.add_directory_ids(directory.ToBytes());
  }
  response.mutable_position()->set_index(image.position().index.value());
  response.mutable_position()->set_term(image.position().term.value());
  return response;
}

}  // namespace conclave::controller
