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

BrokerNode::BrokerNode(const BrokerConfig& config, const Identity& identity,
                       Environment environment)
    : config_(config),
      identity_(identity),
      environment_(std::move(environment)),
      executor_(environment_.executor),
      controllers_(environment_.transport, executor_, Texts(config.controllers),
                   {.attempt_timeout = Duration::Seconds(5)}),
      metadata_(identity.cluster_id, config.broker_id, Texts(config.controllers),
                {.on_change = [this](const MetadataImage&, const MetadataDelta&) { OnMetadata(); },
                 .on_corrupt = [this](const absl::Status& why) { Fail(why); }},
                environment_.transport, executor_) {}

BrokerNode::~BrokerNode() = default;

void BrokerNode::AddMethods(MethodTable& table) {
  AddAdminMethods(table);
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

void BrokerNode::Start(const std::string& endpoint) {
  session_ = std::make_unique<ControllerSession>(
      SessionOptions(endpoint),
      ControllerSession::Events{
          .metadata_index = [this] { return image().position().index; },
          .on_registered =
              [this](BrokerEpoch) {
                caught_up_ = false;
                OnMetadata();
              },
          .on_reply = [this](const v1::BrokerHeartbeatReply& reply) { OnReply(reply); },
          .on_refused = [this](const absl::Status& why) { Fail(why); }},
      environment_.transport, executor_);
  session_->Start();
  session_->SetReady();
  metadata_.Start();
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
  return options;
}

void BrokerNode::Shutdown(std::function<void()> done) {
  if (session_ == nullptr || !session_->epoch()) return done();
  shutdown_done_ = std::move(done);
  session_->WantShutdown();
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
  Forward(table, admin_methods::kDescribeTopics, Repeatable::kYes);
  Forward(table, admin_methods::kDescribeCluster, Repeatable::kYes);
  Forward(table, admin_methods::kDescribeQuorum, Repeatable::kYes);
}

void BrokerNode::OnMetadata() {
  const auto epoch = session_ == nullptr ? std::nullopt : session_->epoch();
  if (!epoch || caught_up_) return;
  const Broker* self = image().FindBroker(config_.broker_id);
  if (self == nullptr || self->epoch != *epoch) return;
  caught_up_ = true;
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
