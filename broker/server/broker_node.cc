#include "broker/server/broker_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/server/cluster_metadata.h"
#include "common/error/error.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/metadata_methods.h"

namespace conclave::broker {
namespace {

// Of a forwarded request whose client set no deadline.
constexpr Duration kForwardTimeout = Duration::Seconds(30);
// The client hears what went wrong before its own deadline cuts it off.
constexpr Duration kForwardMargin = Duration::Milliseconds(50);

std::vector<std::string> Texts(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) texts.push_back(ToString(endpoint));
  return texts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerNode>> BrokerNode::Create(const BrokerConfig& config,
                                                               const Identity& identity,
                                                               Environment environment) {
  auto directory = DataDirectory::Open(environment.fs, config.data_dir);
  if (!directory.ok()) return directory.status();
  return std::unique_ptr<BrokerNode>(
      new BrokerNode(config, identity, std::move(environment), *std::move(directory)));
}

BrokerNode::BrokerNode(const BrokerConfig& config, const Identity& identity,
                       Environment environment, std::unique_ptr<DataDirectory> directory)
    : config_(config),
      identity_(identity),
      environment_(std::move(environment)),
      executor_(environment_.executor),
      controllers_(environment_.transport, executor_, Texts(config.controllers),
                   {.attempt_timeout = Duration::Seconds(5)}),
      metadata_(
          identity.cluster_id, config.broker_id, Texts(config.controllers),
          {.on_change = [this](const v1::WatchMetadataResponse& update) { OnMetadata(update); },
           .on_corrupt = [this](const absl::Status& why) { Fail(why); }},
          environment_.transport, executor_),
      clean_stop_(directory->clean_stop()),
      replicas_(ReplicaOptions(), ReplicaEnvironment(), std::move(directory)),
      producer_ids_(
          config.broker_id, Texts(config.controllers), [this] { return replicas_.broker_epoch(); },
          environment_.transport, environment_.partitions),
      produce_(replicas_, producer_ids_, environment_.partitions),
      fetch_(replicas_, environment_.partitions),
      delete_records_(replicas_, environment_.partitions),
      groups_(config.broker_id, Texts(config.controllers), environment_.random.Fork("groups"),
              replicas_, environment_.transport, environment_.partitions) {
  replicas_.SetObserver([this](const MetadataDelta* delta) { groups_.OnMetadata(delta); });
}

ReplicaSet::Options BrokerNode::ReplicaOptions() const {
  ReplicaSet::Options options;
  options.cluster_id = identity_.cluster_id;
  options.self = config_.broker_id;
  options.replica_lag_time_max = config_.replica_lag_time_max;
  options.controllers = Texts(config_.controllers);
  options.file_delete_delay = config_.file_delete_delay;
  options.free_bytes_min = config_.free_bytes_min;
  options.tail_bytes = config_.tail_bytes;
  options.retention_check_interval = config_.retention_check_interval;
  return options;
}

ReplicaSet::Environment BrokerNode::ReplicaEnvironment() {
  return {
      .transport = environment_.transport,
      .executor = environment_.partitions,
      .background = environment_.background,
      .fs = environment_.fs,
      .syncs = environment_.syncs,
      .on_fatal = [this](const absl::Status& why) { executor_.Post([this, why] { Fail(why); }); },
      .on_report =
          [this](const ReplicaReport& report) {
            executor_.Post([this, report] { session_->SetReport(report); });
          }};
}

BrokerNode::~BrokerNode() = default;

void BrokerNode::AddMethods(MethodTable& table) {
  AddAdminMethods(table);
  replicas_.AddMethods(table);
  produce_.AddMethods(table);
  fetch_.AddMethods(table);
  delete_records_.AddMethods(table);
  groups_.AddMethods(table);
  table.Unary<v1::GetMetadataRequest, v1::GetMetadataResponse>(
      metadata_methods::kGetMetadata, executor_,
      [this](v1::GetMetadataRequest request, CallContext,
             Responder<v1::GetMetadataResponse> respond) {
        if (image().position().index == LogIndex()) {
          return respond(MakeError(v1::NOT_READY, "this broker has no metadata yet"));
        }
        respond(ClusterMetadata(image(), request));
      });
}

void BrokerNode::Abandon() {
  const absl::Status kept = replicas_.Abandon();
  if (!kept.ok()) LOG(WARNING) << "the next start will recover: " << Describe(kept);
}

void BrokerNode::Start(const std::string& endpoint) {
  session_ = std::make_unique<ControllerSession>(
      SessionOptions(endpoint),
      ControllerSession::Events{
          .metadata_index = [this] { return image().position().index; },
          .on_registered =
              [this](BrokerEpoch) {
                caught_up_ = false;
                TakePartOnceCaughtUp();
              },
          .on_reply = [this](const v1::BrokerHeartbeatReply& reply) { OnReply(reply); },
          .on_refused = [this](const absl::Status& why) { Fail(why); }},
      environment_.transport, executor_);
  session_->Start();
  metadata_.Start();
  environment_.partitions.Post(
      [this] { replicas_.Recover([this] { executor_.Post([this] { session_->SetReady(); }); }); });
}

ControllerSession::Options BrokerNode::SessionOptions(const std::string& endpoint) {
  ControllerSession::Options options;
  options.controllers = Texts(config_.controllers);
  options.heartbeat_interval = config_.heartbeat_interval;
  v1::RegisterBrokerRequest& registration = options.registration;
  registration.set_cluster_id(identity_.cluster_id.ToBytes());
  registration.set_broker_id(config_.broker_id.value());
  const uint64_t high = environment_.random.Next();
  registration.set_incarnation_id(
      IncarnationId::FromRandom(high, environment_.random.Next()).ToBytes());
  registration.set_endpoint(endpoint);
  registration.add_directory_ids(identity_.directory_id.ToBytes());
  registration.set_rack(config_.rack);
  registration.set_clean_stop_epoch(clean_stop_.value_or(BrokerEpoch()).value());
  return options;
}

void BrokerNode::Shutdown(std::function<void()> done) {
  if (session_ == nullptr || !session_->epoch()) return done();
  shutdown_done_ = std::move(done);
  session_->WantShutdown();
}

void BrokerNode::Close(std::function<void(const absl::Status&)> done) {
  environment_.partitions.Post(
      [this, done = std::move(done)]() mutable { replicas_.Close(std::move(done)); });
}

template <class Request, class Response>
void BrokerNode::Forward(MethodTable& table, const Method<Request, Response>& method,
                         Repeatable repeatable) {
  table.Unary<Request, Response>(
      method, executor_,
      [this, method, repeatable](Request request, CallContext context,
                                 Responder<Response> respond) {
        const MonotonicTime deadline =
            std::min(context.deadline - kForwardMargin, executor_.clock().Now() + kForwardTimeout);
        controllers_.Call<Request, Response>(
            method, std::move(request), repeatable, deadline,
            [respond = std::move(respond)](absl::StatusOr<Response> response) mutable {
              respond(std::move(response));
            });
      });
}

void BrokerNode::AddAdminMethods(MethodTable& table) {
  // A client that can repeat a creation names its topics' ids, and repeats it itself.
  Forward(table, admin_methods::kCreateTopics, Repeatable::kNo);
  Forward(table, admin_methods::kDeleteTopics, Repeatable::kNo);
  Forward(table, admin_methods::kAlterConfigs, Repeatable::kYes);
  Forward(table, admin_methods::kElectLeaders, Repeatable::kYes);
  Forward(table, admin_methods::kDescribeTopics, Repeatable::kYes);
  Forward(table, admin_methods::kDescribeCluster, Repeatable::kYes);
  Forward(table, admin_methods::kDescribeQuorum, Repeatable::kYes);
}

void BrokerNode::OnMetadata(const v1::WatchMetadataResponse& update) {
  // The partitions keep an image of their own, for they have a thread of their own.
  environment_.partitions.Post([this, update] { replicas_.OnMetadata(update); });
  TakePartOnceCaughtUp();
}

void BrokerNode::TakePartOnceCaughtUp() {
  const auto epoch = session_ == nullptr ? std::nullopt : session_->epoch();
  if (!epoch || caught_up_) return;
  const Broker* self = image().FindBroker(config_.broker_id);
  if (self == nullptr || self->epoch != *epoch) return;
  caught_up_ = true;
  environment_.partitions.Post([this, epoch = *epoch] { replicas_.TakePart(epoch); });
  session_->Hurry();
}

void BrokerNode::OnReply(const v1::BrokerHeartbeatReply& reply) {
  metadata_.ActiveCommitIndex(LogIndex(reply.commit_index()));
  if (reply.fenced() && reply.fenced_reason() != fenced_reason_) {
    LOG(INFO) << "fenced: " << reply.fenced_reason();
  }
  fenced_reason_ = reply.fenced_reason();
  if (serving_ == reply.fenced()) {
    serving_ = !reply.fenced();
    if (serving_) LOG(INFO) << "active";
    environment_.on_serving(serving_);
  }
  if (reply.may_stop() && shutdown_done_) std::exchange(shutdown_done_, nullptr)();
}

void BrokerNode::Fail(const absl::Status& why) {
  if (std::exchange(failed_, true)) return;
  LOG(ERROR) << "broker " << config_.broker_id << " cannot go on: " << Describe(why);
  environment_.on_fatal(why);
}

}  // namespace conclave::broker
