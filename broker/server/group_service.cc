#include "broker/server/group_service.h"

#include <glog/logging.h>

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "broker/group/group_partition.h"
#include "broker/server/partition_lookup.h"
#include "common/error/error.h"
#include "common/rpc/controller_methods.h"
#include "common/rpc/group_methods.h"

namespace conclave::broker {
namespace {

constexpr Duration kCreationTimeout = Duration::Seconds(10);

// Beyond it offsets are no positions, and sums of them overflow.
constexpr int64_t kGreatestOffset = int64_t{1} << 62;

// What no client means. Whether the partition exists, and who may commit, the coordinator sees.
absl::Status CheckRequest(const MetadataImage& image, const v1::CommitOffsetsRequest& request) {
  for (const v1::OffsetCommit& commit : request.offsets()) {
    if (commit.offset() < 0 || commit.offset() > kGreatestOffset || commit.leader_epoch() < -1) {
      return MakeError(
          v1::INVALID_REQUEST,
          absl::StrCat("group ", request.group(), ": offset ", commit.offset(), " at leader epoch ",
                       commit.leader_epoch(), " is no position of ", commit.topic(), "-",
                       commit.partition(), "; nothing was committed. Offsets ",
                       "are 0 to 2^62, epochs -1 (unknown) or more"));
    }
    const auto id = TopicId::FromBytes(commit.topic_id());
    const Topic* topic = id && !commit.topic().empty() ? image.FindTopic(*id) : nullptr;
    if (topic == nullptr || topic->name == commit.topic()) continue;
    return ResolvePartition(image, {commit.topic(), commit.topic_id(), commit.partition()})
        .status();
  }
  return absl::OkStatus();
}

template <class Request>
absl::Status CheckRequest(const MetadataImage&, const Request&) {
  return absl::OkStatus();
}

}  // namespace

// A member's stream. The group that its first message names is the group it stays with.
class GroupService::Link : public MessageHandler<v1::MemberMessage> {
 public:
  using Stream = TypedServerStream<v1::MemberMessage, v1::CoordinatorMessage>;

  Link(GroupService& service, group::StreamId id, std::unique_ptr<Stream> stream)
      : service_(service), id_(id), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::MemberMessage message) override {
    if (ended_) return;
    if (!began_) {
      const auto host = service_.HostOf(message.group());
      if (!host.ok()) return End(host.status());
      began_ = true;
      host_ = (*host)->weak_from_this();
    }
    // A host that is gone has ended its streams.
    const auto host = host_.lock();
    if (host == nullptr) return;
    host->coordinator().MemberSays(id_, message, host->Now());
    host->Run();
  }

  void OnHalfClose() override { Closed(); }

  // Destroys this.
  void OnClosed(absl::Status) override {
    Closed();
    service_.links_.erase(id_);
  }

  void Send(const v1::CoordinatorMessage& message) {
    if (!ended_) stream_->Send(message);
  }
  void End(const absl::Status& why) {
    if (std::exchange(ended_, true)) return;
    stream_->Finish(why);
  }

 private:
  void Closed() {
    const auto host = host_.lock();
    host_.reset();
    if (host == nullptr) return;
    host->coordinator().StreamClosed(id_, host->Now());
    host->Run();
  }

  GroupService& service_;
  const group::StreamId id_;
  const std::unique_ptr<Stream> stream_;
  std::weak_ptr<GroupHost> host_;
  bool began_ = false;
  bool ended_ = false;
};

GroupService::GroupService(BrokerId self, std::vector<std::string> controllers,
                           const Random& random, ReplicaSet& replicas, Transport& transport,
                           Executor& executor)
    : self_(self),
      random_(random),
      replicas_(replicas),
      executor_(executor),
      controllers_(transport, executor, std::move(controllers),
                   {.attempt_timeout = Duration::Seconds(3)}) {}

GroupService::~GroupService() = default;

// --- Which groups are here

void GroupService::OnMetadata(const MetadataDelta* delta) {
  if (delta != nullptr) TellTopics(*delta);
  UpdateHosts();
}

