// The controller's services: which handler of the core answers which method, and when the answer
// may leave.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/controller_methods.h"
#include "controller/core/describe.h"
#include "controller/server/controller_node.h"

namespace conclave::controller {

template <class Response>
void ControllerNode::Answer(absl::StatusOr<Change<Response>> change, Responder<Response> respond) {
  if (!core_.active()) return respond(NotController());
  if (change.ok() && !Append(change->batches)) {
    return respond(MakeError(v1::CONTROLLER_CHANGED,
                             "the active controller lost its leadership with the change under way: "
                             "it may be made or not; look before trying again"));
  }
  const MetadataPosition newest = Newest();
  const bool changes = change.ok() && !change->batches.empty();
  if (changes) CompleteResponse(newest.index, change->response);
  PendingReplies::Release release = [change = std::move(change),
                                     respond = std::move(respond)](absl::Status committed) mutable {
    if (!committed.ok()) return respond(committed);
    if (!change.ok()) return respond(change.status());
    respond(std::move(change->response));
  };
  // A refusal, too, was made from records that are perhaps not committed yet. And no commit of its
  // own tells that this controller still led when it was made: others may know more by then.
  if (!changes) {
    release = [this, release = std::move(release)](absl::Status committed) mutable {
      if (!committed.ok()) return release(std::move(committed));
      ReleaseOnceConfirmed(std::move(release));
    };
  }
  if (newest.index <= applied_index_) {
    release(absl::OkStatus());
  } else {
    pending_.Wait(newest, std::move(release));
  }
  ArmCoreTimer();
}

template <class Request, class Response>
void ControllerNode::AddChangeMethod(
    MethodTable& table, const Method<Request, Response>& method,
    std::function<absl::StatusOr<Change<Response>>(const Request&, controller::Now)> handle) {
  table.Unary<Request, Response>(
      method, executor_,
      [this, handle = std::move(handle)](Request request, CallContext,
                                         Responder<Response> respond) {
        if (!core_.active()) return respond(NotController());
        if (pending_.size() >= kMaxPendingRequests) {
          return respond(MakeError(
              v1::OVERLOADED,
              absl::StrCat("controller ", config_.node_id.value(), " has ", kMaxPendingRequests,
                           " changes under way; try again in a moment")));
        }
        Answer(handle(request, Now()), std::move(respond));
      });
}

template <class Request, class Response>
void ControllerNode::AddReadMethod(MethodTable& table, const Method<Request, Response>& method,
                                   std::function<Response(const Request&)> read) {
  table.Unary<Request, Response>(
      method, executor_,
      [this, read = std::move(read)](Request request, CallContext, Responder<Response> respond) {
        ReleaseOnceConfirmed([read, request = std::move(request),
                              respond = std::move(respond)](absl::Status current) mutable {
          if (!current.ok()) return respond(current);
          respond(read(request));
        });
      });
}

void ControllerNode::AddAdminMethods(MethodTable& table) {
  AddChangeMethod<v1::CreateTopicsRequest, v1::CreateTopicsResponse>(
      table, admin_methods::kCreateTopics,
      [this](const v1::CreateTopicsRequest& request, controller::Now now) {
        return core_.CreateTopics(request, Requester::kUser, now);
      });
  AddChangeMethod<v1::CreateTopicsRequest, v1::CreateTopicsResponse>(
      table, controller_methods::kCreateInternalTopics,
      [this](const v1::CreateTopicsRequest& request, controller::Now now) {
        return core_.CreateTopics(request, Requester::kCluster, now);
      });
  AddChangeMethod<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse>(
      table, admin_methods::kDeleteTopics,
      [this](const v1::DeleteTopicsRequest& request, controller::Now now) {
        return core_.DeleteTopics(request, Requester::kUser, now);
      });
  AddChangeMethod<v1::AlterConfigsRequest, v1::AlterConfigsResponse>(
      table, admin_methods::kAlterConfigs,
      [this](const v1::AlterConfigsRequest& request, controller::Now now) {
        return core_.AlterConfigs(request, now);
      });
  AddChangeMethod<v1::ElectLeadersRequest, v1::ElectLeadersResponse>(
      table, admin_methods::kElectLeaders,
      [this](const v1::ElectLeadersRequest& request, controller::Now now) {
        return core_.ElectLeaders(request, now);
      });
  AddReadMethod<v1::DescribeTopicsRequest, v1::DescribeTopicsResponse>(
      table, admin_methods::kDescribeTopics, [this](const v1::DescribeTopicsRequest& request) {
        return DescribeTopics(core_.committed(), request);
      });
  AddReadMethod<v1::DescribeClusterRequest, v1::DescribeClusterResponse>(
      table, admin_methods::kDescribeCluster,
      [this](const v1::DescribeClusterRequest&) { return DescribeCluster(core_.committed()); });
  table.Unary<v1::DescribeQuorumRequest, v1::DescribeQuorumResponse>(
      admin_methods::kDescribeQuorum, executor_,
      [this](v1::DescribeQuorumRequest, CallContext,
             Responder<v1::DescribeQuorumResponse> respond) {
        const auto leader = raft_->core().leader();
        // The leader alone knows how far the others are; without one, any view is better than none.
        if (leader && leader->node != config_.node_id) return respond(NotController());
        respond(DescribeQuorum());
      });
}

void ControllerNode::AddControllerMethods(MethodTable& table) {
  AddChangeMethod<v1::RegisterBrokerRequest, v1::RegisterBrokerResponse>(
      table, controller_methods::kRegisterBroker,
      [this](const v1::RegisterBrokerRequest& request, controller::Now now) {
        return core_.RegisterBroker(request, now);
      });
  AddChangeMethod<v1::AlterPartitionRequest, v1::AlterPartitionResponse>(
      table, controller_methods::kAlterPartition,
      [this](const v1::AlterPartitionRequest& request, controller::Now now) {
        return core_.AlterPartition(request, now);
      });
  AddChangeMethod<v1::AllocateProducerIdsRequest, v1::AllocateProducerIdsResponse>(
      table, controller_methods::kAllocateProducerIds,
      [this](const v1::AllocateProducerIdsRequest& request, controller::Now now) {
        return core_.AllocateProducerIds(request, now);
      });
  table.Stream<v1::BrokerHeartbeat, v1::BrokerHeartbeatReply>(
      controller_methods::kBrokerSession, executor_,
      [this](std::unique_ptr<BrokerSessions::Stream> stream) {
        sessions_.Accept(std::move(stream));
      });
  table.Stream<v1::WatchMetadataRequest, v1::WatchMetadataResponse>(
      controller_methods::kWatchMetadata, executor_,
      [this](std::unique_ptr<MetadataWatches::Stream> stream) {
        watches_.Accept(std::move(stream));
      });
}

v1::DescribeQuorumResponse ControllerNode::DescribeQuorum() const {
  const raft::Status status = raft_->core().GetStatus();
  v1::DescribeQuorumResponse response;
  response.set_cluster_id(identity_.cluster_id.ToBytes());
  response.set_leader_id(status.leader ? status.leader->node.value() : kNoNode.value());
  response.set_term(status.term.value());
  response.set_commit_index(status.commit_index.value());
  const MonotonicTime now = Now().time;
  const auto describe = [&](const raft::ReplicaKey& key, const std::string& endpoint,
                            v1::QuorumMember* member) {
    member->set_node_id(key.node.value());
    member->set_directory_id(key.directory.ToBytes());
    member->set_endpoint(endpoint);
    if (key == status.self) {
      member->set_last_index(status.last.index.value());
      member->set_last_contact_ms(0);
      return;
    }
    for (const raft::PeerStatus& peer : status.peers) {
      if (peer.key != key) continue;
      member->set_last_index(peer.match.value());
      if (peer.last_contact != MonotonicTime()) {
        member->set_last_contact_ms((now - peer.last_contact).milliseconds());
      }
    }
  };
  for (const auto& voter : status.voters.members()) {
    describe(voter.key, voter.endpoint, response.add_voters());
  }
  for (const raft::PeerStatus& peer : status.peers) {
    if (peer.observer) describe(peer.key, peer.endpoint, response.add_observers());
  }
  return response;
}

}  // namespace conclave::controller
