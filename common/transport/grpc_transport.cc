#include "common/transport/grpc_transport.h"

#include <grpcpp/completion_queue.h>

#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/transport/grpc_client.h"
#include "common/transport/grpc_poller.h"
#include "common/transport/grpc_server.h"

namespace conclave {

struct GrpcTransport::State {
  grpc_transport::CallPath PathTo(const std::string& endpoint) {
    return {channels.Get(endpoint), poller->queue(), calls, endpoint};
  }

  // Shared with the first server, whose queue it is as well.
  std::shared_ptr<grpc_transport::Poller> poller = std::make_shared<grpc_transport::Poller>();
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
  return grpc_transport::StartGrpcServer(endpoint, std::move(methods), state_->poller);
}

std::unique_ptr<ClientStream> GrpcTransport::OpenStream(const std::string& endpoint,
                                                        const std::string& method,
                                                        const CallOptions& options,
                                                        Executor& executor,
                                                        StreamHandler* handler) {
  return grpc_transport::OpenGrpcStream(state_->PathTo(endpoint), method, options, executor,
                                        handler);
}

void GrpcTransport::Call(const std::string& endpoint, const std::string& method, Buffer request,
                         const CallOptions& options, Executor& executor, CallDone done) {
  grpc_transport::StartGrpcCall(state_->PathTo(endpoint), method, request, options, executor,
                                std::move(done));
}

}  // namespace conclave
