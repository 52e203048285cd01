#ifndef CONCLAVE_COMMON_TRANSPORT_MEMORY_TRANSPORT_H_
#define CONCLAVE_COMMON_TRANSPORT_MEMORY_TRANSPORT_H_

#include <memory>
#include <string>

#include "common/transport/transport.h"
#include "common/transport/wire.h"

namespace conclave {

// A network within one process: the threaded tests' with immediate delivery, and the simulation's
// with its own Wire. Thread-safe. Outlives its transports, servers and streams.
class MemoryNetwork {
 public:
  // Delivers at once, on the receiver's executor.
  MemoryNetwork();
  explicit MemoryNetwork(std::unique_ptr<Wire> wire);
  ~MemoryNetwork();

  // The network as the node `name` sees it. Listen takes "host:0" as any free port.
  std::unique_ptr<Transport> Join(const std::string& name);

  // Breaks every stream between the two nodes, as a reset would: both ends close as UNAVAILABLE.
  void BreakStreams(const std::string& a, const std::string& b);
  // The node's process dies: its servers vanish, and its peers' ends close as UNAVAILABLE. Its own
  // ends hear nothing any more. Where its executors are threads they have stopped: the calls that
  // are open go with the servers.
  void Kill(const std::string& name);

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_MEMORY_TRANSPORT_H_
