#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_TRANSPORT_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_TRANSPORT_H_

#include <memory>

#include "common/transport/transport.h"

namespace conclave {

// Transport over gRPC. Any gRPC client can talk to its servers: the payloads are protobuf's wire
// form, methods have their gRPC names, health checking and reflection are served beside them.
//
// Thread-safe. Executors outlive the transport; destroying it cancels what is under way and waits
// until gRPC has let go of it.
class GrpcTransport : public Transport {
 public:
  GrpcTransport();
  ~GrpcTransport() override;

  absl::StatusOr<std::unique_ptr<Server>> Listen(const std::string& endpoint,
                                                 std::vector<ServerMethod> methods) override;
  std::unique_ptr<ClientStream> OpenStream(const std::string& endpoint, const std::string& method,
                                           const CallOptions& options, Executor& executor,
                                           StreamHandler* handler) override;
  void Call(const std::string& endpoint, const std::string& method, Buffer request,
            const CallOptions& options, Executor& executor, CallDone done) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_TRANSPORT_H_
