#ifndef CONCLAVE_COMMON_TRANSPORT_TRANSPORT_H_
#define CONCLAVE_COMMON_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer/buffer.h"
#include "common/executor/executor.h"
#include "common/types/time.h"

// How nodes talk: calls and streams of byte payloads, by method name. gRPC is one implementation,
// the memory of one process another; the simulation drives the latter in virtual time. Typed
// messages are laid over it by common/rpc.
namespace conclave {

// What happens at one end of a stream. All calls come on the stream's executor, one at a time.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;

  // Messages arrive in the order they were sent, whole, each once.
  virtual void OnMessage(Buffer message) = 0;

  // At a server: the client will send no more.
  virtual void OnHalfClose() {}

  // What Send() took has been passed to the network, and pending_bytes() has answered more than 0
  // since the last of these calls.
  virtual void OnDrained() {}

  // The last call. OK: the server finished the stream so. Otherwise why it ended: the server's
  // error, with its v1::Error (common/error), or UNAVAILABLE where the peer is gone, or CANCELLED.
  virtual void OnClosed(absl::Status status) = 0;
};

// One end of a stream. Destroying it abandons the stream: a client's end cancels, a server's end
// finishes with CANCELLED if it had not finished, and the handler is not called again. It is
// destroyed on its executor (or after that has stopped), also from within the handler's own calls.
// The other methods are thread-safe.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues a message behind those sent before. Without effect once the stream is closed. Nothing
  // bounds the queue: a caller that can outrun its peer looks at pending_bytes().
  virtual void Send(Buffer message) = 0;

  // Bytes that Send() took and the network has not. Above 0: OnDrained follows.
  virtual size_t pending_bytes() const = 0;

  // While false no further messages are read, and the peer feels it as backpressure. A message
  // already on its way to the executor may still be delivered, and the end of the stream may show
  // only once reading goes on.
  virtual void SetReading(bool reading) = 0;
};

class ClientStream : public Stream {
 public:
  // Says that no more will be sent, after what is queued.
  virtual void HalfClose() = 0;
};

class ServerStream : public Stream {
 public:
  // To be called once, on the executor; the handler outlives the stream. Messages flow from then.
  virtual void Start(StreamHandler* handler) = 0;

  // Ends the stream with `status`, after what is queued. The handler's OnClosed still comes.
  virtual void Finish(absl::Status status) = 0;

  // The client's address, for people.
  virtual std::string peer() const = 0;

  // When the client stops waiting; Never() if it set no deadline.
  virtual MonotonicTime deadline() const = 0;
};

// Takes in a new stream. Called on the method's executor.
using StreamAcceptor = std::function<void(std::unique_ptr<ServerStream>)>;

struct ServerMethod {
  // "/package.Service/Method", as gRPC names it.
  std::string name;
  // Outlives the server.
  Executor* executor = nullptr;
  StreamAcceptor accept;
};

// A listening server. Destroying it stops it: no new streams, open ones are closed.
class Server {
 public:
  virtual ~Server() = default;
  // host:port that it listens on, with the port that was chosen where 0 was asked for.
  virtual std::string endpoint() const = 0;
  // Health service (grpc.health.v1): whether this node is ready to serve.
  virtual void SetServing(bool serving) = 0;
};

struct CallOptions {
  // Never() for a stream that is to live on.
  MonotonicTime deadline = MonotonicTime::Never();
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Listens on host:port. The methods are all there ever are on that server. An error names the
  // address and the cause, for example that the port is in use.
  virtual absl::StatusOr<std::unique_ptr<Server>> Listen(const std::string& endpoint,
                                                         std::vector<ServerMethod> methods) = 0;

  // Opens a stream; connecting goes on behind it, and its failure is an OnClosed. The handler
  // outlives the stream, the executor the transport.
  virtual std::unique_ptr<ClientStream> OpenStream(const std::string& endpoint,
                                                   const std::string& method,
                                                   const CallOptions& options, Executor& executor,
                                                   StreamHandler* handler) = 0;

  // One request, one answer. `done` is called exactly once on the executor, unless that or the
  // transport stops first. The executor outlives the transport. There is no cancelling but the
  // deadline.
  using CallDone = absl::AnyInvocable<void(absl::StatusOr<Buffer>)>;
  virtual void Call(const std::string& endpoint, const std::string& method, Buffer request,
                    const CallOptions& options, Executor& executor, CallDone done) = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_TRANSPORT_H_