void GroupService::TellTopics(const MetadataDelta& delta) {
  std::vector<group::GroupCoordinator::TopicChange> changes;
  std::vector<TopicId> deleted;
  for (const auto& [id, name] : delta.deleted_topics) {
    deleted.push_back(id);
    changes.push_back({name, std::nullopt});
  }
  for (const auto& [id, name] : delta.created_topics) {
    const Topic* topic = replicas_.image().FindTopic(id);
    if (topic == nullptr) continue;
    changes.push_back({name, group::TopicInfo{id, static_cast<int32_t>(topic->partitions.size())}});
  }
  if (changes.empty()) return;
  for (const auto& [partition, host] : std::map(hosts_)) {
    host->coordinator().TopicsChanged(changes, deleted, host->Now());
    host->Run();
  }
}

void GroupService::UpdateHosts() {
  const Topic* topic = replicas_.image().FindTopic(std::string_view(kOffsetsTopic));
  const auto leads = [&](int32_t partition) -> const replication::LeaderReplica* {
    if (topic == nullptr) return nullptr;
    Replica* replica = replicas_.Find({topic->id, PartitionIndex(partition)});
    return replica == nullptr ? nullptr : replica->leader();
  };
  for (auto it = hosts_.begin(); it != hosts_.end();) {
    const replication::LeaderReplica* leader = leads(it->first);
    if (leader != nullptr && leader->leader_epoch() == it->second->epoch()) {
      ++it;
      continue;
    }
    // What it says in farewell goes out before it goes.
    const std::shared_ptr<GroupHost> host = it->second;
    host->coordinator().Resign(topic == nullptr ? v1::NodeHint() : HintOf(*topic, it->first));
    host->Run();
    it = hosts_.erase(it);
  }
  if (topic == nullptr) return;
  for (size_t i = 0; i < topic->partitions.size(); ++i) {
    const auto partition = static_cast<int32_t>(i);
    if (hosts_.count(partition) > 0 || leads(partition) == nullptr) continue;
    group::CoordinatorConfig config;
    config.self = self_;
    auto host = std::make_shared<GroupHost>(
        PartitionId{topic->id, PartitionIndex(partition)}, config,
        random_.Fork(absl::StrCat("group host ", ++last_host_)),
        GroupHost::Outlets{
            .send =
                [this](group::StreamId stream, const v1::CoordinatorMessage& message) {
                  const auto link = links_.find(stream);
                  if (link != links_.end()) link->second->Send(message);
                },
            .end =
                [this](group::StreamId stream, const absl::Status& why) {
                  const auto link = links_.find(stream);
                  if (link != links_.end()) link->second->End(why);
                },
            .reply =
                [this](group::Reply reply) {
                  const auto it = requests_.find(reply.request);
                  if (it == requests_.end()) return;
                  const ReplyHandler handler = std::move(it->second);
                  requests_.erase(it);
                  handler(std::move(reply));
                }},
        replicas_, executor_);
    hosts_[partition] = host;
    host->Start();
  }
}

v1::NodeHint GroupService::HintOf(const Topic& topic, int32_t partition) const {
  v1::NodeHint hint;
  const Partition& state = topic.partitions.at(static_cast<size_t>(partition));
  hint.set_node_id(state.leader.value());
  hint.set_epoch(state.leader_epoch.value());
  if (const Broker* broker = replicas_.image().FindBroker(state.leader)) {
    hint.set_endpoint(broker->endpoint);
  }
  return hint;
}

absl::StatusOr<v1::FindCoordinatorResponse> GroupService::FindCoordinator(
    const std::string& group) {
  if (group.empty()) return MakeError(v1::INVALID_GROUP_ID, "a group's name is not empty");
  const Topic* topic = replicas_.image().FindTopic(std::string_view(kOffsetsTopic));
  if (topic == nullptr) {
    CreateOffsetsTopic();
    return MakeError(v1::COORDINATOR_NOT_AVAILABLE,
                     absl::StrCat(kOffsetsTopic, " is being made, for the first group; try again"));
  }
  const int32_t partition =
      group::PartitionOfGroup(group, static_cast<int32_t>(topic->partitions.size()));
  const v1::NodeHint hint = HintOf(*topic, partition);
  if (hint.node_id() < 0 || hint.endpoint().empty()) {
    return MakeError(v1::COORDINATOR_NOT_AVAILABLE,
                     absl::StrCat(kOffsetsTopic, "-", partition, ", which has group \"", group,
                                  "\", has no leader at present: ",
                                  topic->partitions[static_cast<size_t>(partition)].note));
  }
  v1::FindCoordinatorResponse response;
  response.set_broker_id(hint.node_id());
  response.set_endpoint(hint.endpoint());
  response.set_partition(partition);
  return response;
}

