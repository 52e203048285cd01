#ifndef CONCLAVE_COMMON_RPC_SERVER_H_
#define CONCLAVE_COMMON_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/buffer/message_buffer.h"
#include "common/rpc/client.h"
#include "common/rpc/method.h"
#include "common/rpc/unary_call.h"
#include "common/transport/transport.h"

namespace google::protobuf {
class Descriptor;
}

namespace conclave {

// Who calls, and how long the caller waits.
struct CallContext {
  std::string peer;
  MonotonicTime deadline = MonotonicTime::Never();
};

// Answers one unary call, once, from any thread. One that is destroyed unused answers NOT_READY.
template <class Response>
class Responder {
 public:
  explicit Responder(std::shared_ptr<UnaryAnswer> answer) : answer_(std::move(answer)) {}

  void operator()(absl::StatusOr<Response> response) {
    auto answer = std::exchange(answer_, nullptr);
    if (!response.ok()) return answer->Finish(response.status());
    answer->Reply(SerializeToBuffer(*response));
  }

 private:
  std::shared_ptr<UnaryAnswer> answer_;
};

// The server's end of a typed stream. As ServerStream: destroyed on its executor.
template <class In, class Out>
class TypedServerStream : private StreamHandler {
 public:
  TypedServerStream(const char* method, std::unique_ptr<ServerStream> stream)
      : method_(method), stream_(std::move(stream)) {}

  void Start(MessageHandler<In>* handler) {
    handler_ = handler;
    stream_->Start(this);
  }
  void Send(const Out& message) { stream_->Send(SerializeToBuffer(message)); }
  void Finish(absl::Status status) { stream_->Finish(std::move(status)); }
  void SetReading(bool reading) { stream_->SetReading(reading); }
  size_t pending_bytes() const { return stream_->pending_bytes(); }
  CallContext context() const { return {stream_->peer(), stream_->deadline()}; }

 private:
  void OnMessage(Buffer bytes) override {
    if (malformed_) return;
    In message;
    if (ParseFromBuffer(bytes, &message)) return handler_->OnMessage(std::move(message));
    malformed_ = true;
    stream_->Finish(MalformedMessage(method_));
  }
  void OnHalfClose() override { handler_->OnHalfClose(); }
  void OnDrained() override { handler_->OnDrained(); }
  void OnClosed(absl::Status status) override { handler_->OnClosed(std::move(status)); }

  const char* const method_;
  const std::unique_ptr<ServerStream> stream_;
  MessageHandler<In>* handler_ = nullptr;
  bool malformed_ = false;
};

// Collects the methods that a server will have. Handlers run on the executor given with them; a
// server is destroyed only after its executors have stopped.
class MethodTable {
 public:
  template <class Request, class Response>
  void Unary(const Method<Request, Response>& method, Executor& executor,
             std::function<void(Request, CallContext, Responder<Response>)> handle) {
    CheckTypes(method.name, Request::descriptor(), Response::descriptor());
    Add(method.name, executor,
        UnaryAcceptor(
            [name = method.name, handle = std::move(handle)](Buffer bytes, CallContextParts parts,
                                                             std::shared_ptr<UnaryAnswer> answer) {
              Request request;
              if (!ParseFromBuffer(bytes, &request)) return answer->Finish(MalformedMessage(name));
              handle(std::move(request), {std::move(parts.peer), parts.deadline},
                     Responder<Response>(std::move(answer)));
            }));
  }

  template <class Request, class Response>
  void Stream(const Method<Request, Response>& method, Executor& executor,
              std::function<void(std::unique_ptr<TypedServerStream<Request, Response>>)> accept) {
    CheckTypes(method.name, Request::descriptor(), Response::descriptor());
    Add(method.name, executor,
        [name = method.name, accept = std::move(accept)](std::unique_ptr<ServerStream> stream) {
          accept(std::make_unique<TypedServerStream<Request, Response>>(name, std::move(stream)));
        });
  }

  std::vector<ServerMethod> Take() { return std::move(methods_); }

 private:
  // Fails loudly where a method constant has other types than the service's descriptor.
  static void CheckTypes(const std::string& name, const google::protobuf::Descriptor* request,
                         const google::protobuf::Descriptor* response);
  void Add(const char* name, Executor& executor, StreamAcceptor accept) {
    methods_.push_back({name, &executor, std::move(accept)});
  }

  std::vector<ServerMethod> methods_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RPC_SERVER_H_
