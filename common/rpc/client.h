#ifndef CONCLAVE_COMMON_RPC_CLIENT_H_
#define CONCLAVE_COMMON_RPC_CLIENT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/buffer/message_buffer.h"
#include "common/error/error.h"
#include "common/rpc/method.h"
#include "common/transport/transport.h"

// Typed calls over a Transport, whose rules (executors, lifetimes, deadlines) hold here too.
namespace conclave {

// What a typed stream's end receives; see StreamHandler.
template <class In>
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void OnMessage(In message) = 0;
  virtual void OnHalfClose() {}
  virtual void OnDrained() {}
  virtual void OnClosed(absl::Status status) = 0;
};

// The error for bytes that are no message of the method's type.
inline absl::Status MalformedMessage(const char* method) {
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat("the bytes received on ", method,
                                " are no such message; is the peer of another kind or version?"));
}

template <class Request, class Response>
void CallMethod(Transport& transport, const std::string& endpoint,
                const Method<Request, Response>& method, const Request& request,
                const CallOptions& options, Executor& executor,
                absl::AnyInvocable<void(absl::StatusOr<Response>)> done) {
  transport.Call(
      endpoint, method.name, SerializeToBuffer(request), options, executor,
      [name = method.name, done = std::move(done)](absl::StatusOr<Buffer> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).status());
        Response response;
        if (!ParseFromBuffer(*bytes, &response)) return done(MalformedMessage(name));
        done(std::move(response));
      });
}

// A client's end of a stream. The handler and the executor outlive it; destroyed on the executor,
// also from within the handler's calls.
template <class Out, class In>
class TypedClientStream : private StreamHandler {
 public:
  TypedClientStream(Transport& transport, const std::string& endpoint,
                    const Method<Out, In>& method, const CallOptions& options, Executor& executor,
                    MessageHandler<In>* handler)
      : method_(method.name), handler_(handler) {
    stream_ = transport.OpenStream(endpoint, method.name, options, executor, this);
  }

  void Send(const Out& message) { stream_->Send(SerializeToBuffer(message)); }
  void HalfClose() { stream_->HalfClose(); }
  void SetReading(bool reading) { stream_->SetReading(reading); }
  size_t pending_bytes() const { return stream_->pending_bytes(); }

 private:
  void OnMessage(Buffer bytes) override {
    In message;
    if (ParseFromBuffer(bytes, &message)) return handler_->OnMessage(std::move(message));
    stream_.reset();
    handler_->OnClosed(MalformedMessage(method_));
  }
  void OnDrained() override { handler_->OnDrained(); }
  void OnClosed(absl::Status status) override { handler_->OnClosed(std::move(status)); }

  const char* const method_;
  MessageHandler<In>* const handler_;
  std::unique_ptr<ClientStream> stream_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RPC_CLIENT_H_
