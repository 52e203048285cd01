#include "common/config/topic_config.h"

#include <gtest/gtest.h>

#include "common/error/error.h"

namespace conclave {
namespace {

TEST(TopicConfigTest, Defaults) {
  const TopicConfig config = ResolveTopicConfig({}, 3);
  EXPECT_EQ(config.min_insync_replicas, 2u);
  EXPECT_EQ(config.segment_bytes, 1 << 30);
  EXPECT_EQ(config.segment_age, Duration::Seconds(7 * 86400));
  EXPECT_EQ(config.index_interval_bytes, 4096);
  EXPECT_EQ(config.retention_age, Duration::Seconds(7 * 86400));
  EXPECT_FALSE(config.retention_bytes.has_value());
  EXPECT_EQ(config.max_message_bytes, 1 << 20);
  EXPECT_EQ(config.timestamp_after_max, Duration::Seconds(3600));
  EXPECT_FALSE(config.timestamp_before_max.has_value());
  EXPECT_FALSE(config.unclean_leader_election);
  EXPECT_EQ(ResolveTopicConfig({}, 2).min_insync_replicas, 2u);
  EXPECT_EQ(ResolveTopicConfig({}, 1).min_insync_replicas, 1u);
}

TEST(TopicConfigTest, TheFlushPolicyIsFsyncUnlessReplicatedIsAskedFor) {
  EXPECT_FALSE(ResolveTopicConfig({}, 3).acknowledge_unsynced);
  EXPECT_TRUE(ResolveTopicConfig({{kFlushPolicy, "replicated"}}, 3).acknowledge_unsynced);
  EXPECT_TRUE(IsUnsyncedAcknowledged({{kFlushPolicy, "replicated"}}));
  EXPECT_FALSE(IsUnsyncedAcknowledged({{kFlushPolicy, "psychic"}}));
  EXPECT_EQ(ResolveTopicConfig({}, 3).flush_age, Duration::Milliseconds(1000));
}

TEST(TopicConfigTest, TheMinimumNeverExceedsTheReplicas) {
  EXPECT_EQ(EffectiveMinInsyncReplicas({{kMinInsyncReplicas, "3"}}, 2), 2u);
  EXPECT_EQ(EffectiveMinInsyncReplicas({{kMinInsyncReplicas, "1"}}, 3), 1u);
}

TEST(TopicConfigTest, WhatComesLaterIsRefusedByName) {
  const auto message = [](const char* key, const char* value) {
    const absl::Status status = CheckTopicConfigs({{key, value}}).status();
    EXPECT_EQ(ErrorCodeOf(status), v1::INVALID_CONFIG);
    return std::string(status.message());
  };
  EXPECT_NE(message("flush.policy", "memory").find("replicated"), std::string::npos);
  EXPECT_NE(message("cleanup.policy", "compact").find("later release"), std::string::npos);
  EXPECT_NE(message("compression.type", "zstd").find("at the producer"), std::string::npos);
  EXPECT_NE(message("min.insync.replica", "1").find("min.insync.replicas"), std::string::npos);
  EXPECT_NE(message("retention.ms", "soon").find("(ms)"), std::string::npos);
  EXPECT_EQ(CheckTopicConfigs({{"retention.ms", "0010"}})->at("retention.ms"), "10");
  EXPECT_TRUE(CheckTopicConfigs({{"retention.ms", "-1"}, {"cleanup.policy", "delete"}}).ok());
}

TEST(TopicConfigTest, DescribeShowsValueDefaultAndOrigin) {
  const auto settings = DescribeTopicConfig({{"retention.ms", "1000"}}, 3);
  EXPECT_EQ(settings.size(), TopicSettings().definitions().size());
  for (const EffectiveSetting& setting : settings) {
    EXPECT_FALSE(setting.default_value.empty());
    if (setting.definition->key == "retention.ms") {
      EXPECT_EQ(setting.value, "1000");
      EXPECT_EQ(setting.default_value, "604800000");
      EXPECT_EQ(setting.origin, SettingOrigin::kTopic);
    } else {
      EXPECT_EQ(setting.origin, SettingOrigin::kDefault);
    }
  }
}

TEST(TopicConfigTest, AnotherVersionsValuesGiveTheDefault) {
  const TopicConfig config = ResolveTopicConfig(
      {{"flush.policy", "psychic"}, {"no.such", "1"}, {"segment.bytes", "1"}}, 3);
  EXPECT_EQ(config.segment_bytes, 1 << 30);
}

}  // namespace
}  // namespace conclave
