#ifndef CONCLAVE_BROKER_SERVER_GROUP_SERVICE_H_
#define CONCLAVE_BROKER_SERVER_GROUP_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/partition/replica_set.h"
#include "broker/server/group_host.h"
#include "common/executor/executor.h"
#include "common/metadata/delta.h"
#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "conclave/v1/group.pb.h"

namespace conclave::broker {

inline constexpr char kOffsetsTopic[] = "__consumer_offsets";

// Consumer groups (group.proto): finds their coordinators, and is the coordinator of those whose
// partition of __consumer_offsets this broker leads. The topic is made when it is first needed.
//
// Not thread-safe; on the partitions' executor; destroyed after that has stopped. What is passed by
// reference outlives it.
class GroupService {
 public:
  GroupService(BrokerId self, std::vector<std::string> controllers, const Random& random,
               ReplicaSet& replicas, Transport& transport, Executor& executor);
  ~GroupService();

  void AddMethods(MethodTable& table);

  // The replicas have taken in what changed; null: everything may have.
  void OnMetadata(const MetadataDelta* delta);

 private:
  class Link;
  using ReplyHandler = std::function<void(group::Reply)>;

  void UpdateHosts();
  void TellTopics(const MetadataDelta& delta);
  // The host of the group's partition. NOT_COORDINATOR with a hint, or COORDINATOR_NOT_AVAILABLE.
  absl::StatusOr<GroupHost*> HostOf(const std::string& group);
  v1::NodeHint HintOf(const Topic& topic, int32_t partition) const;
  absl::StatusOr<v1::FindCoordinatorResponse> FindCoordinator(const std::string& group);
  void CreateOffsetsTopic();

  template <class Request, class Response>
  void AddCall(MethodTable& table, const Method<Request, Response>& method,
               void (group::GroupCoordinator::*call)(group::RequestId, const Request&, group::Now));
  void DescribeGroups(const v1::DescribeGroupsRequest& request,
                      Responder<v1::DescribeGroupsResponse> respond);
  void ListGroups(Responder<v1::ListGroupsResponse> respond);
  group::RequestId NewRequest(ReplyHandler handler);

  const BrokerId self_;
  Random random_;
  ReplicaSet& replicas_;
  Executor& executor_;
  FailoverCaller controllers_;
  bool creating_ = false;
  // By partition.
  std::map<int32_t, std::shared_ptr<GroupHost>> hosts_;
  uint64_t last_host_ = 0;
  uint64_t last_stream_ = 0;
  uint64_t last_request_ = 0;
  std::map<group::StreamId, std::unique_ptr<Link>> links_;
  std::map<group::RequestId, ReplyHandler> requests_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_GROUP_SERVICE_H_
