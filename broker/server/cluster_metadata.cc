#include "broker/server/cluster_metadata.h"

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::broker {
namespace {

void Describe(const Topic& topic, v1::TopicMetadata* metadata) {
  metadata->set_name(topic.name);
  metadata->set_topic_id(topic.id.ToBytes());
  for (size_t i = 0; i < topic.partitions.size(); ++i) {
    const Partition& partition = topic.partitions[i];
    v1::PartitionMetadata* described = metadata->add_partitions();
    described->set_partition(static_cast<int32_t>(i));
    described->set_leader(partition.leader.value());
    described->set_leader_epoch(partition.leader_epoch.value());
    for (const PartitionReplica& r : partition.replicas) {
      described->add_replicas(r.broker.value());
    }
    for (const BrokerId member : partition.isr) described->add_isr(member.value());
  }
}

}  // namespace

v1::GetMetadataResponse ClusterMetadata(const MetadataImage& image,
                                        const v1::GetMetadataRequest& request) {
  v1::GetMetadataResponse response;
  response.set_cluster_id(image.cluster_id().ToBytes());
  response.set_metadata_index(image.position().index.value());
  for (const auto& [id, broker] : image.brokers()) {
    if (broker.fenced) continue;
    v1::BrokerEndpoint* endpoint = response.add_brokers();
    endpoint->set_broker_id(id.value());
    endpoint->set_endpoint(broker.endpoint);
  }
  if (request.all_topics()) {
    for (const auto& [id, topic] : image.topics()) Describe(topic, response.add_topics());
    return response;
  }
  for (const std::string& name : request.topics()) {
    v1::TopicMetadata* metadata = response.add_topics();
    if (const Topic* topic = image.FindTopic(std::string_view(name))) {
      Describe(*topic, metadata);
      continue;
    }
    metadata->set_name(name);
    *metadata->mutable_error() = ErrorFromStatus(
        MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                  absl::StrCat("topic \"", name,
                               "\" does not exist, or this broker does not know "
                               "of it yet; topics are made with 'conclave topic create'")));
  }
  return response;
}

}  // namespace conclave::broker
