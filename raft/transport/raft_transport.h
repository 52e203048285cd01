#ifndef CONCLAVE_RAFT_TRANSPORT_RAFT_TRANSPORT_H_
#define CONCLAVE_RAFT_TRANSPORT_RAFT_TRANSPORT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/executor/executor.h"
#include "common/rpc/client.h"
#include "common/rpc/raft_methods.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "raft/core/types.h"
#include "raft/node/message_port.h"

namespace conclave::raft {

// Carries a node's messages over a Transport: one stream to each controller, opened at the first
// message and again, with a growing pause, when it has broken. Messages for a peer that cannot be
// reached, or is too far behind, are dropped.
//
// Everything happens on `executor`. Destroyed after the executor has stopped.
class RaftTransport : public MessagePort {
 public:
  struct Receiver {
    std::function<void(const v1::RaftMessage&)> on_message;
    // The newest stream from `peer` broke.
    std::function<void(const ReplicaKey&)> on_stream_reset;
  };

  // Bytes that may wait for one peer before further messages are dropped.
  static constexpr size_t kMaxPendingBytes = 16 << 20;

  RaftTransport(Transport& transport, Executor& executor);
  ~RaftTransport() override;

  // Adds the service that takes in other controllers' streams.
  void AddMethods(MethodTable& table);
  // Where what comes in goes, from now on; before, it is dropped.
  void SetReceiver(Receiver receiver) { receiver_ = std::move(receiver); }

  void Send(const std::string& endpoint, const v1::RaftMessage& message) override;

 private:
  class Outbound;
  class Inbound;

  Transport& transport_;
  Executor& executor_;
  Receiver receiver_;
  std::map<std::string, std::unique_ptr<Outbound>> outbound_;
  std::map<Inbound*, std::unique_ptr<Inbound>> inbound_;
  // The newest stream of each peer.
  std::map<ReplicaKey, Inbound*> newest_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_TRANSPORT_RAFT_TRANSPORT_H_
