#include "common/config/topic_config.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"

namespace conclave {
namespace {

constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kWeekMs = 7LL * 24 * 60 * 60 * 1000;
constexpr int64_t kHourMs = 60LL * 60 * 1000;
// Of any span of time: a hundred years, far from where nanoseconds overflow.
constexpr int64_t kMaxSpanMs = 36525LL * 24 * 60 * 60 * 1000;

SettingDefinition Integer(const char* key, const char* unit, int64_t default_value, int64_t min,
                          int64_t max, const char* documentation) {
  SettingDefinition definition;
  definition.key = key;
  definition.type = SettingType::kInteger;
  definition.unit = unit;
  definition.default_value = absl::StrCat(default_value);
  definition.min = min;
  definition.max = max;
  definition.documentation = documentation;
  return definition;
}

SettingDefinition Choice(const char* key, const char* only,
                         std::map<std::string, std::string> refused, const char* documentation) {
  SettingDefinition definition;
  definition.key = key;
  definition.type = SettingType::kChoice;
  definition.default_value = only;
  definition.choices = {only};
  definition.refused = std::move(refused);
  definition.documentation = documentation;
  return definition;
}

SettingDefinition MinInsyncReplicas() {
  SettingDefinition definition =
      Integer(kMinInsyncReplicas, "", 1, 1, 1000,
              "How many replicas must be in sync for a write with acks=all to be taken, and for "
              "records to become visible. Counts as the number of replicas where it is greater.");
  definition.default_value.reset();
  definition.default_rule = "2 where a topic has two replicas or more, else 1";
  return definition;
}

SettingDefinition UncleanLeaderElection() {
  SettingDefinition definition;
  definition.key = kUncleanLeaderElectionEnable;
  definition.type = SettingType::kBoolean;
  definition.default_value = "false";
  definition.documentation =
      "Whether a replica that is not in sync may lead when no other can. Acknowledged records may "
      "be lost; each such election is recorded in the partition's note.";
  return definition;
}

SettingDefinition FlushPolicy() {
  SettingDefinition definition = Choice(
      kFlushPolicy, "fsync", {},
      "When a replica acknowledges: fsync, once the records are synced to its disk; replicated, "
      "once they are in its log, so that a power loss of min.insync.replicas machines at once may "
      "lose acknowledged records.");
  definition.choices.push_back("replicated");
  return definition;
}

SettingDefinition CleanupPolicy() {
  const char* const why = "compaction comes in a later release; leave cleanup.policy at delete";
  return Choice("cleanup.policy", "delete",
                {{"compact", why}, {"compact,delete", why}, {"delete,compact", why}},
                "What makes room: delete, old segments go by the retention settings.");
}

SettingDefinition CompressionType() {
  std::map<std::string, std::string> refused;
  for (const char* codec : {"gzip", "snappy", "lz4", "zstd", "uncompressed"}) {
    refused[codec] =
        "brokers store batches as the producer compressed them; choose the codec at "
        "the producer and leave compression.type at producer";
  }
  return Choice("compression.type", "producer", std::move(refused),
                "How batches are stored: producer, as they were sent.");
}

std::vector<SettingDefinition> Definitions() {
  return {
      MinInsyncReplicas(),
      FlushPolicy(),
      Integer("segment.bytes", "bytes", 1024 * kMiB, 1024, INT32_MAX,
              "Size at which a partition's log starts a new segment."),
      Integer("segment.ms", "ms", kWeekMs, 1, kMaxSpanMs,
              "Age at which a partition's log starts a new segment."),
      Integer("flush.ms", "ms", 1000, 1, kMaxSpanMs,
              "Under flush.policy=replicated: how long records may stay unsynced."),
      Integer("index.interval.bytes", "bytes", 4096, 1, INT32_MAX,
              "Bytes of records between two entries of a segment's index."),
      Integer("retention.ms", "ms", kWeekMs, -1, kMaxSpanMs,
              "Segments whose newest record is older are deleted. -1: never for their age."),
      Integer("retention.bytes", "bytes", -1, -1, INT64_MAX,
              "A partition's oldest segments are deleted while it is larger. -1: no limit."),
      Integer("max.message.bytes", "bytes", kMiB, 1024, 32 * kMiB,
              "Largest record batch, as it is sent, that is taken."),
      Integer("message.timestamp.after.max.ms", "ms", kHourMs, -1, kMaxSpanMs,
              "How far a record's timestamp may be ahead of the broker's clock. -1: no limit."),
      Integer("message.timestamp.before.max.ms", "ms", -1, -1, kMaxSpanMs,
              "How far a record's timestamp may be behind the broker's clock. -1: no limit."),
      CleanupPolicy(),
      UncleanLeaderElection(),
      CompressionType(),
  };
}

std::string DefaultOf(const SettingDefinition& definition, size_t replicas) {
  if (definition.default_value) return *definition.default_value;
  return replicas >= 2 ? "2" : "1";  // min.insync.replicas, the one with a rule.
}

// The value given, unless this version would refuse it; else nullopt.
std::optional<std::string> EffectiveValue(const SettingDefinition& definition,
                                          const std::map<std::string, std::string>& given) {
  const auto found = given.find(definition.key);
  if (found == given.end()) return std::nullopt;
  auto checked = CheckSetting(definition, found->second);
  if (!checked.ok()) return std::nullopt;
  return *std::move(checked);
}

std::optional<int64_t> UnlessNegative(int64_t value) {
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

std::optional<Duration> SpanUnlessNegative(int64_t ms) {
  return ms < 0 ? std::nullopt : std::optional<Duration>(Duration::Milliseconds(ms));
}

}  // namespace

const SettingsSchema& TopicSettings() {
  static const auto* const kSchema = new SettingsSchema("topic", Definitions());
  return *kSchema;
}

absl::StatusOr<std::map<std::string, std::string>> CheckTopicConfigs(
    std::map<std::string, std::string> given) {
  for (auto& [key, value] : given) {
    auto checked = TopicSettings().Check(key, value);
    if (!checked.ok()) return checked.status();
    value = *std::move(checked);
  }
  return given;
}

size_t EffectiveMinInsyncReplicas(const std::map<std::string, std::string>& given,
                                  size_t replicas) {
  const std::string text = EffectiveValue(*TopicSettings().Find(kMinInsyncReplicas), given)
                               .value_or(replicas >= 2 ? "2" : "1");
  size_t minimum = 1;
  CHECK(std::from_chars(text.data(), text.data() + text.size(), minimum).ec == std::errc());
  return std::min(minimum, replicas);
}

bool IsUncleanElectionEnabled(const std::map<std::string, std::string>& given) {
  return EffectiveValue(*TopicSettings().Find(kUncleanLeaderElectionEnable), given) == "true";
}

bool IsUnsyncedAcknowledged(const std::map<std::string, std::string>& given) {
  return EffectiveValue(*TopicSettings().Find(kFlushPolicy), given) == "replicated";
}

TopicConfig ResolveTopicConfig(const std::map<std::string, std::string>& given, size_t replicas) {
  Settings settings(TopicSettings());
  for (const EffectiveSetting& setting : DescribeTopicConfig(given, replicas)) {
    const absl::Status status = settings.Set(setting.definition->key, setting.value);
    CHECK(status.ok()) << status;
  }
  TopicConfig config;
  config.min_insync_replicas = EffectiveMinInsyncReplicas(given, replicas);
  config.segment_bytes = settings.Integer("segment.bytes");
  config.segment_age = settings.Milliseconds("segment.ms");
  config.index_interval_bytes = settings.Integer("index.interval.bytes");
  config.retention_age = SpanUnlessNegative(settings.Integer("retention.ms"));
  config.retention_bytes = UnlessNegative(settings.Integer("retention.bytes"));
  config.max_message_bytes = settings.Integer("max.message.bytes");
  config.timestamp_after_max =
      SpanUnlessNegative(settings.Integer("message.timestamp.after.max.ms"));
  config.timestamp_before_max =
      SpanUnlessNegative(settings.Integer("message.timestamp.before.max.ms"));
  config.unclean_leader_election = IsUncleanElectionEnabled(given);
  config.acknowledge_unsynced = IsUnsyncedAcknowledged(given);
  config.flush_age = settings.Milliseconds("flush.ms");
  return config;
}

std::vector<EffectiveSetting> DescribeTopicConfig(const std::map<std::string, std::string>& given,
                                                  size_t replicas) {
  std::vector<EffectiveSetting> settings;
  for (const SettingDefinition& definition : TopicSettings().definitions()) {
    const std::string default_value = DefaultOf(definition, replicas);
    EffectiveSetting setting{&definition, default_value, SettingOrigin::kDefault, default_value};
    if (auto value = EffectiveValue(definition, given)) {
      setting.value = *std::move(value);
      setting.origin = SettingOrigin::kTopic;
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace conclave
