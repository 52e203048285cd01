#ifndef CONCLAVE_COMMON_METADATA_REPLAY_H_
#define CONCLAVE_COMMON_METADATA_REPLAY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/metadata/image.h"

namespace conclave {

// One batch's way into an image: records one by one, then Finish; RollBack when any was refused.
class MetadataReplay {
 public:
  // `image` outlives this.
  MetadataReplay(MetadataImage& image, MetadataPosition position)
      : image_(image), position_(position) {}

  absl::Status Record(const v1::MetadataRecord& record);
  // A broker as an image's proto holds it: more than a record of the log can say.
  absl::Status Restore(const v1::BrokerState& state);
  // The next of an image's deleted topics, once all its topics are in.
  absl::Status RestoreDeleted(const std::string& topic_id);

  // What must hold between brokers and partitions once all records are in; then takes the position.
  absl::Status Finish();
  // The image is as it was when this began.
  void RollBack();

  const MetadataDelta& delta() const { return delta_; }

 private:
  absl::Status Replay(const v1::ClusterRecord& record);
  absl::Status Replay(const v1::RegisterBrokerRecord& record);
  absl::Status Replay(const v1::BrokerChangeRecord& record);
  absl::Status Replay(const v1::UnregisterBrokerRecord& record);
  absl::Status Replay(const v1::TopicRecord& record);
  absl::Status Replay(const v1::RemoveTopicRecord& record);
  absl::Status Replay(const v1::PartitionRecord& record);
  absl::Status Replay(const v1::PartitionChangeRecord& record);
  absl::Status Replay(const v1::ConfigRecord& record);
  absl::Status ReplayTopicConfig(const v1::ConfigRecord& record);
  absl::Status ReplayBrokerConfig(const v1::ConfigRecord& record);
  absl::Status Replay(const v1::ProducerIdsRecord& record);

  void PutBroker(Broker broker);
  void RememberDeleted(TopicId id);
  absl::Status CheckReplicasAreRegistered(const Partition& partition) const;
  absl::Status CheckLeader(const PartitionId& id) const;

  MetadataImage& image_;
  const MetadataPosition position_;
  MetadataDelta delta_;
  // What restores the image, last step first.
  std::vector<std::function<void()>> undo_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_REPLAY_H_