absl::StatusOr<GroupHost*> GroupService::HostOf(const std::string& group) {
  const auto found = FindCoordinator(group);
  if (!found.ok()) return found.status();
  const auto host = hosts_.find(found->partition());
  if (host != hosts_.end()) return host->second.get();
  v1::NodeHint hint;
  hint.set_node_id(found->broker_id());
  hint.set_endpoint(found->endpoint());
  return MakeError(v1::NOT_COORDINATOR,
                   absl::StrCat("broker ", self_.value(), " does not coordinate group \"", group,
                                "\"; broker ", found->broker_id(), " does"),
                   hint);
}

void GroupService::CreateOffsetsTopic() {
  if (std::exchange(creating_, true)) return;
  v1::CreateTopicsRequest request;
  v1::NewTopic* topic = request.add_topics();
  topic->set_name(kOffsetsTopic);
  topic->set_partitions(group::kOffsetsPartitions);
  // Offsets are kept until their group is forgotten, not for a time.
  (*topic->mutable_configs())["retention.ms"] = "-1";
  (*topic->mutable_configs())["segment.bytes"] = "104857600";
  controllers_.Call<v1::CreateTopicsRequest, v1::CreateTopicsResponse>(
      controller_methods::kCreateInternalTopics, request, Repeatable::kYes,
      executor_.clock().Now() + kCreationTimeout,
      [this](absl::StatusOr<v1::CreateTopicsResponse> response) {
        creating_ = false;
        const absl::Status status =
            response.ok() ? StatusFromError(response->topics(0).error()) : response.status();
        // Another broker may have been asked, too.
        if (status.ok() || ErrorCodeOf(status) == v1::TOPIC_ALREADY_EXISTS) return;
        LOG(WARNING) << kOffsetsTopic << " could not be made: " << Describe(status);
      });
}

// --- Calls

group::RequestId GroupService::NewRequest(ReplyHandler handler) {
  const group::RequestId id(++last_request_);
  requests_.emplace(id, std::move(handler));
  return id;
}

template <class Request, class Response>
void GroupService::AddCall(MethodTable& table, const Method<Request, Response>& method,
                           void (group::GroupCoordinator::*call)(group::RequestId, const Request&,
                                                                 group::Now)) {
  table.Unary<Request, Response>(
      method, executor_, [this, call](Request request, CallContext, Responder<Response> respond) {
        if (absl::Status good = CheckRequest(replicas_.image(), request); !good.ok()) {
          return respond(good);
        }
        const auto host = HostOf(request.group());
        if (!host.ok()) return respond(host.status());
        auto shared = std::make_shared<Responder<Response>>(std::move(respond));
        const group::RequestId id = NewRequest([shared](group::Reply reply) {
          if (!reply.status.ok()) return (*shared)(reply.status);
          (*shared)(std::get<Response>(std::move(reply.response)));
        });
        const std::shared_ptr<GroupHost> kept = (*host)->shared_from_this();
        (kept->coordinator().*call)(id, request, kept->Now());
        kept->Run();
      });
}

