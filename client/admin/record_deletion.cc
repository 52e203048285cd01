#include "client/admin/record_deletion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/admin/admin_client.h"
#include "common/error/error.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"

namespace conclave {
namespace {

constexpr Duration kLongestPause = Duration::Milliseconds(500);
// The leader's word that its time is over comes before ours is.
constexpr Duration kMargin = Duration::Milliseconds(200);

v1::Error ErrorOf(v1::ErrorCode code, const std::string& message) {
  return ErrorFromStatus(MakeError(code, message));
}

}  // namespace

RecordDeletion::RecordDeletion(AdminClient& admin, Transport& transport, Executor& executor,
                               v1::DeleteRecordsRequest request, MonotonicTime deadline, Done done)
    : admin_(admin),
      transport_(transport),
      executor_(executor),
      request_(std::move(request)),
      deadline_(deadline),
      done_(std::move(done)) {}

void RecordDeletion::Start() {
  for (int i = 0; i < request_.partitions_size(); ++i) {
    const v1::DeleteRecordsPartition& asked = request_.partitions(i);
    v1::DeleteRecordsResult& result = *response_.add_partitions();
    result.set_topic(asked.topic());
    result.set_topic_id(asked.topic_id());
    result.set_partition(asked.partition());
    result.set_log_start_offset(-1);
    open_.insert(i);
  }
  FindLeaders();
}

void RecordDeletion::FindLeaders() {
  v1::DescribeTopicsRequest request;
  std::set<std::string> names;
  for (const int index : open_) names.insert(request_.partitions(index).topic());
  for (const std::string& name : names) request.add_names(name);
  admin_.DescribeTopics(std::move(request), [self = shared_from_this()](
                                                absl::StatusOr<v1::DescribeTopicsResponse> topics) {
    if (!topics.ok()) return self->done_(topics.status());
    self->admin_.DescribeCluster({}, [self, topics = *std::move(topics)](
                                         absl::StatusOr<v1::DescribeClusterResponse> cluster) {
      if (!cluster.ok()) return self->done_(cluster.status());
      self->AskLeaders(topics, *cluster);
    });
  });
}

const v1::PartitionDescription* RecordDeletion::Find(const v1::DescribeTopicsResponse& topics,
                                                     int index) {
  const v1::DeleteRecordsPartition& asked = request_.partitions(index);
  const auto final_error = [&](const v1::Error& error) -> const v1::PartitionDescription* {
    *response_.mutable_partitions(index)->mutable_error() = error;
    open_.erase(index);
    return nullptr;
  };
  for (const v1::TopicDescription& topic : topics.topics()) {
    if (topic.name() != asked.topic()) continue;
    if (topic.error().code() != v1::NONE) return final_error(topic.error());
    const std::string& id = topic_ids_.emplace(topic.name(), topic.topic_id()).first->second;
    if (id != topic.topic_id() || (!asked.topic_id().empty() && id != asked.topic_id())) {
      return final_error(ErrorOf(
          v1::UNKNOWN_TOPIC_ID,
          absl::StrCat("topic \"", topic.name(), "\" was deleted and made anew meanwhile")));
    }
    for (const v1::PartitionDescription& partition : topic.partitions()) {
      if (partition.partition() == asked.partition()) return &partition;
    }
    return final_error(
        ErrorOf(v1::UNKNOWN_TOPIC_OR_PARTITION,
                absl::StrCat("topic \"", topic.name(), "\" has partitions 0 to ",
                             topic.partitions_size() - 1, ", and no ", asked.partition())));
  }
  return final_error(ErrorOf(v1::UNKNOWN_TOPIC_OR_PARTITION,
                             absl::StrCat("topic \"", asked.topic(), "\" does not exist")));
}

void RecordDeletion::AskLeaders(const v1::DescribeTopicsResponse& topics,
                                const v1::DescribeClusterResponse& cluster) {
  std::map<int32_t, std::string> endpoints;
  for (const v1::BrokerDescription& broker : cluster.brokers()) {
    endpoints[broker.broker_id()] = broker.endpoint();
  }
  std::map<std::string, Group> groups;
  for (const int index : std::set(open_)) {
    const v1::PartitionDescription* partition = Find(topics, index);
    if (partition == nullptr) continue;
    const v1::DeleteRecordsPartition& asked = request_.partitions(index);
    const auto leader = endpoints.find(partition->leader());
    if (leader == endpoints.end()) {
      Failed(index, ErrorOf(v1::LEADER_NOT_AVAILABLE,
                            absl::StrCat(asked.topic(), "-", asked.partition(),
                                         " has no leader at present; 'conclave topic describe' "
                                         "shows why")));
      continue;
    }
    Group& group = groups[leader->second];
    v1::DeleteRecordsPartition& sent = *group.request.add_partitions();
    sent = asked;
    sent.set_topic_id(topic_ids_.at(asked.topic()));
    group.indices.push_back(index);
  }
  asking_ = groups.size();
  if (asking_ == 0) return NextRound();
  const Duration left = deadline_ - kMargin - executor_.clock().Now();
  for (auto& [endpoint, group] : groups) {
    group.request.set_timeout_ms(static_cast<int32_t>(
        std::max<int64_t>(1, std::min<int64_t>(left.milliseconds(), INT32_MAX))));
    CallMethod<v1::DeleteRecordsRequest, v1::DeleteRecordsResponse>(
        transport_, endpoint, admin_methods::kDeleteRecords, group.request, {.deadline = deadline_},
        executor_,
        [self = shared_from_this(),
         indices = std::move(group.indices)](absl::StatusOr<v1::DeleteRecordsResponse> answer) {
          self->Answered(indices, std::move(answer));
        });
  }
}

void RecordDeletion::Answered(const std::vector<int>& indices,
                              absl::StatusOr<v1::DeleteRecordsResponse> answer) {
  if (answer.ok() && static_cast<size_t>(answer->partitions_size()) != indices.size()) {
    answer = MakeError(v1::UNKNOWN_SERVER_ERROR, "the leader answered for other partitions");
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    const int index = indices[i];
    if (!answer.ok()) {
      Failed(index, ErrorFromStatus(answer.status()));
      continue;
    }
    v1::DeleteRecordsResult& result = *answer->mutable_partitions(static_cast<int>(i));
    if (result.error().code() != v1::NONE) {
      response_.mutable_partitions(index)->set_log_start_offset(result.log_start_offset());
      Failed(index, result.error());
      continue;
    }
    *response_.mutable_partitions(index) = std::move(result);
    open_.erase(index);
  }
  if (--asking_ == 0) NextRound();
}

void RecordDeletion::Failed(int index, const v1::Error& error) {
  *response_.mutable_partitions(index)->mutable_error() = error;
  const bool may_repeat =
      request_.partitions(index).before_offset() >= 0 || HasNoEffect(error.code());
  if (!IsRetriable(error.code()) || !may_repeat) open_.erase(index);
}

void RecordDeletion::NextRound() {
  const MonotonicTime again = executor_.clock().Now() + pause_;
  if (open_.empty() || again + kMargin >= deadline_) return done_(std::move(response_));
  pause_ = std::min(pause_ * 2, kLongestPause);
  executor_.PostAt(again, [self = shared_from_this()] { self->FindLeaders(); });
}

}  // namespace conclave
