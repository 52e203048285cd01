#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_OPTIONS_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_OPTIONS_H_

#include <grpcpp/support/channel_arguments.h>

namespace grpc {
class ServerBuilder;
}

// gRPC's settings, in one place.
namespace conclave::grpc_transport {

// The largest message either end takes in. What Conclave itself sends stays far below.
inline constexpr int kMaxMessageBytes = 64 << 20;

grpc::ChannelArguments ClientChannelArguments();
void ApplyServerOptions(grpc::ServerBuilder& builder);
// Of an accepted connection: what gRPC sets itself where it listens itself.
void SetSocketOptions(int connection);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_OPTIONS_H_
