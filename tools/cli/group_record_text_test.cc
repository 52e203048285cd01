#include "tools/cli/group_record_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/types/ids.h"
#include "conclave/v1/group_records.pb.h"

namespace conclave::tools {
namespace {

using Json = nlohmann::ordered_json;

const TopicPartition kFrom{kOffsetsTopic, PartitionIndex(7)};

Json Shown(const std::string& key, const std::optional<std::string>& value) {
  RecordView record;
  record.offset = Offset(12);
  record.timestamp_ms = 99;
  record.key = key;
  if (value) record.value = *value;
  return Json::parse(GroupRecordToJson(kFrom, record));
}

TEST(GroupRecordTextTest, AnOffset) {
  const TopicId id = TopicId::FromRandom(1, 2);
  v1::GroupRecordKey key;
  key.mutable_offset()->set_group("g");
  key.mutable_offset()->set_topic_id(id.ToBytes());
  key.mutable_offset()->set_partition(3);
  v1::GroupRecordValue value;
  value.set_version(1);
  value.mutable_offset()->set_offset(42);
  value.mutable_offset()->set_leader_epoch(-1);
  value.mutable_offset()->set_topic("t");
  value.mutable_offset()->set_committed_unix_ms(5);
  const Json json = Shown(key.SerializeAsString(), value.SerializeAsString());
  EXPECT_EQ(json["topic"], "__consumer_offsets");
  EXPECT_EQ(json["partition"], 7);
  EXPECT_EQ(json["offset"], 12);
  EXPECT_EQ(json["timestamp"], 99);
  EXPECT_EQ(
      json["key"],
      (Json{{"kind", "offset"}, {"group", "g"}, {"topic_id", id.ToString()}, {"partition", 3}}));
  EXPECT_EQ(json["value"], (Json{{"version", 1},
                                 {"offset", 42},
                                 {"leader_epoch", -1},
                                 {"metadata", ""},
                                 {"topic", "t"},
                                 {"committed_unix_ms", 5}}));
  EXPECT_EQ(Shown(key.SerializeAsString(), std::nullopt)["value"], Json(nullptr));
}

TEST(GroupRecordTextTest, WhatAMemberHolds) {
  const TopicId id = TopicId::FromRandom(3, 4);
  v1::GroupRecordKey key;
  key.mutable_holding()->set_group("g");
  key.mutable_holding()->set_member_id("m");
  v1::GroupRecordValue value;
  value.set_version(1);
  value.mutable_holding()->set_member_epoch(6);
  v1::GroupHeldTopic* topic = value.mutable_holding()->add_topics();
  topic->set_topic_id(id.ToBytes());
  topic->add_partitions()->set_partition(1);
  topic->mutable_partitions(0)->set_since_epoch(5);
  const Json json = Shown(key.SerializeAsString(), value.SerializeAsString());
  EXPECT_EQ(json["key"], (Json{{"kind", "holding"}, {"group", "g"}, {"member_id", "m"}}));
  EXPECT_EQ(json["value"].dump(),
            R"({"version":1,"member_epoch":6,"topics":[{"topic_id":")" + id.ToString() +
                R"(","partitions":[{"partition":1,"since_epoch":5,"revoked_epoch":0}]}]})");
}

TEST(GroupRecordTextTest, WhatIsNoneOfThemIsShownAsItIs) {
  const Json json = Shown("key", "value");
  EXPECT_EQ(json["key"], "key");
  EXPECT_EQ(json["value"], "value");
}

}  // namespace
}  // namespace conclave::tools
