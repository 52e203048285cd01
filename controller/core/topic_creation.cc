#include "controller/core/topic_creation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/topic_config.h"
#include "common/error/error.h"
#include "common/metadata/topic_name.h"
#include "controller/core/placement.h"

namespace conclave::controller {
namespace {

using Assignments = std::vector<std::vector<BrokerId>>;

constexpr int32_t kDefaultPartitions = 1;
constexpr size_t kDefaultReplicas = 3;

// The topics of one request, one after the other.
class TopicCreation {
 public:
  TopicCreation(const MetadataImage& image, const v1::CreateTopicsRequest& request,
                Requester requester, Random& random)
      : image_(image),
        request_(request),
        requester_(requester),
        random_(random),
        placement_(image) {
    for (const v1::NewTopic& topic : request.topics()) {
      ++times_named_[topic.name()];
      ++times_identified_[topic.topic_id()];
    }
  }

  v1::CreateTopicResult Create(const v1::NewTopic& topic) {
    v1::CreateTopicResult result;
    result.set_name(topic.name());
    if (auto status = TryCreate(topic, result); !status.ok()) {
      *result.mutable_error() = ErrorFromStatus(status);
    }
    return result;
  }

  v1::MetadataBatch TakeBatch() { return std::move(batch_); }

 private:
  absl::Status TryCreate(const v1::NewTopic& topic, v1::CreateTopicResult& result) {
    const auto wanted_id = WantedId(topic);
    if (!wanted_id.ok()) return wanted_id.status();
    if (const Topic* made = MadeBefore(topic.name(), *wanted_id)) {
      Describe(*made, result);
      return absl::OkStatus();
    }
    if (auto status = CheckName(topic.name()); !status.ok()) return status;
    const auto configs = CheckTopicConfigs({topic.configs().begin(), topic.configs().end()});
    if (!configs.ok()) return configs.status();
    const auto assignments = topic.assignments().empty() ? Place(topic) : ReadAssignments(topic);
    if (!assignments.ok()) return assignments.status();
    const TopicId new_id = wanted_id->IsNone() ? NewTopicId() : *wanted_id;
    auto id = AddRecords(topic.name(), new_id, *configs, *assignments);
    if (!id.ok()) return id.status();
    canonical_names_.emplace(CanonicalTopicName(topic.name()), topic.name());
    partitions_ += assignments->size();
    result.set_partitions(static_cast<int32_t>(assignments->size()));
    result.set_replication_factor(static_cast<int32_t>(assignments->front().size()));
    if (!request_.validate_only()) result.set_topic_id(id->ToBytes());
    return absl::OkStatus();
  }

