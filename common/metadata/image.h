#ifndef CONCLAVE_COMMON_METADATA_IMAGE_H_
#define CONCLAVE_COMMON_METADATA_IMAGE_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metadata/broker.h"
#include "common/metadata/deleted_topics.h"
#include "common/metadata/delta.h"
#include "common/metadata/partition.h"
#include "common/metadata/position.h"
#include "common/metadata/topic.h"
#include "common/types/ids.h"
#include "conclave/v1/metadata_records.pb.h"

namespace conclave {

// What the metadata log says up to a position. Changed by replay of batches and by nothing else, on
// controllers and brokers alike.
//
// After every batch: each partition's leader is a registered, unfenced broker in its ISR; replicas
// are on registered brokers; partitions of a topic are numbered without gaps; no two topics collide
// by name, and none has the id of a deleted one; see also Partition, Broker. A value type; copying
// is linear in the cluster.
class MetadataImage {
 public:
  // Replays `batch`, which stands at `position`. A batch that is malformed, or contradicts what is
  // here, is refused as a whole with CORRUPT_MESSAGE (UNSUPPORTED_VERSION for a kind of record that
  // this version does not know), and nothing of it is applied. Positions only rise.
  //
  // On success what changed is added to `*delta`, if given. Costs what the batch touches.
  absl::Status Apply(MetadataPosition position, const v1::MetadataBatch& batch,
                     MetadataDelta* delta = nullptr);

  // Equal images have equal protos. The position is not part of it.
  v1::MetadataImageProto ToProto() const;
  // Checks whatever Apply would have.
  static absl::StatusOr<MetadataImage> FromProto(const v1::MetadataImageProto& proto,
                                                 MetadataPosition position);

  // Of the last batch applied; index 0: none yet.
  MetadataPosition position() const { return position_; }
  // None until the log's first batch.
  ClusterId cluster_id() const { return cluster_id_; }
  // Ids below it have been handed out.
  ProducerId next_producer_id() const { return next_producer_id_; }

  const std::map<BrokerId, Broker>& brokers() const { return brokers_; }
  const std::map<TopicId, Topic>& topics() const { return topics_; }
  // By resource name: a broker's id in decimal, or "" for the default of all brokers.
  const std::map<std::string, ConfigMap>& broker_configs() const { return broker_configs_; }
  // Their ids are not given again.
  const DeletedTopics& deleted_topics() const { return deleted_topics_; }
  size_t partition_count() const { return partition_count_; }

  // nullptr: there is none. Valid until the image changes.
  const Broker* FindBroker(BrokerId id) const;
  const Topic* FindTopic(TopicId id) const;
  const Topic* FindTopic(std::string_view name) const;
  // The topic of this name, or of another that collides with it (see CanonicalTopicName).
  const Topic* FindColliding(std::string_view name) const;
  const Partition* FindPartition(const PartitionId& id) const;

  // Partitions with a replica on `broker`, in or out of the ISR.
  const std::set<PartitionId>& PartitionsOn(BrokerId broker) const;
  // Partitions that `broker` leads; of kNoBroker those without a leader.
  const std::set<PartitionId>& PartitionsLedBy(BrokerId broker) const;

  friend bool operator==(const MetadataImage& a, const MetadataImage& b);

 private:
  friend class MetadataReplay;

  // These keep the indexes in step with the values. They check nothing.
  void PutBroker(Broker broker);
  void RemoveBroker(BrokerId id);
  void PutTopic(Topic topic);
  Topic TakeTopic(TopicId id);
  // `id.index` is at most the number of partitions the topic has; at that number it appends.
  void PutPartition(const PartitionId& id, Partition partition);
  // The topic's last one.
  void RemoveLastPartition(TopicId id);
  void Index(const PartitionId& id, const Partition& partition);
  void Unindex(const PartitionId& id, const Partition& partition);

  MetadataPosition position_;
  ClusterId cluster_id_;
  ProducerId next_producer_id_;
  std::map<BrokerId, Broker> brokers_;
  std::map<TopicId, Topic> topics_;
  DeletedTopics deleted_topics_;
  std::map<std::string, ConfigMap> broker_configs_;

  // Derived from the above.
  std::map<std::string, TopicId> topic_by_canonical_name_;
  std::map<BrokerId, std::set<PartitionId>> partitions_on_;
  std::map<BrokerId, std::set<PartitionId>> partitions_led_by_;
  size_t partition_count_ = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_IMAGE_H_
