#include "common/transport/grpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>
// Not reached by the header above, and what generated code uses.
#include <grpcpp/impl/codegen/server_callback_handlers.h>

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/transport/connection_acceptor.h"
#include "common/transport/grpc_options.h"
#include "common/transport/grpc_reflection.h"
#include "common/transport/grpc_stream_end.h"
#include "common/transport/host_port.h"
#include "common/transport/listening_sockets.h"

namespace conclave::grpc_transport {
namespace {

using ServerReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

MonotonicTime DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return MonotonicTime::Never();
  const auto left = deadline - std::chrono::system_clock::now();
  return clock.Now() +
         Duration::Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
}

class ServerEnd : public StreamEnd<ServerReactor> {
 public:
  ServerEnd(Executor& executor, const grpc::CallbackServerContext& context)
      : StreamEnd(executor),
        peer_(context.peer()),
        deadline_(DeadlineOf(context, executor.clock())) {}

  // gRPC holds the reactor from when its handler returns it.
  void HeldByGrpc() { self_ = shared_from_this(); }

  void Start(StreamHandler* handler) {
    handler_ = handler;
    std::lock_guard lock(mutex_);
    started_ = true;
    if (closed_before_start_) {
      closed_posted_ = false;
      PostClosed(*std::exchange(closed_before_start_, std::nullopt));
      return;
    }
    MaybeRead();
  }

  void FinishWith(absl::Status status) {
    std::lock_guard lock(mutex_);
    RequestFinish(std::move(status));
  }

  void Abandon() {
    handler_ = nullptr;
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    RequestFinish(accepted_ ? absl::CancelledError("the server has given up the stream")
                            : MakeError(v1::OVERLOADED,
                                        "the node has as many requests waiting as it takes, or is "
                                        "stopping; try again in a moment"));
  }

  // The method's executor has taken the stream on.
  void Accepted() {
    std::lock_guard lock(mutex_);
    accepted_ = true;
  }

  void OnCancel() override {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (const grpc::ByteBuffer& waiting : queue_) pending_bytes_ -= waiting.Length();
    queue_.clear();
    PostClosed(absl::UnavailableError(absl::StrCat("client ", peer_, " is gone")));
    RequestFinish(absl::CancelledError("the client is gone"));
    FinishIfIdle();
  }

  void OnDone() override {
    std::shared_ptr<StreamEnd> self;  // Keeps this object until the lock is released.
    std::lock_guard lock(mutex_);
    PostClosed(finish_status_);
    self = std::move(self_);
  }

  const std::string& peer() const { return peer_; }
  MonotonicTime deadline() const { return deadline_; }

 protected:
  bool CanWrite() const override { return !finish_requested_ && !cancelled_ && !write_failed_; }
  // Nothing may be started after Finish, and a cancelled stream has been finished.
  bool CanRead() const override { return !finish_requested_; }
  void ReadsEnded() override {
    PostToHandler([](StreamEnd&, StreamHandler& handler) { handler.OnHalfClose(); });
  }
  void WritesIdle() override { FinishIfIdle(); }

 private:
  // Under the lock, both.
  void RequestFinish(absl::Status status) {
    if (finish_requested_) return;
    finish_requested_ = true;
    finish_status_ = std::move(status);
    FinishIfIdle();
  }
  void FinishIfIdle() {
    if (!finish_requested_ || finished_ || writing_ || !queue_.empty()) return;
    finished_ = true;
    Finish(ToGrpcStatus(finish_status_));
  }

  const std::string peer_;
  const MonotonicTime deadline_;
  bool accepted_ = false;
  bool cancelled_ = false;
  bool finish_requested_ = false;
  bool finished_ = false;
  absl::Status finish_status_;
};

class GrpcServerStream : public ServerStream {
 public:
  explicit GrpcServerStream(std::shared_ptr<ServerEnd> end) : end_(std::move(end)) {}
  ~GrpcServerStream() override { end_->Abandon(); }
  void Start(StreamHandler* handler) override { end_->Start(handler); }
  void Send(Buffer message) override { end_->Send(message); }
  size_t pending_bytes() const override { return end_->pending_bytes(); }
  void SetReading(bool reading) override { end_->SetReading(reading); }
  void Finish(absl::Status status) override { end_->FinishWith(std::move(status)); }
  std::string peer() const override { return end_->peer(); }
  MonotonicTime deadline() const override { return end_->deadline(); }

