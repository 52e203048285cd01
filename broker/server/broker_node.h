#ifndef CONCLAVE_BROKER_SERVER_BROKER_NODE_H_
#define CONCLAVE_BROKER_SERVER_BROKER_NODE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "broker/server/controller_session.h"
#include "broker/server/metadata_follower.h"
#include "common/config/broker_config.h"
#include "common/executor/executor.h"
#include "common/identity/identity.h"
#include "common/random/random.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"

namespace conclave::broker {

// One broker: its session with the controllers, the metadata it follows, and the services that
// clients and administrators talk to.
//
// Everything happens on `executor`. What is passed by reference outlives the node, which is
// destroyed only after the executor has stopped.
class BrokerNode {
 public:
  struct Environment {
    Transport& transport;
    Executor& executor;
    Random random;
    // The process has to end. Called on the executor, at most once.
    std::function<void(const absl::Status&)> on_fatal;
    // Whether the broker takes part: registered and not fenced. Called on the executor.
    std::function<void(bool)> on_serving;
  };

  BrokerNode(const BrokerConfig& config, const Identity& identity, Environment environment);
  ~BrokerNode();

  void AddMethods(MethodTable& table);

  // Begins; `endpoint` is where clients reach this broker. On the executor.
  void Start(const std::string& endpoint);

  // Asks the controller to move away what this broker leads; `done` is called, once, when it may
  // go. On the executor.
  void Shutdown(std::function<void()> done);

  const MetadataImage& image() const { return metadata_.image(); }

 private:
  void AddAdminMethods(MethodTable& table);
  template <class Request, class Response>
  void Forward(MethodTable& table, const Method<Request, Response>& method, Repeatable repeatable);

  ControllerSession::Options SessionOptions(const std::string& endpoint);
  void OnReply(const v1::BrokerHeartbeatReply& reply);
  void OnMetadata();
  void Fail(const absl::Status& why);

  const BrokerConfig config_;
  const Identity identity_;
  Environment environment_;
  Executor& executor_;
  FailoverCaller controllers_;
  MetadataFollower metadata_;
  std::unique_ptr<ControllerSession> session_;
  // The image includes the registration.
  bool caught_up_ = false;
  bool serving_ = false;
  bool failed_ = false;
  std::string fenced_reason_;
  std::function<void()> shutdown_done_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_BROKER_NODE_H_
