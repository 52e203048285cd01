#include "common/transport/memory_transport.h"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/transport/host_port.h"
#include "common/transport/memory_stream.h"

namespace conclave {
namespace {

using memory_transport::Pipe;

class ImmediateWire : public Wire {
 public:
  void Carry(const std::string&, const std::string&, uint64_t, size_t, Executor& receiver,
             Executor::Task deliver) override {
    receiver.Post(std::move(deliver));
  }
  bool CanConnect(const std::string&, const std::string&) override { return true; }
};

struct Listening {
  std::string node;
  std::map<std::string, ServerMethod> methods;
};

}  // namespace

class MemoryNetwork::Impl : public std::enable_shared_from_this<MemoryNetwork::Impl> {
 public:
  explicit Impl(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  absl::StatusOr<std::string> Listen(const std::string& node, const std::string& endpoint,
                                     std::vector<ServerMethod> methods) {
    auto address = ParseListenEndpoint(endpoint);
    if (!address.ok()) return address.status();
    std::lock_guard lock(mutex_);
    if (address->port == 0) address->port = next_port_++;
    const std::string chosen = JoinHostPort(address->host, address->port);
    if (servers_.count(chosen) > 0) {
      return MakeError(v1::INVALID_CONFIG,
                       absl::StrCat("cannot listen on ", chosen, ": the port is in use"));
    }
    auto listening = std::make_shared<Listening>();
    listening->node = node;
    for (ServerMethod& method : methods) {
      std::string name = method.name;
      listening->methods.emplace(std::move(name), std::move(method));
    }
    servers_[chosen] = std::move(listening);
    return chosen;
  }

  void StopListening(const std::string& endpoint) {
    std::vector<std::shared_ptr<Pipe>> broken;
    {
      std::lock_guard lock(mutex_);
      servers_.erase(endpoint);
      for (const auto& [id, open] : pipes_) {
        if (open.endpoint == endpoint) broken.push_back(open.pipe);
      }
    }
    for (const auto& pipe : broken) {
      pipe->Break(absl::UnavailableError(absl::StrCat(endpoint, " has stopped")), -1);
    }
  }

  std::unique_ptr<ClientStream> Open(const std::string& node, const std::string& endpoint,
                                     const std::string& method, const CallOptions& options,
                                     Executor& executor, StreamHandler* handler) {
    std::shared_ptr<Listening> server = Find(endpoint);
    const bool connected = server != nullptr && wire_->CanConnect(node, server->node);
    const ServerMethod* target = nullptr;
    if (connected) {
      const auto found = server->methods.find(method);
      if (found != server->methods.end()) target = &found->second;
    }
    const std::string peer = server == nullptr ? endpoint : server->node;
    Executor* far = target == nullptr ? &executor : target->executor;
    auto pipe = NewPipe({node, &executor}, {peer, far}, endpoint);
    if (!connected) {
      pipe->Break(absl::UnavailableError(absl::StrCat(endpoint, ": connection refused")),
                  Pipe::kServer);
    } else if (target == nullptr) {
      pipe->Break(absl::UnimplementedError(absl::StrCat(endpoint, " has no method ", method)),
                  Pipe::kServer);
    } else {
      Connect(std::move(server), *target, pipe, options.deadline);
    }
    pipe->Start(Pipe::kClient, handler);
    ExpireAt(options.deadline, executor, pipe);
    return memory_transport::ClientEndOf(std::move(pipe));
  }

  void Break(const std::string& a, const std::string& b, int deaf_side_of_a) {
    for (const auto& pipe : PipesBetween(a, b)) {
      int deaf = -1;
      if (deaf_side_of_a != 0)
        deaf = pipe->node(Pipe::kClient) == a ? Pipe::kClient : Pipe::kServer;
      pipe->Break(absl::UnavailableError(absl::StrCat("connection to ", a, " broke")), deaf);
    }
  }

  void Kill(const std::string& node) {
    {
      std::lock_guard lock(mutex_);
      for (auto it = servers_.begin(); it != servers_.end();) {
        it = it->second->node == node ? servers_.erase(it) : std::next(it);
      }
    }
    Break(node, "", 1);
  }

 private:
  struct OpenPipe {
    std::shared_ptr<Pipe> pipe;
    std::string endpoint;
  };

  std::shared_ptr<Listening> Find(const std::string& endpoint) {
    std::lock_guard lock(mutex_);
    const auto it = servers_.find(endpoint);
    return it == servers_.end() ? nullptr : it->second;
  }

  std::shared_ptr<Pipe> NewPipe(Pipe::Party client, Pipe::Party server,
                                const std::string& endpoint) {
    std::lock_guard lock(mutex_);
    for (auto it = pipes_.begin(); it != pipes_.end();) {
      it = it->second.pipe->over() ? pipes_.erase(it) : std::next(it);
    }
    const uint64_t id = ++last_pipe_;
    auto pipe = std::make_shared<Pipe>(*wire_, id, std::move(client), std::move(server));
    pipes_[id] = {pipe, endpoint};
    return pipe;
  }

  // The new stream reaches the server's acceptor through the wire, as the first of its direction.
  // `server` keeps the method alive until then.
  static void Connect(std::shared_ptr<Listening> server, const ServerMethod& method,
                      const std::shared_ptr<Pipe>& pipe, MonotonicTime deadline) {
    auto end = memory_transport::ServerEndOf(pipe, deadline);
    pipe->CarryToServer([&method, end = std::move(end), server = std::move(server)]() mutable {
      method.accept(std::move(end));
    });
  }

  void ExpireAt(MonotonicTime deadline, Executor& executor, const std::shared_ptr<Pipe>& pipe) {
    if (deadline == MonotonicTime::Never()) return;
    executor.PostAt(deadline, [weak = std::weak_ptr<Pipe>(pipe)] {
      if (auto pipe = weak.lock()) {
        pipe->Break(absl::DeadlineExceededError("no answer within the deadline"), -1);
      }
    });
  }

  std::vector<std::shared_ptr<Pipe>> PipesBetween(const std::string& a, const std::string& b) {
    std::vector<std::shared_ptr<Pipe>> found;
    std::lock_guard lock(mutex_);
    for (const auto& [id, open] : pipes_) {
      const std::string& client = open.pipe->node(Pipe::kClient);
      const std::string& server = open.pipe->node(Pipe::kServer);
      const bool matches = b.empty() ? client == a || server == a
                                     : (client == a && server == b) || (client == b && server == a);
      if (matches) found.push_back(open.pipe);
    }
    return found;
  }

  const std::unique_ptr<Wire> wire_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Listening>> servers_;
  std::map<uint64_t, OpenPipe> pipes_;
  uint64_t last_pipe_ = 0;
  int next_port_ = 20000;
};

namespace {

class MemoryServer : public Server {
 public:
  MemoryServer(std::shared_ptr<MemoryNetwork::Impl> network, std::string endpoint)
      : network_(std::move(network)), endpoint_(std::move(endpoint)) {}
  ~MemoryServer() override { network_->StopListening(endpoint_); }
  std::string endpoint() const override { return endpoint_; }
  void SetServing(bool) override {}

