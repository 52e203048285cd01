#include "common/transport/grpc_transport.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/transport/grpc_client.h"
#include "common/transport/grpc_server.h"

namespace conclave {
struct GrpcTransport::State {
  grpc_transport::Channels channels;
  grpc_transport::CallsInFlight calls;
};

GrpcTransport::GrpcTransport() : state_(std::make_unique<State>()) {
  // Debian's build of Abseil looks for lock cycles at every lock that gRPC takes, in production
  // too.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

GrpcTransport::~GrpcTransport() { state_->calls.EndAll(); }

absl::StatusOr<std::unique_ptr<Server>> GrpcTransport::Listen(const std::string& endpoint,
                                                              std::vector<ServerMethod> methods) {
  return grpc_transport::StartGrpcServer(endpoint, std::move(methods));
}

std::unique_ptr<ClientStream> GrpcTransport::OpenStream(const std::string& endpoint,
                                                        const std::string& method,
                                                        const CallOptions& options,
                                                        Executor& executor,
                                                        StreamHandler* handler) {
  return grpc_transport::OpenGrpcStream(state_->channels.Get(endpoint), state_->calls, endpoint,
                                        method, options, executor, handler);
}

void GrpcTransport::Call(const std::string& endpoint, const std::string& method, Buffer request,
                         const CallOptions& options, Executor& executor, CallDone done) {
  grpc_transport::StartGrpcCall(state_->channels.Get(endpoint), state_->calls, endpoint, method,
                                std::move(request), options, executor, std::move(done));
}

}  // namespace conclave
