#include "controller/core/topic_changes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/topic_config.h"
#include "common/error/error.h"
#include "common/metadata/topic_name.h"
#include "controller/core/batch_builder.h"
#include "controller/core/leadership_plan.h"
#include "controller/core/unknown_topic.h"

namespace conclave::controller {
namespace {

absl::StatusOr<TopicId> CheckDeletion(const MetadataImage& image, const std::string& name,
                                      Requester requester, const std::set<TopicId>& deleted) {
  const Topic* topic = image.FindTopic(name);
  if (topic == nullptr) return UnknownTopic(name);
  if (requester == Requester::kUser && IsInternalTopicName(name)) {
    return MakeError(v1::INVALID_TOPIC,
                     absl::StrCat("topic ", name, " is the cluster's own and cannot be deleted"));
  }
  if (deleted.contains(topic->id)) {
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("the request names topic ", name, " more than once"));
  }
  return topic->id;
}

v1::MetadataRecord TopicConfigRecord(TopicId topic, const std::string& key) {
  v1::MetadataRecord record;
  record.mutable_config()->set_resource(v1::CONFIG_RESOURCE_TOPIC);
  record.mutable_config()->set_resource_name(topic.ToString());
  record.mutable_config()->set_key(key);
  return record;
}

// The topic's settings as they would be.
absl::StatusOr<ConfigMap> Altered(const Topic& topic, const v1::AlterConfigsRequest& request) {
  auto configs = CheckTopicConfigs({request.set().begin(), request.set().end()});
  if (!configs.ok()) return configs.status();
  for (const std::string& key : request.unset()) {
    if (TopicSettings().Find(key) == nullptr) return TopicSettings().UnknownKey(key);
    if (configs->contains(key)) {
      return MakeError(v1::INVALID_CONFIG,
                       absl::StrCat(key, " would be both set and unset; send one of the two"));
    }
  }
  for (const auto& [key, value] : topic.configs) {
    const auto& unset = request.unset();
    if (std::find(unset.begin(), unset.end(), key) == unset.end()) configs->emplace(key, value);
  }
  return configs;
}

// In the order of keys: the request's maps have none.
void AddConfigRecords(const Topic& topic, const ConfigMap& after, BatchBuilder& builder) {
  for (const auto& [key, value] : topic.configs) {
    if (!after.contains(key)) builder.Add(TopicConfigRecord(topic.id, key));
  }
  for (const auto& [key, value] : after) {
    const auto before = topic.configs.find(key);
    if (before != topic.configs.end() && before->second == value) continue;
    v1::MetadataRecord record = TopicConfigRecord(topic.id, key);
    record.mutable_config()->set_value(value);
    builder.Add(std::move(record));
  }
}

bool MinimumChanges(const Topic& topic, const ConfigMap& after) {
  return std::any_of(topic.partitions.begin(), topic.partitions.end(),
                     [&](const Partition& partition) {
                       const size_t replicas = partition.replicas.size();
                       return EffectiveMinInsyncReplicas(after, replicas) !=
                              EffectiveMinInsyncReplicas(topic.configs, replicas);
                     });
}

}  // namespace

Change<v1::DeleteTopicsResponse> DeleteTopics(const MetadataImage& image,
                                              const v1::DeleteTopicsRequest& request,
                                              Requester requester, Now now) {
  Change<v1::DeleteTopicsResponse> change;
  BatchBuilder builder(now.wall);
  std::set<TopicId> deleted;
  for (const std::string& name : request.names()) {
    v1::DeleteTopicResult& result = *change.response.add_topics();
    result.set_name(name);
    const auto id = CheckDeletion(image, name, requester, deleted);
    if (!id.ok()) {
      *result.mutable_error() = ErrorFromStatus(id.status());
      continue;
    }
    deleted.insert(*id);
    result.set_topic_id(id->ToBytes());
    v1::MetadataRecord record;
    record.mutable_remove_topic()->set_topic_id(id->ToBytes());
    builder.Add(std::move(record));
  }
  change.batches = builder.Take();
  return change;
}

absl::StatusOr<Change<v1::AlterConfigsResponse>> AlterConfigs(
    const MetadataImage& image, const ReplicaReports& reports,
    const v1::AlterConfigsRequest& request, Now now) {
  if (request.resource() != v1::CONFIG_RESOURCE_TOPIC) {
    return MakeError(
        v1::INVALID_REQUEST,
        "only settings of topics can be altered while the cluster runs; a broker's are "
        "in its file and need a restart");
  }
  const Topic* topic = image.FindTopic(request.name());
  if (topic == nullptr) return UnknownTopic(request.name());
  const auto after = Altered(*topic, request);
  if (!after.ok()) return after.status();
  Change<v1::AlterConfigsResponse> change;
  if (request.validate_only()) return change;
  BatchBuilder builder(now.wall);
  AddConfigRecords(*topic, *after, builder);
  LeadershipPlan plan(image, reports);
  if (IsUncleanElectionEnabled(*after) && !IsUncleanElectionEnabled(topic->configs)) {
    plan.AllowUncleanElection(topic->id);
  }
  if (MinimumChanges(*topic, *after)) plan.ForgetEligible(topic->id);
  // Back to fsync is the leaders' to tell, once everything is synced.
  if (IsUnsyncedAcknowledged(*after)) {
    plan.SetFlushPolicy(topic->id, v1::FLUSH_POLICY_REPLICATED);
  }
  plan.AddRecords(builder);
  change.batches = builder.Take();
  return change;
}

}  // namespace conclave::controller