 private:
  const std::shared_ptr<MemoryNetwork::Impl> network_;
  const std::string endpoint_;
};

class MemoryTransport : public Transport {
 public:
  MemoryTransport(std::shared_ptr<MemoryNetwork::Impl> network, std::string node)
      : network_(std::move(network)), node_(std::move(node)), calls_(std::make_shared<Calls>()) {}

  ~MemoryTransport() override {
    std::lock_guard lock(calls_->mutex);
    calls_->open.clear();
  }

  absl::StatusOr<std::unique_ptr<Server>> Listen(const std::string& endpoint,
                                                 std::vector<ServerMethod> methods) override {
    auto chosen = network_->Listen(node_, endpoint, std::move(methods));
    if (!chosen.ok()) return chosen.status();
    return std::make_unique<MemoryServer>(network_, *chosen);
  }

  std::unique_ptr<ClientStream> OpenStream(const std::string& endpoint, const std::string& method,
                                           const CallOptions& options, Executor& executor,
                                           StreamHandler* handler) override {
    return network_->Open(node_, endpoint, method, options, executor, handler);
  }

  void Call(const std::string& endpoint, const std::string& method, Buffer request,
            const CallOptions& options, Executor& executor, CallDone done) override {
    auto call = std::make_unique<StreamedCall>(calls_, std::move(done));
    StreamedCall* raw = call.get();
    {
      std::lock_guard lock(calls_->mutex);
      calls_->open.emplace(raw, std::move(call));
    }
    // On the executor, so that the answer cannot come before the stream is stored.
    executor.Post([network = network_, node = node_, calls = calls_, raw, endpoint, method, options,
                   &executor, request = std::move(request)]() mutable {
      {
        std::lock_guard lock(calls->mutex);
        if (calls->open.count(raw) == 0) return;  // The transport is gone.
      }
      auto stream = network->Open(node, endpoint, method, options, executor, raw);
      stream->Send(std::move(request));
      stream->HalfClose();
      raw->stream = std::move(stream);
    });
  }

 private:
  struct StreamedCall;
  struct Calls {
    std::mutex mutex;
    std::map<StreamedCall*, std::unique_ptr<StreamedCall>> open;
  };

  // A call as a stream of one message each way.
  struct StreamedCall : public StreamHandler {
    StreamedCall(std::shared_ptr<Calls> calls, CallDone done)
        : calls(std::move(calls)), done(std::move(done)) {}

    void OnMessage(Buffer message) override { response = std::move(message); }

    void OnClosed(absl::Status status) override {
      std::unique_ptr<StreamedCall> self;
      {
        std::lock_guard lock(calls->mutex);
        const auto it = calls->open.find(this);
        if (it == calls->open.end()) return;
        self = std::move(it->second);
        calls->open.erase(it);
      }
      if (!status.ok()) {
        done(std::move(status));
      } else if (!response) {
        done(absl::InternalError("the server ended the call without an answer"));
      } else {
        done(*std::move(response));
      }
    }

    const std::shared_ptr<Calls> calls;
    CallDone done;
    std::optional<Buffer> response;
    std::unique_ptr<ClientStream> stream;
  };

  const std::shared_ptr<MemoryNetwork::Impl> network_;
  const std::string node_;
  const std::shared_ptr<Calls> calls_;
};

}  // namespace

MemoryNetwork::MemoryNetwork() : MemoryNetwork(std::make_unique<ImmediateWire>()) {}
MemoryNetwork::MemoryNetwork(std::unique_ptr<Wire> wire)
    : impl_(std::make_shared<Impl>(std::move(wire))) {}
MemoryNetwork::~MemoryNetwork() = default;

std::unique_ptr<Transport> MemoryNetwork::Join(const std::string& name) {
  return std::make_unique<MemoryTransport>(impl_, name);
}
void MemoryNetwork::BreakStreams(const std::string& a, const std::string& b) {
  impl_->Break(a, b, 0);
}
void MemoryNetwork::Kill(const std::string& name) { impl_->Kill(name); }

}  // namespace conclave
