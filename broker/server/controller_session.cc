#include "broker/server/controller_session.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/controller_methods.h"
#include "common/text/utf8.h"

namespace conclave::broker {
namespace {

// "Reconnects start after 20 ms": within the grace that keeps a session from ending early.
constexpr Duration kFirstPause = Duration::Milliseconds(20);
constexpr Duration kLongestPause = Duration::Milliseconds(500);
constexpr Duration kRegistrationTimeout = Duration::Seconds(5);
// Each heartbeat is answered at once. A controller that stands still breaks no stream, and whoever
// is elected in its place gives a broker one session's time to come.
constexpr int64_t kSilentHeartbeats = 4;

// Whether the registration itself is void, so that a new one is needed.
bool NeedsRegistration(v1::ErrorCode code) {
  return code == v1::STALE_BROKER_EPOCH || code == v1::BROKER_ID_NOT_REGISTERED;
}

}  // namespace

ControllerSession::ControllerSession(Options options, Events events, Transport& transport,
                                     Executor& executor)
    : options_(std::move(options)),
      events_(std::move(events)),
      transport_(transport),
      executor_(executor),
      controllers_(options_.controllers),
      pause_(kFirstPause) {}

ControllerSession::~ControllerSession() = default;

void ControllerSession::Start() {
  Register();
  Beat();
}

void ControllerSession::SetReady() {
  ready_ = true;
  SendHeartbeat();
}

void ControllerSession::SetReport(const ReplicaReport& report) {
  report_.Clear();
  for (const auto& [id, damage] : report.damaged) {
    v1::DamagedReplica* damaged = report_.add_damaged();
    damaged->set_topic_id(id.topic.ToBytes());
    damaged->set_partition(id.index.value());
    // Paths are any bytes.
    damaged->set_what(ToValidUtf8(damage.what));
    damaged->set_open(damage.open);
  }
  for (const auto& [id, end] : report.ends) {
    v1::ReplicaEnd* replica_end = report_.add_replica_ends();
    replica_end->set_topic_id(id.topic.ToBytes());
    replica_end->set_partition(id.index.value());
    replica_end->set_last_epoch(end.last_epoch.value());
    replica_end->set_log_end_offset(end.log_end.value());
  }
  SendHeartbeat();
}

void ControllerSession::WantShutdown() {
  wants_shutdown_ = true;
  SendHeartbeat();
}

void ControllerSession::Hurry() { SendHeartbeat(); }

void ControllerSession::Register() {
  const std::string endpoint = controllers_.current();
  CallMethod<v1::RegisterBrokerRequest, v1::RegisterBrokerResponse>(
      transport_, endpoint, controller_methods::kRegisterBroker, options_.registration,
      {.deadline = executor_.clock().Now() + kRegistrationTimeout}, executor_,
      [this, endpoint](absl::StatusOr<v1::RegisterBrokerResponse> response) {
        Registered(endpoint, std::move(response));
      });
}

void ControllerSession::Registered(const std::string& endpoint,
                                   absl::StatusOr<v1::RegisterBrokerResponse> response) {
  if (!response.ok()) {
    if (!IsRetriable(response.status())) return events_.on_refused(response.status());
    return Retry(response.status(), endpoint);
  }
  epoch_ = BrokerEpoch(response->broker_epoch());
  endpoint_ = endpoint;
  last_trouble_.clear();
  LOG(INFO) << "registered with the controller at " << endpoint << ", broker epoch " << *epoch_;
  events_.on_registered(*epoch_);
  OpenStream();
}

void ControllerSession::OpenStream() {
  heard_ = false;
  last_heard_ = executor_.clock().Now();
  MessageHandler<v1::BrokerHeartbeatReply>* const handler = this;
  stream_ = std::make_unique<Stream>(transport_, endpoint_, controller_methods::kBrokerSession,
                                     CallOptions{}, executor_, handler);
  SendHeartbeat();
}

void ControllerSession::OnMessage(v1::BrokerHeartbeatReply reply) {
  last_heard_ = executor_.clock().Now();
  if (!std::exchange(heard_, true)) {
    pause_ = kFirstPause;
    last_trouble_.clear();
  }
  events_.on_reply(reply);
}

void ControllerSession::OnClosed(absl::Status status) {
  stream_.reset();
  const v1::ErrorCode code = ErrorCodeOf(status);
  if (NeedsRegistration(code)) {
    LOG(WARNING) << "the registration does not hold any more: " << Describe(status);
    epoch_.reset();
  } else if (!status.ok() && !IsRetriable(code)) {
    return events_.on_refused(status);
  }
  Retry(status, endpoint_);
}

void ControllerSession::Retry(const absl::Status& why, const std::string& endpoint) {
  // A stream that held is tried again at the same place first: it may be back within the grace.
  if (!heard_ || ErrorFromStatus(why).has_hint()) controllers_.Failed(endpoint, why);
  heard_ = false;
  if (const std::string trouble = Describe(why); trouble != last_trouble_) {
    LOG(WARNING) << "no session with the controller at " << endpoint << ": " << trouble;
    last_trouble_ = trouble;
  }
  endpoint_ = controllers_.current();
  executor_.PostAfter(pause_, [this] {
    if (epoch_) {
      OpenStream();
    } else {
      Register();
    }
  });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void ControllerSession::SendHeartbeat() {
  if (stream_ == nullptr) return;
  v1::BrokerHeartbeat heartbeat = report_;
  heartbeat.set_cluster_id(options_.registration.cluster_id());
  heartbeat.set_broker_id(options_.registration.broker_id());
  heartbeat.set_broker_epoch(epoch_->value());
  heartbeat.set_metadata_index(events_.metadata_index().value());
  heartbeat.set_ready(ready_);
  heartbeat.set_wants_shutdown(wants_shutdown_);
  stream_->Send(heartbeat);
}

bool ControllerSession::IsControllerSilent() const {
  return stream_ != nullptr &&
         executor_.clock().Now() - last_heard_ >= options_.heartbeat_interval * kSilentHeartbeats;
}

void ControllerSession::Beat() {
  if (IsControllerSilent()) {
    stream_.reset();
    // Not there again first.
    heard_ = false;
    Retry(MakeError(v1::NETWORK_EXCEPTION, "heartbeats are not answered any more"), endpoint_);
  }
  SendHeartbeat();
  executor_.PostAfter(options_.heartbeat_interval, [this] { Beat(); });
}

}  // namespace conclave::broker
