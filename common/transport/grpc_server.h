#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/transport.h"

namespace conclave::grpc_transport {

// A gRPC server of the given methods, with health checking and reflection. Methods are registered
// by service, so that reflection lists them; their descriptors must be linked into the program.
absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(const std::string& endpoint,
                                                        std::vector<ServerMethod> methods);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_H_
