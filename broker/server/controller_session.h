#ifndef CONCLAVE_BROKER_SERVER_CONTROLLER_SESSION_H_
#define CONCLAVE_BROKER_SERVER_CONTROLLER_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "broker/partition/replica_report.h"
#include "common/executor/executor.h"
#include "common/rpc/client.h"
#include "common/rpc/failover_caller.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::broker {

// A broker's session with the active controller: registers the process, keeps the session stream
// open to whichever controller leads, and sends heartbeats on it. Registers anew where the
// controller says that the registration does not hold any more.
//
// Not thread-safe; on `executor`. What is passed by reference outlives it; destroyed after the
// executor has stopped.
class ControllerSession : private MessageHandler<v1::BrokerHeartbeatReply> {
 public:
  struct Options {
    v1::RegisterBrokerRequest registration;
    std::vector<std::string> controllers;
    Duration heartbeat_interval;
  };

  struct Events {
    // How far the broker's image has come, for heartbeats.
    std::function<LogIndex()> metadata_index;
    // Registered under this epoch; may happen again in the life of the process.
    std::function<void(BrokerEpoch)> on_registered;
    std::function<void(const v1::BrokerHeartbeatReply&)> on_reply;
    // The controller refuses this broker for good: the process is to end.
    std::function<void(const absl::Status&)> on_refused;
  };

  ControllerSession(Options options, Events events, Transport& transport, Executor& executor);
  ~ControllerSession() override;

  void Start();
  // From now on heartbeats say that logs and producer state are recovered. Sends one at once.
  void SetReady();
  // From now on heartbeats tell this of the replicas. Sends one at once.
  void SetReport(const ReplicaReport& report);
  // From now on heartbeats ask to be let go. Sends one at once.
  void WantShutdown();
  // A heartbeat now, for example because the image has come far enough to be unfenced.
  void Hurry();

  std::optional<BrokerEpoch> epoch() const { return epoch_; }

 private:
  using Stream = TypedClientStream<v1::BrokerHeartbeat, v1::BrokerHeartbeatReply>;

  void Register();
  void Registered(const std::string& endpoint, absl::StatusOr<v1::RegisterBrokerResponse> response);
  void OpenStream();
  void OnMessage(v1::BrokerHeartbeatReply reply) override;
  void OnClosed(absl::Status status) override;
  void Retry(const absl::Status& why, const std::string& endpoint);
  void SendHeartbeat();
  void Beat();
  bool IsControllerSilent() const;

  const Options options_;
  const Events events_;
  Transport& transport_;
  Executor& executor_;
  EndpointChooser controllers_;

  std::optional<BrokerEpoch> epoch_;
  std::string endpoint_;
  std::unique_ptr<Stream> stream_;
  bool heard_ = false;  // A reply came on this stream.
  // When the last one came, or the stream was opened.
  MonotonicTime last_heard_;
  bool ready_ = false;
  // What heartbeats tell of the replicas, and nothing else.
  v1::BrokerHeartbeat report_;
  bool wants_shutdown_ = false;
  Duration pause_;
  std::string last_trouble_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_CONTROLLER_SESSION_H_
