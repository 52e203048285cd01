#ifndef CONCLAVE_COMMON_TRANSPORT_REFLECTION_H_
#define CONCLAVE_COMMON_TRANSPORT_REFLECTION_H_

#include <set>
#include <string>
#include <utility>

#include "grpc/reflection/v1/reflection.pb.h"

namespace conclave {

// What a server says of itself to clients of gRPC's reflection: the services it has, and the
// descriptors of whatever protobuf is linked into the program. As gRPC's own plugin, which is not
// used because it is a synchronous service, with threads and queues of its own a server.
//
// Immutable, so thread-safe.
class Reflection {
 public:
  // `services`: full names, as "conclave.v1.AdminService".
  explicit Reflection(std::set<std::string> services) : services_(std::move(services)) {}

  // What is not there, or not understood, is an error in the response and ends nothing.
  grpc::reflection::v1::ServerReflectionResponse Answer(
      const grpc::reflection::v1::ServerReflectionRequest& request) const;

 private:
  const std::set<std::string> services_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_REFLECTION_H_
