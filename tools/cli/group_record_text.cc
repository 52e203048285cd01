#include "tools/cli/group_record_text.h"

#include <optional>
#include <string_view>

#include "conclave/v1/group_records.pb.h"
#include "tools/cli/cli.h"
#include "tools/cli/record_text.h"

namespace conclave::tools {
namespace {

std::optional<Json> KeyToJson(const v1::GroupRecordKey& key) {
  const auto of_member = [](const char* kind, const v1::GroupMemberKey& member) {
    return Json{{"kind", kind}, {"group", member.group()}, {"member_id", member.member_id()}};
  };
  switch (key.key_case()) {
    case v1::GroupRecordKey::kGroup:
      return Json{{"kind", "group"}, {"group", key.group().group()}};
    case v1::GroupRecordKey::kMember:
      return of_member("member", key.member());
    case v1::GroupRecordKey::kTarget:
      return of_member("target", key.target());
    case v1::GroupRecordKey::kHolding:
      return of_member("holding", key.holding());
    case v1::GroupRecordKey::kOffset:
      return Json{{"kind", "offset"},
                  {"group", key.offset().group()},
                  {"topic_id", IdText(key.offset().topic_id())},
                  {"partition", key.offset().partition()}};
    case v1::GroupRecordKey::KEY_NOT_SET:
      break;
  }
  return std::nullopt;
}

Json ToJson(const v1::GroupMemberValue& member) {
  Json topics = Json::array();
  for (const std::string& topic : member.topics()) topics.push_back(topic);
  return {{"instance_id", member.instance_id()},
          {"client_id", member.client_id()},
          {"topics", topics},
          {"assignor", member.assignor()},
          {"rebalance_timeout_ms", member.rebalance_timeout_ms()},
          {"session_timeout_ms", member.session_timeout_ms()}};
}

Json ToJson(const v1::GroupTargetValue& target) {
  Json topics = Json::array();
  for (const v1::GroupTargetTopic& topic : target.topics()) {
    Json partitions = Json::array();
    for (const int32_t partition : topic.partitions()) partitions.push_back(partition);
    topics.push_back({{"topic_id", IdText(topic.topic_id())}, {"partitions", partitions}});
  }
  return {{"topics", topics}};
}

Json ToJson(const v1::GroupHoldingValue& holding) {
  Json topics = Json::array();
  for (const v1::GroupHeldTopic& topic : holding.topics()) {
    Json partitions = Json::array();
    for (const v1::GroupHeldPartition& held : topic.partitions()) {
      partitions.push_back({{"partition", held.partition()},
                            {"since_epoch", held.since_epoch()},
                            {"revoked_epoch", held.revoked_epoch()}});
    }
    topics.push_back({{"topic_id", IdText(topic.topic_id())}, {"partitions", partitions}});
  }
  return {{"member_epoch", holding.member_epoch()}, {"topics", topics}};
}

std::optional<Json> ValueToJson(const v1::GroupRecordValue& value) {
  Json json = {{"version", value.version()}};
  switch (value.value_case()) {
    case v1::GroupRecordValue::kGroup:
      json["epoch"] = value.group().epoch();
      json["reason"] = value.group().reason();
      json["empty_since_unix_ms"] = value.group().has_empty_since_unix_ms()
                                        ? Json(value.group().empty_since_unix_ms())
                                        : Json(nullptr);
      return json;
    case v1::GroupRecordValue::kMember:
      json.update(ToJson(value.member()));
      return json;
    case v1::GroupRecordValue::kTarget:
      json.update(ToJson(value.target()));
      return json;
    case v1::GroupRecordValue::kHolding:
      json.update(ToJson(value.holding()));
      return json;
    case v1::GroupRecordValue::kOffset:
      json["offset"] = value.offset().offset();
      json["leader_epoch"] = value.offset().leader_epoch();
      json["metadata"] = value.offset().metadata();
      json["topic"] = value.offset().topic();
      json["committed_unix_ms"] = value.offset().committed_unix_ms();
      return json;
    case v1::GroupRecordValue::VALUE_NOT_SET:
      break;
  }
  return std::nullopt;
}

template <class Message>
bool Parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::string GroupRecordToJson(const TopicPartition& partition, const RecordView& record) {
  v1::GroupRecordKey key;
  v1::GroupRecordValue value;
  std::optional<Json> key_json;
  if (record.key && Parse(*record.key, key)) key_json = KeyToJson(key);
  std::optional<Json> value_json = Json(nullptr);
  if (record.value) {
    value_json.reset();
    if (Parse(*record.value, value)) value_json = ValueToJson(value);
  }
  if (!key_json || !value_json) return RecordToJson(partition, record);
  const Json json = {{"topic", partition.topic},
                     {"partition", partition.partition.value()},
                     {"offset", record.offset.value()},
                     {"timestamp", record.timestamp_ms},
                     {"key", *key_json},
                     {"value", *value_json},
                     {"headers", Json::array()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace conclave::tools
