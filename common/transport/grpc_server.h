#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/grpc_poller.h"
#include "common/transport/transport.h"

namespace conclave::grpc_transport {

// A gRPC server of the given methods, with health checking and reflection, which lists their
// services; their descriptors must be linked into the program. It uses `poller`, or one of its own
// where that serves another server already.
absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(const std::string& endpoint,
                                                        std::vector<ServerMethod> methods,
                                                        std::shared_ptr<Poller> poller);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_
