#ifndef CONCLAVE_COMMON_TRANSPORT_LISTENING_SOCKETS_H_
#define CONCLAVE_COMMON_TRANSPORT_LISTENING_SOCKETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/process/file_descriptor.h"
#include "common/transport/host_port.h"

namespace conclave {

struct ListeningSockets {
  std::vector<FileDescriptor> sockets;  // Non-blocking.
  int port = 0;
};

// Listens on every address that the host stands for, all on one port; 0 picks a free one. [::]
// takes IPv4 as well. A port in use is refused by name (INVALID_CONFIG): never shared, unlike what
// gRPC does by itself, which is also content when one of the addresses can be had.
absl::StatusOr<ListeningSockets> Listen(const HostPort& endpoint);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_LISTENING_SOCKETS_H_
