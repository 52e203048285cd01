#ifndef CONCLAVE_COMMON_TRANSPORT_BUILTIN_SERVICES_H_
#define CONCLAVE_COMMON_TRANSPORT_BUILTIN_SERVICES_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/transport/transport.h"

namespace conclave {

// What every server offers beside its own methods: gRPC's health checking (grpc.health.v1) and its
// reflection, under the old package name and the new one. On an executor of its own, so that they
// answer when the server's other executors are busy.
//
// Health is that of the server as a whole, which the empty name asks for, and so do the names of
// its services. It serves until it is told otherwise.
class BuiltinServices {
 public:
  // `services`: full names of those that the server has beside these.
  explicit BuiltinServices(std::set<std::string> services);
  // The server that has its methods is gone.
  ~BuiltinServices();

  std::vector<ServerMethod> Methods();
  // Thread-safe.
  void SetServing(bool serving);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_BUILTIN_SERVICES_H_
