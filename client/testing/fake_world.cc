#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "client/testing/fake_broker.h"
#include "common/error/error.h"

namespace conclave::client_testing {

void FakeWorld::CreateTopic(const std::string& name, int partitions) {
  CHECK(!brokers.empty());
  Topic topic;
  topic.id = TopicId::FromRandom(++metadata_index, 7);
  auto broker = brokers.begin();
  for (int i = 0; i < partitions; ++i) {
    auto partition = std::make_unique<FakePartition>();
    partition->leader = BrokerId(broker->first);
    topic.partitions.push_back(std::move(partition));
    if (++broker == brokers.end()) broker = brokers.begin();
  }
  topics[name] = std::move(topic);
  Wake();
}

void FakeWorld::DeleteTopic(const std::string& name) {
  topics.erase(name);
  ++metadata_index;
  Wake();
}

FakePartition& FakeWorld::At(const std::string& topic, int partition) {
  FakePartition* found = Find({topic, PartitionIndex(partition)});
  CHECK(found != nullptr) << topic << "-" << partition;
  return *found;
}

FakePartition* FakeWorld::Find(const TopicPartition& partition) {
  const auto topic = topics.find(partition.topic);
  if (topic == topics.end()) return nullptr;
  const auto index = static_cast<size_t>(partition.partition.value());
  return index < topic->second.partitions.size() ? topic->second.partitions[index].get() : nullptr;
}

void FakeWorld::MoveLeader(const std::string& topic, int partition, int broker) {
  FakePartition& moved = At(topic, partition);
  moved.leader = BrokerId(broker);
  ++moved.leader_epoch;
  ++metadata_index;
  Wake();
}

void FakeWorld::Wake() {
  for (const auto& [id, broker] : brokers) broker->Wake();
}

v1::GetMetadataResponse FakeWorld::Metadata(const v1::GetMetadataRequest& request) const {
  v1::GetMetadataResponse response;
  response.set_cluster_id(cluster_id);
  response.set_metadata_index(metadata_index);
  for (const auto& [id, endpoint] : endpoints) {
    v1::BrokerEndpoint* broker = response.add_brokers();
    broker->set_broker_id(id);
    broker->set_endpoint(endpoint);
  }
  for (const std::string& name : request.topics()) {
    v1::TopicMetadata* metadata = response.add_topics();
    metadata->set_name(name);
    const auto found = topics.find(name);
    if (found == topics.end()) {
      *metadata->mutable_error() = ErrorFromStatus(
          MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION, absl::StrCat("no topic \"", name, "\"")));
      continue;
    }
    metadata->set_topic_id(found->second.id.ToBytes());
    int index = 0;
    for (const auto& partition : found->second.partitions) {
      v1::PartitionMetadata* p = metadata->add_partitions();
      p->set_partition(index++);
      p->set_leader(partition->leader.value());
      p->set_leader_epoch(partition->leader_epoch.value());
    }
  }
  return response;
}

v1::Error FakeWorld::NotLeader(const FakePartition& partition) const {
  v1::Error error;
  error.set_code(v1::NOT_LEADER_OR_FOLLOWER);
  error.set_message("another broker leads the partition");
  const auto endpoint = endpoints.find(partition.leader.value());
  if (hints && endpoint != endpoints.end()) {
    error.mutable_hint()->set_node_id(partition.leader.value());
    error.mutable_hint()->set_endpoint(endpoint->second);
    error.mutable_hint()->set_epoch(partition.leader_epoch.value());
  }
  return error;
}

}  // namespace conclave::client_testing