void GroupService::DescribeGroups(const v1::DescribeGroupsRequest& request,
                                  Responder<v1::DescribeGroupsResponse> respond) {
  struct Gathering {
    explicit Gathering(Responder<v1::DescribeGroupsResponse> r) : respond(std::move(r)) {}
    Responder<v1::DescribeGroupsResponse> respond;
    v1::DescribeGroupsResponse response;
    int open = 1;
    void Done() {
      if (--open == 0) respond(std::move(response));
    }
  };
  const auto gathering = std::make_shared<Gathering>(std::move(respond));
  for (const std::string& group : request.groups()) {
    v1::GroupDescription* description = gathering->response.add_groups();
    description->set_group(group);
    description->set_coordinator(-1);
  }
  for (int i = 0; i < request.groups_size(); ++i) {
    const auto host = HostOf(request.groups(i));
    if (!host.ok()) {
      *gathering->response.mutable_groups(i)->mutable_error() = ErrorFromStatus(host.status());
      continue;
    }
    ++gathering->open;
    const group::RequestId id = NewRequest([gathering, i](group::Reply reply) {
      if (!reply.status.ok()) {
        *gathering->response.mutable_groups(i)->mutable_error() = ErrorFromStatus(reply.status);
      } else {
        *gathering->response.mutable_groups(i) =
            std::get<v1::DescribeGroupsResponse>(reply.response).groups(0);
      }
      gathering->Done();
    });
    v1::DescribeGroupsRequest one;
    one.add_groups(request.groups(i));
    const std::shared_ptr<GroupHost> kept = (*host)->shared_from_this();
    kept->coordinator().DescribeGroups(id, one, kept->Now());
    kept->Run();
  }
  gathering->Done();
}

void GroupService::ListGroups(Responder<v1::ListGroupsResponse> respond) {
  struct Gathering {
    explicit Gathering(Responder<v1::ListGroupsResponse> r) : respond(std::move(r)) {}
    Responder<v1::ListGroupsResponse> respond;
    v1::ListGroupsResponse response;
    absl::Status failed;
    int open = 1;
    void Done() {
      if (--open > 0) return;
      if (!failed.ok()) return respond(failed);
      respond(std::move(response));
    }
  };
  const auto gathering = std::make_shared<Gathering>(std::move(respond));
  for (const auto& [partition, host] : std::map(hosts_)) {
    ++gathering->open;
    const group::RequestId id = NewRequest([gathering](group::Reply reply) {
      if (!reply.status.ok()) {
        // A list that lacks some would pass for a whole one.
        gathering->failed = reply.status;
      } else {
        gathering->response.MergeFrom(std::get<v1::ListGroupsResponse>(reply.response));
      }
      gathering->Done();
    });
    host->coordinator().ListGroups(id);
    host->Run();
  }
  gathering->Done();
}

void GroupService::AddMethods(MethodTable& table) {
  table.Unary<v1::FindCoordinatorRequest, v1::FindCoordinatorResponse>(
      group_methods::kFindCoordinator, executor_,
      [this](const v1::FindCoordinatorRequest& request, CallContext,
             Responder<v1::FindCoordinatorResponse> respond) {
        respond(FindCoordinator(request.group()));
      });
  table.Stream<v1::MemberMessage, v1::CoordinatorMessage>(
      group_methods::kMember, executor_, [this](std::unique_ptr<Link::Stream> stream) {
        const group::StreamId id(++last_stream_);
        auto link = std::make_unique<Link>(*this, id, std::move(stream));
        Link* raw = link.get();
        links_.emplace(id, std::move(link));
        raw->Start();
      });
  AddCall(table, group_methods::kCommitOffsets, &group::GroupCoordinator::CommitOffsets);
  AddCall(table, group_methods::kFetchOffsets, &group::GroupCoordinator::FetchOffsets);
  table.Unary<v1::DescribeGroupsRequest, v1::DescribeGroupsResponse>(
      group_methods::kDescribeGroups, executor_,
      [this](const v1::DescribeGroupsRequest& request, CallContext,
             Responder<v1::DescribeGroupsResponse> respond) {
        DescribeGroups(request, std::move(respond));
      });
  table.Unary<v1::ListGroupsRequest, v1::ListGroupsResponse>(
      group_methods::kListGroups, executor_,
      [this](const v1::ListGroupsRequest&, CallContext, Responder<v1::ListGroupsResponse> respond) {
        ListGroups(std::move(respond));
      });
}

}  // namespace conclave::broker
