#include "client/admin/admin_client.h"

#include <map>
#include <memory>
#include <utility>

#include "client/admin/leader_offsets.h"
#include "client/admin/record_deletion.h"
#include "common/rpc/admin_methods.h"

namespace conclave {

AdminClient::AdminClient(Options options, Transport& transport, Executor& executor, Random random)
    : timeout_(options.timeout),
      attempt_timeout_(options.attempt_timeout),
      transport_(transport),
      executor_(executor),
      caller_(transport, executor, std::move(options.bootstrap),
              {.attempt_timeout = options.attempt_timeout}),
      random_(random) {}

template <class Request, class Response>
void AdminClient::Call(const Method<Request, Response>& method, Request request,
                       Repeatable repeatable, Done<Response> done) {
  caller_.Call<Request, Response>(method, std::move(request), repeatable,
                                  executor_.clock().Now() + timeout_, std::move(done));
}

TopicId AdminClient::DrawTopicId() {
  std::lock_guard lock(random_mutex_);
  const uint64_t high = random_.Next();
  return TopicId::FromRandom(high, random_.Next());
}

void AdminClient::CreateTopics(v1::CreateTopicsRequest request,
                               Done<v1::CreateTopicsResponse> done) {
  for (v1::NewTopic& topic : *request.mutable_topics()) {
    if (topic.topic_id().empty()) topic.set_topic_id(DrawTopicId().ToBytes());
  }
  Call(admin_methods::kCreateTopics, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DeleteTopics(v1::DeleteTopicsRequest request,
                               Done<v1::DeleteTopicsResponse> done) {
  Call(admin_methods::kDeleteTopics, std::move(request), Repeatable::kNo, std::move(done));
}

void AdminClient::DescribeTopics(v1::DescribeTopicsRequest request,
                                 Done<v1::DescribeTopicsResponse> done) {
  Call(admin_methods::kDescribeTopics, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DescribeTopicsWithOffsets(v1::DescribeTopicsRequest request,
                                            Done<v1::DescribeTopicsResponse> done) {
  DescribeTopics(
      std::move(request),
      [this, done = std::move(done)](absl::StatusOr<v1::DescribeTopicsResponse> topics) mutable {
        if (!topics.ok()) return done(std::move(topics));
        DescribeCluster({}, [this, topics = *std::move(topics), done = std::move(done)](
                                absl::StatusOr<v1::DescribeClusterResponse> cluster) mutable {
          // Where the leaders are is a help; what they lead is known already.
          std::map<int32_t, std::string> brokers;
          if (cluster.ok()) {
            for (const v1::BrokerDescription& broker : cluster->brokers()) {
              brokers[broker.broker_id()] = broker.endpoint();
            }
          }
          FillLeaderOffsets(std::move(topics), brokers, executor_.clock().Now() + attempt_timeout_,
                            transport_, executor_, std::move(done));
        });
      });
}

void AdminClient::AlterConfigs(v1::AlterConfigsRequest request,
                               Done<v1::AlterConfigsResponse> done) {
  // Setting a key to a value twice is setting it once.
  Call(admin_methods::kAlterConfigs, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::ElectLeaders(v1::ElectLeadersRequest request,
                               Done<v1::ElectLeadersResponse> done) {
  // A second election finds the leader there, and changes nothing.
  Call(admin_methods::kElectLeaders, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DeleteRecords(v1::DeleteRecordsRequest request,
                                Done<v1::DeleteRecordsResponse> done) {
  const auto deletion =
      std::make_shared<RecordDeletion>(*this, transport_, executor_, std::move(request),
                                       executor_.clock().Now() + timeout_, std::move(done));
  executor_.Post([deletion] { deletion->Start(); });
}

void AdminClient::DescribeQuorum(v1::DescribeQuorumRequest request,
                                 Done<v1::DescribeQuorumResponse> done) {
  Call(admin_methods::kDescribeQuorum, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DescribeCluster(v1::DescribeClusterRequest request,
                                  Done<v1::DescribeClusterResponse> done) {
  Call(admin_methods::kDescribeCluster, std::move(request), Repeatable::kYes, std::move(done));
}

}  // namespace conclave
