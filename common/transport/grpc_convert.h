#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_CONVERT_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_CONVERT_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "common/buffer/buffer.h"

// Between our types and gRPC's; for the gRPC transport alone.
namespace conclave::grpc_transport {

// Shares the bytes with `buffer`, but for slices too small to be worth it.
grpc::ByteBuffer ToByteBuffer(const Buffer& buffer);

// Shares the bytes with what gRPC received.
Buffer FromByteBuffer(const grpc::ByteBuffer& bytes);

// With the status's v1::Error in the standard grpc-status-details-bin trailer.
grpc::Status ToGrpcStatus(const absl::Status& status);

// With the v1::Error that the details hold, if they do; else with gRPC's code and message, which
// `where` (such as "broker at localhost:7400") is put before.
absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& where);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_CONVERT_H_
