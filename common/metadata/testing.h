#ifndef CONCLAVE_COMMON_METADATA_TESTING_H_
#define CONCLAVE_COMMON_METADATA_TESTING_H_

#include <string>
#include <vector>

#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "conclave/v1/metadata_records.pb.h"

// Records in one line each, for tests.
namespace conclave::metadata_testing {

inline TopicId TopicNumber(uint64_t n) { return TopicId::FromRandom(1, n); }
// Each broker's only directory, unless `generation` tells them apart.
inline DirectoryId DirectoryOf(BrokerId broker, uint64_t generation = 0) {
  return DirectoryId::FromRandom(2 + generation, static_cast<uint64_t>(broker.value()) + 1);
}

inline v1::RegisterBrokerRecord Registration(BrokerId broker, uint64_t incarnation = 1) {
  v1::RegisterBrokerRecord record;
  record.set_broker_id(broker.value());
  record.set_incarnation_id(
      IncarnationId::FromRandom(incarnation, static_cast<uint64_t>(broker.value())).ToBytes());
  record.set_endpoint("host" + ToString(broker) + ":7400");
  record.add_directory_ids(DirectoryOf(broker).ToBytes());
  return record;
}

// A partition on `brokers`, all in the ISR, led by the first.
inline Partition PartitionOn(const std::vector<int>& brokers) {
  Partition partition;
  for (int id : brokers) {
    const BrokerId broker(id);
    partition.replicas.push_back({broker, DirectoryOf(broker)});
    partition.isr.push_back(broker);
  }
  if (!brokers.empty()) partition.leader = BrokerId(brokers.front());
  return partition;
}

// Records gathered by chained calls.
class BatchOf {
 public:
  BatchOf& Cluster(ClusterId id) {
    Add().mutable_cluster()->set_cluster_id(id.ToBytes());
    return *this;
  }
  BatchOf& Register(int broker, uint64_t incarnation = 1) {
    *Add().mutable_register_broker() = Registration(BrokerId(broker), incarnation);
    return *this;
  }
  BatchOf& Fenced(int broker, int64_t epoch, bool fenced) {
    v1::BrokerChangeRecord& record = *Add().mutable_broker_change();
    record.set_broker_id(broker);
    record.set_broker_epoch(epoch);
    record.set_fenced(fenced);
    return *this;
  }
  BatchOf& Topic(TopicId id, const std::string& name) {
    Add().mutable_topic()->set_topic_id(id.ToBytes());
    batch_.mutable_records()->rbegin()->mutable_topic()->set_name(name);
    return *this;
  }
  BatchOf& RemoveTopic(TopicId id) {
    Add().mutable_remove_topic()->set_topic_id(id.ToBytes());
    return *this;
  }
  BatchOf& Whole(TopicId topic, int index, const Partition& partition) {
    *Add().mutable_partition() = ToRecord({topic, PartitionIndex(index)}, partition);
    return *this;
  }
  BatchOf& Change(TopicId topic, int index, const Partition& partition) {
    *Add().mutable_partition_change() = ToChangeRecord({topic, PartitionIndex(index)}, partition);
    return *this;
  }
  BatchOf& TopicConfig(TopicId topic, const std::string& key, const std::string& value) {
    v1::ConfigRecord& record = *Add().mutable_config();
    record.set_resource(v1::CONFIG_RESOURCE_TOPIC);
    record.set_resource_name(topic.ToString());
    record.set_key(key);
    record.set_value(value);
    return *this;
  }
  BatchOf& ProducerIds(int64_t next) {
    Add().mutable_producer_ids()->set_next_producer_id(next);
    return *this;
  }

  v1::MetadataRecord& Add() { return *batch_.add_records(); }
  const v1::MetadataBatch& batch() const { return batch_; }

 private:
  v1::MetadataBatch batch_;
};

}  // namespace conclave::metadata_testing

#endif  // CONCLAVE_COMMON_METADATA_TESTING_H_
