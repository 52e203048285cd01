#include "common/transport/grpc_server.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <set>
#include <utility>

#include "common/error/error.h"
#include "common/transport/builtin_services.h"
#include "common/transport/connection_acceptor.h"
#include "common/transport/grpc_options.h"
#include "common/transport/grpc_server_call.h"
#include "common/transport/host_port.h"
#include "common/transport/listening_sockets.h"

namespace conclave::grpc_transport {
namespace {

// Waits for calls at a time. More that arrive at once wait in gRPC.
constexpr int kAwaitedCalls = 8;

class GrpcServer : public Server {
 public:
  explicit GrpcServer(std::shared_ptr<Poller> poller) : poller_(std::move(poller)) {}

  ~GrpcServer() override {
    if (server_ == nullptr) return;
    acceptor_.reset();
    calls_.Stop();
    // Cancels them all.
    server_->Shutdown(std::chrono::system_clock::now());
    calls_.WaitForNone();
  }

  absl::Status Start(const std::string& endpoint, std::vector<ServerMethod> methods) {
    auto host = ParseListenEndpoint(endpoint);
    if (!host.ok()) return host.status();
    auto listening = Listen(*host);
    if (!listening.ok()) return listening.status();

    auto builder = poller_->TakeBuilder();
    if (builder == nullptr) {
      poller_ = std::make_shared<Poller>();
      builder = poller_->TakeBuilder();
    }
    ApplyServerOptions(*builder);
    connections_ = builder->experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    builder->RegisterAsyncGenericService(&generic_);
    server_ = builder->BuildAndStart();
    if (server_ == nullptr) {
      return MakeError(v1::UNKNOWN_SERVER_ERROR, "gRPC does not start; what it logged says why");
    }
    const CallIntake intake{generic_, calls_, poller_->queue(), WithBuiltin(std::move(methods))};
    for (int i = 0; i < kAwaitedCalls; ++i) AwaitCall(intake);
    endpoint_ = JoinHostPort(host->host, listening->port);
    acceptor_ = std::make_unique<ConnectionAcceptor>(
        std::move(listening->sockets),
        [this](int listener, int connection) { Take(listener, connection); });
    return absl::OkStatus();
  }

  std::string endpoint() const override { return endpoint_; }
  void SetServing(bool serving) override { builtin_->SetServing(serving); }

 private:
  std::shared_ptr<const MethodsByName> WithBuiltin(std::vector<ServerMethod> methods) {
    std::set<std::string> services;
    for (const ServerMethod& method : methods) {
      services.insert(method.name.substr(1, method.name.rfind('/') - 1));
    }
    builtin_ = std::make_unique<BuiltinServices>(std::move(services));
    for (ServerMethod& method : builtin_->Methods()) methods.push_back(std::move(method));
    auto by_name = std::make_shared<MethodsByName>();
    for (ServerMethod& method : methods) {
      std::string name = method.name;
      by_name->emplace(std::move(name), std::move(method));
    }
    return by_name;
  }

  // gRPC owns the connection from then on.
  void Take(int listener, int connection) {
    SetSocketOptions(connection);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;
    connections_->HandleNewConnection(&parameters);
  }

  std::shared_ptr<Poller> poller_;
  std::unique_ptr<BuiltinServices> builtin_;
  // Nothing here may be synchronous, or call back: that brings queues and threads of its own, which
  // poll beside the poller's.
  grpc::AsyncGenericService generic_;
  ServerCalls calls_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::string endpoint_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(const std::string& endpoint,
                                                        std::vector<ServerMethod> methods,
                                                        std::shared_ptr<Poller> poller) {
  auto server = std::make_unique<GrpcServer>(std::move(poller));
  if (absl::Status started = server->Start(endpoint, std::move(methods)); !started.ok()) {
    return started;
  }
  return server;
}

}  // namespace conclave::grpc_transport
