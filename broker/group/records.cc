#include "broker/group/records.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/group/image.h"
#include "common/error/error.h"
#include "conclave/v1/group_records.pb.h"

namespace conclave::group {
namespace {

constexpr uint32_t kVersion = 1;

absl::Status Corrupt(std::string why) {
  return MakeError(v1::CORRUPT_MESSAGE,
                   absl::StrCat("a record of the groups' log is damaged: ", std::move(why)));
}

absl::Status Newer(const std::string& what) {
  return MakeError(v1::UNSUPPORTED_VERSION,
                   absl::StrCat("the groups' log has ", what,
                                " that this version does not know; a newer version wrote it, "
                                "upgrade this broker"));
}

v1::GroupRecordKey MemberKey(v1::GroupMemberKey* (v1::GroupRecordKey::*kind)(),
                             const std::string& group, const std::string& member) {
  v1::GroupRecordKey key;
  (key.*kind)()->set_group(group);
  (key.*kind)()->set_member_id(member);
  return key;
}

std::string GroupKeyBytes(const std::string& group) {
  v1::GroupRecordKey key;
  key.mutable_group()->set_group(group);
  return key.SerializeAsString();
}
std::string MemberKeyBytes(const std::string& group, const std::string& member) {
  return MemberKey(&v1::GroupRecordKey::mutable_member, group, member).SerializeAsString();
}
std::string TargetKeyBytes(const std::string& group, const std::string& member) {
  return MemberKey(&v1::GroupRecordKey::mutable_target, group, member).SerializeAsString();
}
std::string HoldingKeyBytes(const std::string& group, const std::string& member) {
  return MemberKey(&v1::GroupRecordKey::mutable_holding, group, member).SerializeAsString();
}
std::string OffsetKeyBytes(const std::string& group, const PartitionId& partition) {
  v1::GroupRecordKey key;
  key.mutable_offset()->set_group(group);
  key.mutable_offset()->set_topic_id(partition.topic.ToBytes());
  key.mutable_offset()->set_partition(partition.index.value());
  return key.SerializeAsString();
}

GroupRecord With(std::string key, v1::GroupRecordValue value) {
  value.set_version(kVersion);
  return {std::move(key), value.SerializeAsString()};
}

absl::StatusOr<v1::GroupRecordValue> ParseValue(std::string_view bytes,
                                                v1::GroupRecordValue::ValueCase kind) {
  v1::GroupRecordValue value;
  if (!value.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Corrupt("its value is none");
  }
  if (value.version() > kVersion) {
    return Newer(absl::StrCat("a value of version ", value.version()));
  }
  if (value.version() == 0 || value.value_case() != kind) {
    return Corrupt("its value is of another kind than its key");
  }
  return value;
}

absl::StatusOr<TopicId> ParseTopicId(const std::string& bytes) {
  const auto id = TopicId::FromBytes(bytes);
  if (!id || id->IsNone()) return Corrupt("a topic's id is no id");
  return *id;
}

absl::StatusOr<RecordName> NameOfMember(RecordKind kind, const v1::GroupMemberKey& key) {
  if (key.group().empty() || key.member_id().empty()) return Corrupt("it names no member");
  return RecordName{kind, key.group(), key.member_id(), {}};
}

}  // namespace

GroupRecord RecordOfGroup(const std::string& name, const Group& group) {
  v1::GroupRecordValue value;
  value.mutable_group()->set_epoch(group.epoch.value());
  value.mutable_group()->set_reason(group.reason);
  if (group.empty_since) {
    value.mutable_group()->set_empty_since_unix_ms(group.empty_since->unix_millis());
  }
  return With(GroupKeyBytes(name), std::move(value));
}

GroupRecord RecordOfMember(const std::string& group, const std::string& member,
                           const MemberDescription& description) {
  v1::GroupRecordValue value;
  v1::GroupMemberValue& out = *value.mutable_member();
  out.set_instance_id(description.instance_id);
  out.set_client_id(description.client_id);
  for (const std::string& topic : description.topics) out.add_topics(topic);
  out.set_assignor(AssignorName(description.assignor));
  out.set_rebalance_timeout_ms(static_cast<int32_t>(description.rebalance_timeout.milliseconds()));
  out.set_session_timeout_ms(static_cast<int32_t>(description.session_timeout.milliseconds()));
  return With(MemberKeyBytes(group, member), std::move(value));
}

GroupRecord RecordOfTarget(const std::string& group, const std::string& member,
                           const PartitionSet& target) {
  v1::GroupRecordValue value;
  v1::GroupTargetTopic* topic = nullptr;
  std::string id;
  // Sorted by topic.
  for (const PartitionId& partition : target) {
    if (std::string bytes = partition.topic.ToBytes(); topic == nullptr || bytes != id) {
      topic = value.mutable_target()->add_topics();
      topic->set_topic_id(bytes);
      id = std::move(bytes);
    }
    topic->add_partitions(partition.index.value());
  }
  value.mutable_target();
  return With(TargetKeyBytes(group, member), std::move(value));
}

GroupRecord RecordOfHolding(const std::string& group, const std::string& member,
                            const Member& holding) {
  v1::GroupRecordValue value;
  value.mutable_holding()->set_member_epoch(holding.epoch.value());
  v1::GroupHeldTopic* topic = nullptr;
  std::string id;
  for (const auto& [partition, held] : holding.held) {
    if (std::string bytes = partition.topic.ToBytes(); topic == nullptr || bytes != id) {
      topic = value.mutable_holding()->add_topics();
      topic->set_topic_id(bytes);
      id = std::move(bytes);
    }
    v1::GroupHeldPartition& out = *topic->add_partitions();
    out.set_partition(partition.index.value());
    out.set_since_epoch(held.since.value());
    out.set_revoked_epoch(held.revoked.value());
  }
  return With(HoldingKeyBytes(group, member), std::move(value));
}

GroupRecord RecordOfOffset(const std::string& group, const PartitionId& partition,
                           const StoredOffset& offset) {
  v1::GroupRecordValue value;
  v1::GroupOffsetValue& out = *value.mutable_offset();
  out.set_offset(offset.offset.value());
  out.set_leader_epoch(offset.leader_epoch.value());
  out.set_metadata(offset.metadata);
  out.set_topic(offset.topic);
  out.set_committed_unix_ms(offset.committed_at.unix_millis());
  return With(OffsetKeyBytes(group, partition), std::move(value));
}

GroupRecord EndOfGroup(const std::string& group) { return {GroupKeyBytes(group), std::nullopt}; }
GroupRecord EndOfMember(const std::string& group, const std::string& member) {
  return {MemberKeyBytes(group, member), std::nullopt};
}
GroupRecord EndOfTarget(const std::string& group, const std::string& member) {
  return {TargetKeyBytes(group, member), std::nullopt};
}
GroupRecord EndOfHolding(const std::string& group, const std::string& member) {
  return {HoldingKeyBytes(group, member), std::nullopt};
}
GroupRecord EndOfOffset(const std::string& group, const PartitionId& partition) {
  return {OffsetKeyBytes(group, partition), std::nullopt};
}

absl::StatusOr<RecordName> ParseRecordKey(std::string_view bytes) {
  v1::GroupRecordKey key;
  if (!key.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Corrupt("its key is none");
  }
  switch (key.key_case()) {
    case v1::GroupRecordKey::kGroup:
      if (key.group().group().empty()) return Corrupt("it names no group");
      return RecordName{RecordKind::kGroup, key.group().group(), {}, {}};
    case v1::GroupRecordKey::kMember:
      return NameOfMember(RecordKind::kMember, key.member());
    case v1::GroupRecordKey::kTarget:
      return NameOfMember(RecordKind::kTarget, key.target());
    case v1::GroupRecordKey::kHolding:
      return NameOfMember(RecordKind::kHolding, key.holding());
    case v1::GroupRecordKey::kOffset: {
      const auto topic = ParseTopicId(key.offset().topic_id());
      if (!topic.ok()) return topic.status();
      if (key.offset().group().empty() || key.offset().partition() < 0) {
        return Corrupt("an offset names no group or no partition");
      }
      return RecordName{RecordKind::kOffset,
                        key.offset().group(),
                        {},
                        {*topic, PartitionIndex(key.offset().partition())}};
    }
    case v1::GroupRecordKey::KEY_NOT_SET:
      break;
  }
  return Newer("a key of a kind");
}

absl::Status ParseGroupValue(std::string_view bytes, Group& group) {
  const auto value = ParseValue(bytes, v1::GroupRecordValue::kGroup);
  if (!value.ok()) return value.status();
  const v1::GroupValue& in = value->group();
  group.epoch = GroupEpoch(in.epoch());
  group.reason = in.reason();
  group.empty_since.reset();
  if (in.has_empty_since_unix_ms()) {
    group.empty_since = WallTime::FromUnixMillis(in.empty_since_unix_ms());
  }
  return absl::OkStatus();
}

absl::Status ParseMemberValue(std::string_view bytes, Member& member) {
  const auto value = ParseValue(bytes, v1::GroupRecordValue::kMember);
  if (!value.ok()) return value.status();
  const v1::GroupMemberValue& in = value->member();
  const auto assignor = ParseAssignor(in.assignor());
  if (!assignor) return Newer(absl::StrCat("an assignor, ", in.assignor(), ","));
  member.description = MemberDescription{
      .instance_id = in.instance_id(),
      .client_id = in.client_id(),
      .topics = {in.topics().begin(), in.topics().end()},
      .assignor = *assignor,
      .rebalance_timeout = Duration::Milliseconds(in.rebalance_timeout_ms()),
      .session_timeout = Duration::Milliseconds(in.session_timeout_ms()),
  };
  return absl::OkStatus();
}

absl::Status ParseTargetValue(std::string_view bytes, Member& member) {
  const auto value = ParseValue(bytes, v1::GroupRecordValue::kTarget);
  if (!value.ok()) return value.status();
  PartitionSet target;
  for (const v1::GroupTargetTopic& topic : value->target().topics()) {
    const auto id = ParseTopicId(topic.topic_id());
    if (!id.ok()) return id.status();
    for (const int32_t partition : topic.partitions()) {
      target.insert({*id, PartitionIndex(partition)});
    }
  }
  member.target = std::move(target);
  return absl::OkStatus();
}

absl::Status ParseHoldingValue(std::string_view bytes, Member& member) {
  const auto value = ParseValue(bytes, v1::GroupRecordValue::kHolding);
  if (!value.ok()) return value.status();
  std::map<PartitionId, Held> held;
  for (const v1::GroupHeldTopic& topic : value->holding().topics()) {
    const auto id = ParseTopicId(topic.topic_id());
    if (!id.ok()) return id.status();
    for (const v1::GroupHeldPartition& partition : topic.partitions()) {
      held[{*id, PartitionIndex(partition.partition())}] = {GroupEpoch(partition.since_epoch()),
                                                            GroupEpoch(partition.revoked_epoch())};
    }
  }
  member.epoch = GroupEpoch(value->holding().member_epoch());
  member.held = std::move(held);
  return absl::OkStatus();
}

absl::StatusOr<StoredOffset> ParseOffsetValue(std::string_view bytes) {
  const auto value = ParseValue(bytes, v1::GroupRecordValue::kOffset);
  if (!value.ok()) return value.status();
  const v1::GroupOffsetValue& in = value->offset();
  return StoredOffset{Offset(in.offset()), LeaderEpoch(in.leader_epoch()), in.metadata(),
                      in.topic(), WallTime::FromUnixMillis(in.committed_unix_ms())};
}

}  // namespace conclave::group
