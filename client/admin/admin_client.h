#ifndef CONCLAVE_CLIENT_ADMIN_ADMIN_CLIENT_H_
#define CONCLAVE_CLIENT_ADMIN_ADMIN_CLIENT_H_

#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/method.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/admin.pb.h"

namespace conclave {

// Administers a cluster: topics, settings, brokers and the controllers' quorum.
//
// Any broker or controller takes any request, so each is sent to one of the bootstrap endpoints,
// and to the next one when that cannot be reached or is not ready. A request is sent again only
// where the attempt before certainly had no effect, or where repeating it has none either: topics
// are created under an id that the client draws, so a creation whose answer was lost is recognised
// and not refused. Where the outcome stays unknown the error says so (HasNoEffect is false).
//
// Requests may be made from any thread; `done` is called on the executor, once, unless that stops
// first. Transport and executor outlive the client.
class AdminClient {
 public:
  struct Options {
    // host:port of brokers, controllers or both; at least one.
    std::vector<std::string> bootstrap;
    // How long a request is tried for, all attempts together.
    Duration timeout = Duration::Seconds(30);
    // How long one endpoint is given to answer before its connection is given up.
    Duration attempt_timeout = Duration::Seconds(10);
  };

  template <class Response>
  using Done = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

  AdminClient(Options options, Transport& transport, Executor& executor, Random random);

  // Outcomes of single topics stand in the response; see admin.proto.
  void CreateTopics(v1::CreateTopicsRequest request, Done<v1::CreateTopicsResponse> done);
  void DeleteTopics(v1::DeleteTopicsRequest request, Done<v1::DeleteTopicsResponse> done);
  void DescribeTopics(v1::DescribeTopicsRequest request, Done<v1::DescribeTopicsResponse> done);
  // The same, with the bounds of each partition's log, which its leader is asked for; absent where
  // it does not answer.
  void DescribeTopicsWithOffsets(v1::DescribeTopicsRequest request,
                                 Done<v1::DescribeTopicsResponse> done);
  void AlterConfigs(v1::AlterConfigsRequest request, Done<v1::AlterConfigsResponse> done);
  void ElectLeaders(v1::ElectLeadersRequest request, Done<v1::ElectLeadersResponse> done);
  // Named by topic name. The partitions' leaders are found and asked, and asked again where they
  // move; each partition has its result. An error in it that is REQUEST_TIMED_OUT or
  // NETWORK_EXCEPTION leaves open what comes of the deletion yet.
  void DeleteRecords(v1::DeleteRecordsRequest request, Done<v1::DeleteRecordsResponse> done);
  void DescribeQuorum(v1::DescribeQuorumRequest request, Done<v1::DescribeQuorumResponse> done);
  void DescribeCluster(v1::DescribeClusterRequest request, Done<v1::DescribeClusterResponse> done);

 private:
  template <class Request, class Response>
  void Call(const Method<Request, Response>& method, Request request, Repeatable repeatable,
            Done<Response> done);
  TopicId DrawTopicId();

  const Duration timeout_;
  const Duration attempt_timeout_;
  Transport& transport_;
  Executor& executor_;
  FailoverCaller caller_;
  std::mutex random_mutex_;
  Random random_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_ADMIN_ADMIN_CLIENT_H_
