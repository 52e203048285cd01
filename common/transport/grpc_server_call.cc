#include "common/transport/grpc_server_call.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/transport/completion.h"
#include "common/transport/grpc_convert.h"
#include "common/transport/grpc_stream_end.h"

namespace conclave::grpc_transport {
namespace {

MonotonicTime DeadlineOf(const grpc::ServerContext& context, const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return MonotonicTime::Never();
  const auto left = deadline - std::chrono::system_clock::now();
  return clock.Now() +
         Duration::Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(left).count());
}

// A server's end: first of a call that is to arrive.
class ServerEnd : public StreamEnd {
 public:
  explicit ServerEnd(CallIntake intake) : StreamEnd(nullptr), intake_(std::move(intake)) {}

  void Await() {
    std::lock_guard lock(mutex_);
    self_ = shared_from_this();
    auto call = std::make_shared<Call>(intake_.calls);
    call_ = call.get();
    held_call_ = std::move(call);
    call_->context->AsyncNotifyWhenDone(ended_.tag());
    Asked();
    const bool asked = intake_.calls.Ask([this] {
      intake_.service.RequestCall(&*call_->context, &*call_->stream, &intake_.queue, &intake_.queue,
                                  arrived_.tag());
    });
    if (!asked) NoneArrives();
  }

