#include "client/metadata/metadata_cache.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/metadata_methods.h"

namespace conclave {
namespace {

// Who serves no metadata is no broker: clients were given the wrong addresses.
absl::Status Explained(const absl::Status& failure) {
  if (ErrorCodeOf(failure) != v1::UNSUPPORTED_VERSION) return failure;
  return MakeError(v1::UNSUPPORTED_VERSION,
                   absl::StrCat(failure.message(),
                                ". It may be a controller, which serves no data: name brokers "
                                "instead"));
}

}  // namespace

MetadataCache::MetadataCache(Options options, Transport& transport, Executor& executor,
                             const Random& random, std::function<void()> changed)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("metadata")),
      changed_(std::move(changed)),
      ask_not_before_(executor.clock().Now()),
      unchanged_pause_(options_.pause, options_.unchanged_pause_max),
      failed_pause_(options_.pause, options_.failed_pause_max) {
  CHECK(!options_.bootstrap.empty()) << "a broker is needed to begin with";
  endpoint_ = options_.bootstrap[random_.Below(options_.bootstrap.size())];
}

MetadataCache::~MetadataCache() {
  executor_.Cancel(timer_);
  executor_.Cancel(age_timer_);
}

void MetadataCache::Watch(const std::string& topic) {
  if (topics_.try_emplace(topic).second) {
    // A new name need not wait for the pause that old ones earned.
    unchanged_pause_.Reset();
    Refresh();
  }
}

void MetadataCache::Unwatch(const std::string& topic) { topics_.erase(topic); }

void MetadataCache::Refresh() {
  if (std::exchange(wanted_, true)) return;
  if (!asking_) Schedule();
}

void MetadataCache::Schedule() {
  const MonotonicTime at = std::max(ask_not_before_, executor_.clock().Now());
  timer_ = executor_.PostAt(at, lifetime_.Guard([this] { Ask(); }));
}

void MetadataCache::Ask() {
  wanted_ = false;
  asking_ = true;
  ++asked_;
  v1::GetMetadataRequest request;
  for (const auto& [name, topic] : topics_) request.add_topics(name);
  const std::string endpoint = endpoint_;
  CallMethod<v1::GetMetadataRequest, v1::GetMetadataResponse>(
      transport_, endpoint, metadata_methods::kGetMetadata, request,
      {.deadline = executor_.clock().Now() + options_.attempt_timeout}, executor_,
      lifetime_.Guard([this, endpoint](absl::StatusOr<v1::GetMetadataResponse> response) {
        Answered(endpoint, std::move(response));
      }));
}

void MetadataCache::Answered(const std::string& endpoint,
                             absl::StatusOr<v1::GetMetadataResponse> response) {
  asking_ = false;
  const MonotonicTime now = executor_.clock().Now();
  last_failure_ = response.ok() ? CheckAnswer(*response) : Explained(response.status());
  if (!last_failure_.ok()) {
    not_served_ = ErrorCodeOf(last_failure_) == v1::UNSUPPORTED_VERSION ? not_served_ + 1 : 0;
    VLOG(1) << "metadata from " << endpoint << ": " << Describe(last_failure_);
    Failed(endpoint);
    ask_not_before_ = now + failed_pause_.Next(random_);
    wanted_ = true;
  } else {
    failed_pause_.Reset();
    if (TakeIn(*response)) unchanged_pause_.Reset();
    ask_not_before_ = now + unchanged_pause_.Next(random_);
    executor_.Cancel(age_timer_);
    age_timer_ = executor_.PostAt(now + options_.max_age, lifetime_.Guard([this] { Refresh(); }));
    // A topic that was asked for while this answer was under way.
    for (const auto& [name, topic] : topics_) wanted_ = wanted_ || !topic;
  }
  if (wanted_) Schedule();
  changed_();
}

absl::Status MetadataCache::CheckAnswer(const v1::GetMetadataResponse& response) const {
  if (!cluster_id_.empty() && response.cluster_id() != cluster_id_) {
    return MakeError(
        v1::INCONSISTENT_CLUSTER_ID,
        "a broker of another cluster answers at an address of ours; correct the bootstrap "
        "addresses, or start the client anew if the cluster was replaced");
  }
  if (response.metadata_index() < index_) {
    return MakeError(v1::METADATA_BEHIND,
                     absl::StrCat("the broker's metadata is at ", response.metadata_index(),
                                  " and ours at ", index_, " already; another broker is asked"));
  }
  return absl::OkStatus();
}

