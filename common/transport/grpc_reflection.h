#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_REFLECTION_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_REFLECTION_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace conclave::grpc_transport {

// gRPC's reflection services, under the old package name and the new one, for a server that has
// `services` beside them. Answered by gRPC's callback threads: an answer is made from descriptors
// in memory, and the next request of a stream is read when it has been sent. The services outlive
// the server that they are registered with.
std::vector<std::unique_ptr<grpc::Service>> ReflectionServices(std::set<std::string> services);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_REFLECTION_H_
