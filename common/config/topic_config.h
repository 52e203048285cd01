#ifndef CONCLAVE_COMMON_CONFIG_TOPIC_CONFIG_H_
#define CONCLAVE_COMMON_CONFIG_TOPIC_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/setting.h"
#include "common/types/time.h"

namespace conclave {

inline constexpr char kMinInsyncReplicas[] = "min.insync.replicas";
inline constexpr char kUncleanLeaderElectionEnable[] = "unclean.leader.election.enable";

inline constexpr char kFlushPolicy[] = "flush.policy";

// The settings a topic may have.
const SettingsSchema& TopicSettings();

// A topic's settings in effect, typed.
struct TopicConfig {
  // Never more than the topic has replicas: the effective minimum.
  size_t min_insync_replicas = 1;
  int64_t segment_bytes = 0;
  Duration segment_age;
  int64_t index_interval_bytes = 0;
  // Absent: kept for ever, without a limit.
  std::optional<Duration> retention_age;
  std::optional<int64_t> retention_bytes;
  int64_t max_message_bytes = 0;
  // Absent: no limit on that side.
  std::optional<Duration> timestamp_after_max;
  std::optional<Duration> timestamp_before_max;
  bool unclean_leader_election = false;
  // What a replica acknowledges: what is in its log (replicated), or what is synced (fsync).
  bool acknowledge_unsynced = false;
  // With `acknowledge_unsynced`: records are synced this long after they came.
  Duration flush_age;
};

// The same with values in canonical form; INVALID_CONFIG for an unknown key or a value that is not
// allowed.
absl::StatusOr<std::map<std::string, std::string>> CheckTopicConfigs(
    std::map<std::string, std::string> given);

// `given` was checked when it was accepted; what this version does not know, or would refuse, is
// passed over in favour of the default, so that an image of another version can still be served.
TopicConfig ResolveTopicConfig(const std::map<std::string, std::string>& given, size_t replicas);

// Three of them by themselves, for who asks of many topics.
size_t EffectiveMinInsyncReplicas(const std::map<std::string, std::string>& given, size_t replicas);
bool IsUncleanElectionEnabled(const std::map<std::string, std::string>& given);
// flush.policy=replicated
bool IsUnsyncedAcknowledged(const std::map<std::string, std::string>& given);

enum class SettingOrigin { kDefault, kTopic };

struct EffectiveSetting {
  const SettingDefinition* definition;
  std::string value;
  SettingOrigin origin;
  std::string default_value;
};

// Every topic setting, in the order in which they are documented.
std::vector<EffectiveSetting> DescribeTopicConfig(const std::map<std::string, std::string>& given,
                                                  size_t replicas);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_TOPIC_CONFIG_H_