  void Start(StreamHandler* handler) {
    handler_ = handler;
    std::lock_guard lock(mutex_);
    receiving_ = true;
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

  const std::string& peer() const { return peer_; }
  MonotonicTime deadline() const { return deadline_; }

 private:
  // A server that stops waits until it is let go of.
  struct Call {
    explicit Call(ServerCalls& calls) : counted(calls) { counted.Begin(); }
    ~Call() {
      stream.reset();
      context.reset();
      counted.End();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    ServerCalls& counted;
    std::optional<grpc::GenericServerContext> context{std::in_place};
    std::optional<grpc::GenericServerAsyncReaderWriter> stream{&*context};
  };

  void AskRead(grpc::ByteBuffer* into, void* tag) override { call_->stream->Read(into, tag); }
  void AskWrite(const grpc::ByteBuffer& message, void* tag) override {
    call_->stream->Write(message, tag);
  }
  void ReadsEnded() override {
    PostToHandler([](StreamEnd&, StreamHandler& handler) { handler.OnHalfClose(); });
  }
  bool CanWrite() const override { return !finish_requested_ && !cancelled_ && !write_failed(); }
  // A cancelled stream has been finished.
  bool CanRead() const override { return !finish_requested_; }
  bool Over() const override { return finished_; }

  void Advance() override {
    if (!finish_requested_ || finished_ || anything_to_write()) return;
    finished_ = true;
    Asked();
    call_->stream->Finish(executor_ != nullptr ? ToGrpcStatus(finish_status_) : UnknownMethod(),
                          finish_told_.tag());
  }

  // By gRPC's own code for that, as any gRPC server does; clients know which node they asked.
  grpc::Status UnknownMethod() const {
    return {grpc::StatusCode::UNIMPLEMENTED,
            absl::StrCat("nothing here serves ", call_->context->method(),
                         "; server reflection lists what does")};
  }

  void Ended() override {
    call_ = nullptr;
    if (executor_ != nullptr) PostClosed(finish_status_);
  }

  // Under the lock.
  void RequestFinish(absl::Status status) {
    if (finish_requested_) return;
    finish_requested_ = true;
    finish_status_ = std::move(status);
    Advance();
  }

  void OnArrived(bool ok) {
    const std::shared_ptr<StreamEnd> alive = shared_from_this();
    if (!ok) return OnNoneArrives();
    // While this call is held, the server is there, and so are the executors of its methods.
    const std::shared_ptr<void> held = held_call_;
    AwaitCall(intake_);
    const auto found = intake_.methods->find(call_->context->method());
    if (found == intake_.methods->end()) return RefuseUnknown();
    const LendingScope lend(*found->second.executor);
    Accept(found->second);
  }

  // The server is stopping. gRPC tells no end of a call that has not begun.
  void OnNoneArrives() {
    std::lock_guard lock(mutex_);
    NoneArrives();
  }

  // Under the lock.
  void NoneArrives() {
    Told();
    finished_ = true;
    ReleaseIfDone();
  }

  void RefuseUnknown() {
    std::lock_guard lock(mutex_);
    Told();
    Asked();
    RequestFinish(absl::OkStatus());
    ReleaseIfDone();
  }

  void Accept(const ServerMethod& method);

  // The call is over, or the client has cancelled it, or is gone.
  void OnEnded(bool) {
    const std::shared_ptr<StreamEnd> alive = shared_from_this();
    std::lock_guard lock(mutex_);
    Told();
    if (call_->context->IsCancelled()) {
      cancelled_ = true;
      DropQueue();
      if (executor_ != nullptr) FinishCancelled();
    }
    ReleaseIfDone();
  }

  // Under the lock.
  void FinishCancelled() {
    PostClosed(absl::UnavailableError(absl::StrCat("client ", peer_, " is gone")));
    RequestFinish(absl::CancelledError("the client is gone"));
    Advance();
  }

  void OnFinishTold(bool) {
    const Telling telling(*this);
    Told();
    ReleaseIfDone();
  }

  const CallIntake intake_;
  // Until the end; held elsewhere.
  Call* call_ = nullptr;
  std::string peer_;
  MonotonicTime deadline_;
  bool accepted_ = false;
  bool cancelled_ = false;
  bool finish_requested_ = false;
  bool finished_ = false;
  absl::Status finish_status_;
  MemberCompletion<ServerEnd> arrived_{this, &ServerEnd::OnArrived};
  MemberCompletion<ServerEnd> ended_{this, &ServerEnd::OnEnded};
  MemberCompletion<ServerEnd> finish_told_{this, &ServerEnd::OnFinishTold};
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
  void Accepted() { end_->Accepted(); }

 private:
  const std::shared_ptr<ServerEnd> end_;
};

void ServerEnd::Accept(const ServerMethod& method) {
  const auto self = std::static_pointer_cast<ServerEnd>(shared_from_this());
  {
    std::lock_guard lock(mutex_);
    Told();
    // The end of the call.
    Asked();
    executor_ = method.executor;
    peer_ = call_->context->peer();
    deadline_ = DeadlineOf(*call_->context, executor_->clock());
    sending_ = true;
    // The end may have been told before.
    if (cancelled_) FinishCancelled();
    ReleaseIfDone();
  }
  auto stream = std::make_unique<GrpcServerStream>(self);
  // Not under the lock: a stream that is refused is abandoned at once.
  const bool taken = method.executor->TryPost(
      [methods = intake_.methods, &method, stream = std::move(stream)]() mutable {
        stream->Accepted();
        method.accept(std::move(stream));
      });
  if (!taken) {
    FinishWith(MakeError(v1::OVERLOADED, "too many requests are waiting; try again later"));
  }
}

}  // namespace

bool ServerCalls::Ask(absl::FunctionRef<void()> ask) {
  std::shared_lock lock(asking_);
  if (stopping_) return false;
  ask();
  return true;
}

void ServerCalls::Stop() {
  std::unique_lock lock(asking_);
  stopping_ = true;
}

void ServerCalls::Begin() {
  std::lock_guard lock(mutex_);
  ++count_;
}

void ServerCalls::End() {
  std::lock_guard lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

void ServerCalls::WaitForNone() {
  std::unique_lock lock(mutex_);
  none_.wait(lock, [this] { return count_ == 0; });
}

void AwaitCall(const CallIntake& intake) { std::make_shared<ServerEnd>(intake)->Await(); }

}  // namespace conclave::grpc_transport
