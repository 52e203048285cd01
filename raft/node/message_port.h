#ifndef CONCLAVE_RAFT_NODE_MESSAGE_PORT_H_
#define CONCLAVE_RAFT_NODE_MESSAGE_PORT_H_

#include <string>

#include "conclave/v1/raft.pb.h"

namespace conclave::raft {

// Where a node's messages leave. Called on the node's executor; does not block.
class MessagePort {
 public:
  virtual ~MessagePort() = default;

  // On its way to the controller at `endpoint`, or dropped: Raft sends again what matters.
  virtual void Send(const std::string& endpoint, const v1::RaftMessage& message) = 0;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_NODE_MESSAGE_PORT_H_