bool MetadataCache::TakeIn(const v1::GetMetadataResponse& response) {
  bool changed = response.metadata_index() != index_;
  cluster_id_ = response.cluster_id();
  index_ = response.metadata_index();
  std::map<BrokerId, std::string> brokers;
  for (const v1::BrokerEndpoint& broker : response.brokers()) {
    brokers[BrokerId(broker.broker_id())] = broker.endpoint();
  }
  if (brokers != brokers_) {
    brokers_ = std::move(brokers);
    changed = true;
  }
  for (const v1::TopicMetadata& metadata : response.topics()) {
    const auto found = topics_.find(metadata.name());
    if (found == topics_.end()) continue;
    if (!found->second) {
      found->second.emplace();
      changed = true;
    }
    if (TakeIn(metadata, *found->second)) changed = true;
  }
  return changed;
}

bool MetadataCache::TakeIn(const v1::TopicMetadata& metadata, Topic& topic) {
  const bool was_ok = topic.status.ok();
  topic.status = StatusFromError(metadata.error());
  if (!topic.status.ok()) {
    const bool unknown = metadata.error().code() == v1::UNKNOWN_TOPIC_OR_PARTITION;
    if (!unknown) {
      topic.unknown_since.reset();
    } else if (!topic.unknown_since) {
      topic.unknown_since = executor_.clock().Now();
    }
    topic.id = TopicId();
    topic.partitions.clear();
    return was_ok;
  }
  topic.unknown_since.reset();
  const TopicId id = TopicId::FromBytes(metadata.topic_id()).value_or(TopicId());
  bool changed = !was_ok || id != topic.id;
  // Epochs of a topic that was made anew say nothing about those before.
  if (id != topic.id) topic.partitions.clear();
  topic.id = id;
  std::vector<Partition> partitions(static_cast<size_t>(metadata.partitions_size()));
  for (const v1::PartitionMetadata& m : metadata.partitions()) {
    const auto index = static_cast<size_t>(m.partition());
    if (index >= partitions.size()) continue;
    Partition& partition = partitions[index];
    partition = {BrokerId(m.leader()), LeaderEpoch(m.leader_epoch())};
    if (index >= topic.partitions.size()) {
      changed = true;
      continue;
    }
    const Partition& before = topic.partitions[index];
    if (before.leader_epoch > partition.leader_epoch) partition = before;
    if (before.leader != partition.leader || before.leader_epoch != partition.leader_epoch) {
      changed = true;
    }
  }
  topic.partitions = std::move(partitions);
  return changed;
}

const MetadataCache::Topic* MetadataCache::Find(const std::string& topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() || !found->second ? nullptr : &*found->second;
}

std::optional<MetadataCache::Leader> MetadataCache::LeaderOf(
    const TopicPartition& partition) const {
  const Topic* topic = Find(partition.topic);
  if (topic == nullptr || partition.partition.value() < 0) return std::nullopt;
  const auto index = static_cast<size_t>(partition.partition.value());
  if (index >= topic->partitions.size()) return std::nullopt;
  const Partition& known = topic->partitions[index];
  const auto broker = brokers_.find(known.leader);
  if (broker == brokers_.end()) return std::nullopt;
  return Leader{known.leader, known.leader_epoch, broker->second};
}

bool MetadataCache::Learn(const TopicPartition& partition, const v1::NodeHint& hint) {
  const auto found = topics_.find(partition.topic);
  if (found == topics_.end() || !found->second || hint.node_id() < 0) return false;
  const auto index = static_cast<size_t>(partition.partition.value());
  if (index >= found->second->partitions.size()) return false;
  Partition& known = found->second->partitions[index];
  const BrokerId leader(hint.node_id());
  if (hint.epoch() <= known.leader_epoch.value() ||
      (hint.endpoint().empty() && brokers_.count(leader) == 0)) {
    return false;
  }
  known = {leader, LeaderEpoch(static_cast<int32_t>(hint.epoch()))};
  if (!hint.endpoint().empty()) brokers_[leader] = hint.endpoint();
  changed_();
  return true;
}

bool MetadataCache::nobody_serves() const {
  return cluster_id_.empty() && not_served_ >= Candidates().size();
}

std::vector<std::string> MetadataCache::Candidates() const {
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const auto& [id, endpoint] : brokers_) {
    if (seen.insert(endpoint).second) all.push_back(endpoint);
  }
  for (const std::string& endpoint : options_.bootstrap) {
    if (seen.insert(endpoint).second) all.push_back(endpoint);
  }
  return all;
}

void MetadataCache::Failed(const std::string& endpoint) {
  // Another request has moved on from it already.
  if (endpoint != endpoint_) return;
  const std::vector<std::string> all = Candidates();
  const auto at = std::find(all.begin(), all.end(), endpoint);
  const size_t next = at == all.end() ? 0 : static_cast<size_t>(at - all.begin()) + 1;
  endpoint_ = all[next % all.size()];
}

}  // namespace conclave
