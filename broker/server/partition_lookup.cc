#include "broker/server/partition_lookup.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::broker {
namespace {

absl::Status UnknownTopic(const std::string& name) {
  return MakeError(
      v1::UNKNOWN_TOPIC_OR_PARTITION,
      absl::StrCat("topic \"", name,
                   "\" does not exist, or this broker does not know of it yet; topics are made "
                   "with 'conclave topic create'"));
}

absl::StatusOr<const Topic*> ResolveTopic(const MetadataImage& image, const PartitionName& name) {
  if (name.topic_id.empty()) {
    if (name.topic.empty()) {
      return MakeError(v1::INVALID_REQUEST, "a partition is named without its topic");
    }
    const Topic* topic = image.FindTopic(std::string_view(name.topic));
    if (topic == nullptr) return UnknownTopic(name.topic);
    return topic;
  }
  const auto id = TopicId::FromBytes(name.topic_id);
  if (!id) return MakeError(v1::INVALID_REQUEST, "a topic id has 16 bytes");
  const Topic* topic = image.FindTopic(*id);
  if (topic == nullptr) {
    return MakeError(
        v1::UNKNOWN_TOPIC_ID,
        absl::StrCat("no topic has the id ", id->ToString(),
                     name.topic.empty() ? "" : absl::StrCat(" of \"", name.topic, "\""),
                     "; it was deleted, or this broker does not know of it yet"));
  }
  if (!name.topic.empty() && topic->name != name.topic) {
    return MakeError(v1::UNKNOWN_TOPIC_ID,
                     absl::StrCat("the id ", id->ToString(), " is of topic \"", topic->name,
                                  "\", not of \"", name.topic, "\""));
  }
  return topic;
}

absl::Status NotLeader(const ReplicaSet& replicas, const PartitionId& id, BrokerId self) {
  const MetadataImage& image = replicas.image();
  const Topic& topic = *image.FindTopic(id.topic);
  const Partition& partition = *image.FindPartition(id);
  const std::string named = absl::StrCat(topic.name, "-", id.index.value());
  if (partition.leader == kNoBroker) {
    return MakeError(v1::LEADER_NOT_AVAILABLE,
                     absl::StrCat(named, " has no leader at present",
                                  partition.note.empty() ? "" : ": ", partition.note));
  }
  if (partition.leader == self) {
    if (const absl::Status why = replicas.WhyUnmade(id); !why.ok()) return why;
    return MakeError(v1::LEADER_NOT_AVAILABLE,
                     absl::StrCat("broker ", self.value(), " is about to lead ", named));
  }
  v1::NodeHint hint;
  hint.set_node_id(partition.leader.value());
  hint.set_epoch(partition.leader_epoch.value());
  if (const Broker* leader = image.FindBroker(partition.leader)) {
    hint.set_endpoint(leader->endpoint);
  }
  return MakeError(v1::NOT_LEADER_OR_FOLLOWER,
                   absl::StrCat("broker ", self.value(), " does not lead ", named, "; broker ",
                                partition.leader.value(), " does"),
                   hint);
}

}  // namespace

absl::StatusOr<PartitionId> ResolvePartition(const MetadataImage& image,
                                             const PartitionName& name) {
  const auto topic = ResolveTopic(image, name);
  if (!topic.ok()) return topic.status();
  const auto count = static_cast<int32_t>((*topic)->partitions.size());
  if (name.partition < 0 || name.partition >= count) {
    return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                     absl::StrCat("topic \"", (*topic)->name, "\" has partitions 0 to ", count - 1,
                                  ", and no ", name.partition));
  }
  return PartitionId{(*topic)->id, PartitionIndex(name.partition)};
}

absl::StatusOr<Replica*> FindLeader(ReplicaSet& replicas, const PartitionName& name) {
  const auto id = ResolvePartition(replicas.image(), name);
  if (!id.ok()) return id.status();
  Replica* replica = replicas.Find(*id);
  if (replica == nullptr || replica->leader() == nullptr) {
    return NotLeader(replicas, *id, replicas.self());
  }
  return replica;
}

absl::Status CheckEpoch(const Replica& leader, std::optional<int32_t> epoch) {
  if (!epoch) return absl::OkStatus();
  const int32_t ours = leader.leader()->leader_epoch().value();
  if (*epoch == ours) return absl::OkStatus();
  const std::string named = absl::StrCat(leader.name(), ": the request names leader epoch ", *epoch,
                                         ", the leader is at ", ours);
  return *epoch < ours ? MakeError(v1::FENCED_LEADER_EPOCH, named)
                       : MakeError(v1::UNKNOWN_LEADER_EPOCH, named);
}

}  // namespace conclave::broker