 private:
  const std::shared_ptr<ServerEnd> end_;
};

// One gRPC service whose methods all move raw bytes. Each is registered as a bidirectional stream:
// on the wire a unary call is a stream of one message each way.
class RawService : public grpc::Service {
 public:
  void Add(ServerMethod method) {
    const auto kept =
        methods_.emplace_back(std::make_shared<const ServerMethod>(std::move(method)));
    AddMethod(new grpc::internal::RpcServiceMethod(
        kept->name.c_str(), grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodRawCallback(
        static_cast<int>(methods_.size()) - 1,
        new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
            [kept](grpc::CallbackServerContext* context) { return Accept(kept, *context); }));
  }

 private:
  // What is posted may run when the server is gone already, and so keeps its method.
  static ServerReactor* Accept(const std::shared_ptr<const ServerMethod>& method,
                               const grpc::CallbackServerContext& context) {
    auto end = std::make_shared<ServerEnd>(*method->executor, context);
    end->HeldByGrpc();
    auto stream = std::make_unique<GrpcServerStream>(end);
    const bool taken = method->executor->TryPost(
        [method, stream = std::move(stream)]() mutable { method->accept(std::move(stream)); });
    if (!taken) {
      end->FinishWith(MakeError(v1::OVERLOADED, "too many requests are waiting; try again later"));
    }
    return end.get();
  }

  std::vector<std::shared_ptr<const ServerMethod>> methods_;
};

class GrpcServer : public Server {
 public:
  ~GrpcServer() override {
    if (server_ == nullptr) return;
    acceptor_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Start(const std::string& endpoint, std::vector<ServerMethod> methods) {
    auto host = ParseListenEndpoint(endpoint);
    if (!host.ok()) return host.status();
    auto listening = Listen(*host);
    if (!listening.ok()) return listening.status();

    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    ApplyServerOptions(builder);
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    for (ServerMethod& method : methods) {
      const std::string service = method.name.substr(1, method.name.rfind('/') - 1);
      auto& raw = services_[service];
      if (raw == nullptr) raw = std::make_unique<RawService>();
      raw->Add(std::move(method));
    }
    std::set<std::string> names = {"grpc.health.v1.Health"};
    for (auto& [name, service] : services_) {
      builder.RegisterService(service.get());
      names.insert(name);
    }
    reflection_ = ReflectionServices(std::move(names));
    for (auto& service : reflection_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return MakeError(v1::UNKNOWN_SERVER_ERROR, "gRPC does not start; what it logged says why");
    }
    endpoint_ = JoinHostPort(host->host, listening->port);
    acceptor_ = std::make_unique<ConnectionAcceptor>(
        std::move(listening->sockets),
        [this](int listener, int connection) { Take(listener, connection); });
    return absl::OkStatus();
  }

  std::string endpoint() const override { return endpoint_; }
  void SetServing(bool serving) override {
    server_->GetHealthCheckService()->SetServingStatus(serving);
  }

 private:
  // gRPC owns the connection from then on.
  void Take(int listener, int connection) {
    SetSocketOptions(connection);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;
    connections_->HandleNewConnection(&parameters);
  }

  // Nothing here may be synchronous: that brings completion queues and threads of its own.
  std::map<std::string, std::unique_ptr<RawService>> services_;
  std::vector<std::unique_ptr<grpc::Service>> reflection_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::string endpoint_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartGrpcServer(const std::string& endpoint,
                                                        std::vector<ServerMethod> methods) {
  auto server = std::make_unique<GrpcServer>();
  if (absl::Status started = server->Start(endpoint, std::move(methods)); !started.ok()) {
    return started;
  }
  return server;
}

}  // namespace conclave::grpc_transport