  // The id that the client drew, or none.
  absl::StatusOr<TopicId> WantedId(const v1::NewTopic& topic) const {
    if (topic.topic_id().empty()) return TopicId();
    const auto id = TopicId::FromBytes(topic.topic_id());
    if (!id || id->IsNone()) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("the topic id asked for ", topic.name(),
                                    " is no 16 bytes other than zeros; leave it out, or draw one"));
    }
    if (times_identified_.at(topic.topic_id()) > 1) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("the topic id asked for ", topic.name(),
                                    " is asked for more than once; draw one for each topic"));
    }
    const Topic* holder = image_.FindTopic(*id);
    if (holder != nullptr && holder->name != topic.name()) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("the topic id asked for ", topic.name(), " is that of topic ",
                                    holder->name, "; draw another"));
    }
    if (image_.deleted_topics().Contains(*id)) {
      return MakeError(v1::TOPIC_DELETED,
                       absl::StrCat("the topic of the id asked for ", topic.name(),
                                    " has been deleted; to have it again, draw another id"));
    }
    return *id;
  }

  // The topic, if the same request made it before and its answer was lost.
  const Topic* MadeBefore(const std::string& name, TopicId wanted_id) const {
    if (wanted_id.IsNone() || request_.validate_only()) return nullptr;
    const Topic* topic = image_.FindTopic(wanted_id);
    return topic != nullptr && topic->name == name ? topic : nullptr;
  }

  static void Describe(const Topic& topic, v1::CreateTopicResult& result) {
    result.set_topic_id(topic.id.ToBytes());
    result.set_partitions(static_cast<int32_t>(topic.partitions.size()));
    result.set_replication_factor(static_cast<int32_t>(topic.partitions.front().replicas.size()));
  }

  absl::Status CheckName(const std::string& name) const {
    if (auto status = CheckTopicName(name); !status.ok()) return status;
    if (requester_ == Requester::kUser && IsInternalTopicName(name)) {
      return MakeError(v1::INVALID_TOPIC,
                       absl::StrCat("topic name ", name,
                                    " starts with '__', which is kept for the cluster's own "
                                    "topics; choose another name"));
    }
    if (times_named_.at(name) > 1) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("the request names topic ", name, " more than once"));
    }
    const Topic* existing = image_.FindColliding(name);
    if (existing != nullptr && existing->name == name) {
      return MakeError(v1::TOPIC_ALREADY_EXISTS, absl::StrCat("topic ", name, " exists already"));
    }
    const auto earlier = canonical_names_.find(CanonicalTopicName(name));
    if (existing != nullptr || earlier != canonical_names_.end()) {
      return MakeError(
          v1::INVALID_TOPIC,
          absl::StrCat("topic name ", name, " collides with topic ",
                       existing != nullptr ? existing->name : earlier->second,
                       existing != nullptr ? "" : " of the same request",
                       ": '.' and '_' are one in the names of metrics; choose another name"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPartitionCount(int64_t partitions) const {
    if (partitions < 1 || partitions > kMaxPartitionsPerRequest) {
      return MakeError(v1::INVALID_PARTITIONS,
                       absl::StrCat(partitions,
                                    " partitions were asked for; a topic is created "
                                    "with 1 to ",
                                    kMaxPartitionsPerRequest));
    }
    const size_t count = static_cast<size_t>(partitions);
    if (partitions_ + count > static_cast<size_t>(kMaxPartitionsPerRequest)) {
      return MakeError(
          v1::INVALID_PARTITIONS,
          absl::StrCat("the topics of this request have more than ", kMaxPartitionsPerRequest,
                       " partitions together; send this one in another request"));
    }
    if (image_.partition_count() + partitions_ + count > kMaxPartitionsPerCluster) {
      return MakeError(
          v1::INVALID_PARTITIONS,
          absl::StrCat("the cluster has ", image_.partition_count(), " partitions and takes ",
                       kMaxPartitionsPerCluster, "; delete topics, or ask for fewer"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Assignments> Place(const v1::NewTopic& topic) {
    const int32_t partitions = topic.has_partitions() ? topic.partitions() : kDefaultPartitions;
    if (auto status = CheckPartitionCount(partitions); !status.ok()) return status;
    const size_t live = placement_.broker_count();
    const int64_t replicas = topic.has_replication_factor()
                                 ? topic.replication_factor()
                                 : static_cast<int64_t>(std::min(kDefaultReplicas, live));
    if (live == 0) {
      return MakeError(v1::INVALID_REPLICATION_FACTOR,
                       "no broker is live to hold a replica; start one and try again");
    }
    if (replicas < 1 || static_cast<size_t>(replicas) > live) {
      return MakeError(
          v1::INVALID_REPLICATION_FACTOR,
          absl::StrCat("replication factor ", replicas, " is not from 1 to ", live,
                       ", the number of live brokers; ask for fewer replicas, or start more "
                       "brokers"));
    }
    return placement_.Place(static_cast<size_t>(partitions), static_cast<size_t>(replicas),
                            random_);
  }

  absl::StatusOr<Assignments> ReadAssignments(const v1::NewTopic& topic) const {
    if (topic.has_partitions() || topic.has_replication_factor()) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("topic ", topic.name(),
                                    " has both assignments and counts; leave the counts out"));
    }
    if (auto status = CheckPartitionCount(topic.assignments_size()); !status.ok()) return status;
    Assignments assignments;
    for (const v1::ReplicaAssignment& given : topic.assignments()) {
      std::vector<BrokerId> brokers;
      for (int32_t id : given.broker_ids()) brokers.emplace_back(id);
      if (auto status = CheckAssignment(assignments, brokers); !status.ok()) return status;
      assignments.push_back(std::move(brokers));
    }
    return assignments;
  }

  // `brokers` would follow `before`.
  absl::Status CheckAssignment(const Assignments& before,
                               const std::vector<BrokerId>& brokers) const {
    const auto invalid = [&](std::string why) {
      return MakeError(
          v1::INVALID_REPLICA_ASSIGNMENT,
          absl::StrCat("the assignment of partition ", before.size(), " ", std::move(why)));
    };
    if (brokers.empty()) return invalid("names no broker");
    if (!before.empty() && before.front().size() != brokers.size()) {
      return invalid(absl::StrCat("has ", brokers.size(), " replicas, that of partition 0 has ",
                                  before.front().size()));
    }
    std::set<BrokerId> seen;
    bool any_live = false;
    for (BrokerId id : brokers) {
      const Broker* broker = image_.FindBroker(id);
      if (broker == nullptr) {
        return invalid(absl::StrCat("names broker ", id.value(), ", which is not registered"));
      }
      if (!seen.insert(id).second) {
        return invalid(absl::StrCat("names broker ", id.value(), " twice"));
      }
      any_live |= broker->IsEligible();
    }
    if (!any_live) return invalid("names no broker that is live");
    return absl::OkStatus();
  }

  // The replicas that live are in sync from the start, the first of them leads.
  Partition NewPartition(const std::vector<BrokerId>& brokers, const ConfigMap& configs) {
    Partition partition;
    if (IsUnsyncedAcknowledged(configs)) partition.flush_policy = v1::FLUSH_POLICY_REPLICATED;
    for (BrokerId id : brokers) {
      const Broker& broker = *image_.FindBroker(id);
      const size_t directory = random_.Below(broker.directories.size());
      partition.replicas.push_back({id, broker.directories[directory]});
      if (broker.IsEligible()) partition.isr.push_back(id);
    }
    partition.leader = partition.isr.front();
    return partition;
  }

  TopicId NewTopicId() {
    while (true) {
      const uint64_t high = random_.Next();
      const TopicId id = TopicId::FromRandom(high, random_.Next());
      if (image_.FindTopic(id) == nullptr && !image_.deleted_topics().Contains(id)) return id;
    }
  }

  absl::StatusOr<TopicId> AddRecords(const std::string& name, TopicId id, const ConfigMap& configs,
                                     const Assignments& assignments) {
    v1::MetadataBatch records;
    records.add_records()->mutable_topic()->set_name(name);
    records.mutable_records(0)->mutable_topic()->set_topic_id(id.ToBytes());
    for (const auto& [key, value] : configs) {
      v1::ConfigRecord& config = *records.add_records()->mutable_config();
      config.set_resource(v1::CONFIG_RESOURCE_TOPIC);
      config.set_resource_name(id.ToString());
      config.set_key(key);
      config.set_value(value);
    }
    for (size_t i = 0; i < assignments.size(); ++i) {
      *records.add_records()->mutable_partition() = ToRecord(
          {id, PartitionIndex(static_cast<int32_t>(i))}, NewPartition(assignments[i], configs));
    }
    const size_t bytes = records.ByteSizeLong();
    if (bytes_ + bytes > kMaxCreationBytes) {
      return MakeError(
          v1::INVALID_REQUEST,
          absl::StrCat("the records of this request's topics take more than ", kMaxCreationBytes,
                       " bytes; send topic ", name, " in another request, or with fewer replicas"));
    }
    bytes_ += bytes;
    batch_.MergeFrom(records);
    return id;
  }

  const MetadataImage& image_;
  const v1::CreateTopicsRequest& request_;
  const Requester requester_;
  Random& random_;
  Placement placement_;
  std::map<std::string, int> times_named_;
  std::map<std::string, int> times_identified_;

  // Of the topics created so far in this request.
  v1::MetadataBatch batch_;
  size_t bytes_ = 0;
  size_t partitions_ = 0;
  // Of the request's topics so far; each with the name it came as.
  std::map<std::string, std::string> canonical_names_;
};

}  // namespace

Change<v1::CreateTopicsResponse> CreateTopics(const MetadataImage& image,
                                              const v1::CreateTopicsRequest& request,
                                              Requester requester, Random& random, Now now) {
  Change<v1::CreateTopicsResponse> change;
  TopicCreation creation(image, request, requester, random);
  for (const v1::NewTopic& topic : request.topics()) {
    *change.response.add_topics() = creation.Create(topic);
  }
  v1::MetadataBatch batch = creation.TakeBatch();
  if (request.validate_only() || batch.records().empty()) return change;
  batch.set_appended_unix_ms(now.wall.unix_millis());
  change.batches.push_back(std::move(batch));
  return change;
}

}  // namespace conclave::controller
