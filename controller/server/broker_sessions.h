#ifndef CONCLAVE_CONTROLLER_SERVER_BROKER_SESSIONS_H_
#define CONCLAVE_CONTROLLER_SERVER_BROKER_SESSIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/server.h"
#include "common/types/ids.h"
#include "conclave/v1/controller.pb.h"

namespace conclave::controller {

// The brokers' session streams: the first heartbeat opens a session's stream, the end of the stream
// breaks it. Not thread-safe; on the controller's executor.
class BrokerSessions {
 public:
  using Stream = TypedServerStream<v1::BrokerHeartbeat, v1::BrokerHeartbeatReply>;

  // What the controller makes of it. A refusal of either ends the stream with it.
  struct Events {
    std::function<absl::Status(BrokerId, BrokerEpoch)> opened;
    std::function<absl::StatusOr<v1::BrokerHeartbeatReply>(const v1::BrokerHeartbeat&)> heartbeat;
    std::function<void(BrokerId, BrokerEpoch)> broken;
  };

  explicit BrokerSessions(Events events);
  ~BrokerSessions();

  void Accept(std::unique_ptr<Stream> stream);
  // This controller does not lead any more: brokers go to the one that does.
  void CloseAll(const absl::Status& why);

 private:
  class Session;

  const Events events_;
  // By number, in the order they came: closing all of them is an order that can be repeated.
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  uint64_t last_session_ = 0;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_SERVER_BROKER_SESSIONS_H_
