#include "common/transport/grpc_client.h"

#include <grpc/grpc.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "common/transport/grpc_options.h"
#include "common/transport/grpc_stream_end.h"

namespace conclave::grpc_transport {

bool CallsInFlight::Add(grpc::ClientContext* context) {
  std::lock_guard lock(mutex_);
  if (ending_) return false;
  calls_.insert(context);
  ++held_;
  return true;
}

void CallsInFlight::Remove(std::unique_ptr<grpc::ClientContext> context) {
  {
    std::lock_guard lock(mutex_);
    calls_.erase(context.get());
  }
  context.reset();
  std::lock_guard lock(mutex_);
  if (--held_ == 0) none_left_.notify_all();
}

void CallsInFlight::EndAll() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
  none_left_.wait(lock, [this] { return held_ == 0; });
}

std::shared_ptr<grpc::Channel> Channels::Get(const std::string& endpoint) {
  std::lock_guard lock(mutex_);
  auto& channel = channels_[endpoint];
  if (channel == nullptr) {
    channel = grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(),
                                        ClientChannelArguments());
  }
  return channel;
}

namespace {

void SetDeadline(grpc::ClientContext& context, MonotonicTime deadline, const Clock& clock) {
  if (deadline == MonotonicTime::Never()) return;
  const Duration left = deadline - clock.Now();
  // Relative to gRPC's own monotonic clock, so that a step of the wall clock moves no deadline.
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_nanos(left.nanoseconds(), GPR_TIMESPAN)));
}

using ClientReactor = grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class ClientEnd : public StreamEnd<ClientReactor> {
 public:
  ClientEnd(Executor& executor, StreamHandler* handler, CallsInFlight& calls, std::string endpoint)
      : StreamEnd(executor), calls_(calls), endpoint_(std::move(endpoint)) {
    handler_ = handler;
  }

  void Begin(std::shared_ptr<grpc::Channel> channel, const std::string& method,
             MonotonicTime deadline) {
    std::lock_guard lock(mutex_);
    if (!calls_.Add(context_.get())) {
      ended_ = true;
      PostClosed(absl::CancelledError("this node is stopping"));
      return;
    }
    self_ = shared_from_this();
    SetDeadline(*context_, deadline, executor_.clock());
    grpc::GenericStub stub(std::move(channel));
    stub.PrepareBidiStreamingCall(context_.get(), method, {}, this);
    // A hold keeps OnDone away while writes may still come from outside gRPC's callbacks.
    AddHold();
    started_ = true;
    MaybeRead();
    StartCall();
  }

  void HalfClose() {
    std::lock_guard lock(mutex_);
    if (!CanWrite()) return;
    half_closed_ = true;
    if (!writing_) StartWritesDone();
  }

  void Abandon() {
    handler_ = nullptr;
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (ended_) return;
    context_->TryCancel();
    // A paused reader has no read outstanding whose failure would end the call.
    End();
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<StreamEnd> self;  // Keeps this object until the lock is released.
    std::lock_guard lock(mutex_);
    ended_ = true;
    PostClosed(FromGrpcStatus(status, endpoint_));
    calls_.Remove(std::move(context_));
    self = std::move(self_);
  }

 protected:
  bool CanWrite() const override { return !ended_ && !half_closed_ && !write_failed_; }
  // Without the hold nothing but a reaction of gRPC's may start anything.
  bool CanRead() const override { return !ended_; }
  void ReadsEnded() override { End(); }
  void WritesIdle() override {
    if (half_closed_ && !write_failed_ && !ended_) StartWritesDone();
    // A failed write means that the stream is over, also for a reader that has paused.
    if (write_failed_) End();
  }

 private:
  // Under the lock: nothing more will be started, so gRPC may report the end.
  void End() {
    if (ended_) return;
    ended_ = true;
    RemoveHold();
  }

  CallsInFlight& calls_;
  const std::string endpoint_;
  // Until gRPC is done with the call.
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
  bool ended_ = false;
  bool half_closed_ = false;
};

class GrpcClientStream : public ClientStream {
 public:
  explicit GrpcClientStream(std::shared_ptr<ClientEnd> end) : end_(std::move(end)) {}
  ~GrpcClientStream() override { end_->Abandon(); }
  void Send(Buffer message) override { end_->Send(message); }
  size_t pending_bytes() const override { return end_->pending_bytes(); }
  void SetReading(bool reading) override { end_->SetReading(reading); }
  void HalfClose() override { end_->HalfClose(); }

 private:
  const std::shared_ptr<ClientEnd> end_;
};

struct UnaryCall {
  std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
  Transport::CallDone done;
};

}  // namespace

std::unique_ptr<ClientStream> OpenGrpcStream(std::shared_ptr<grpc::Channel> channel,
                                             CallsInFlight& calls, const std::string& endpoint,
                                             const std::string& method, const CallOptions& options,
                                             Executor& executor, StreamHandler* handler) {
  auto end = std::make_shared<ClientEnd>(executor, handler, calls, endpoint);
  end->Begin(std::move(channel), method, options.deadline);
  return std::make_unique<GrpcClientStream>(std::move(end));
}

void StartGrpcCall(std::shared_ptr<grpc::Channel> channel, CallsInFlight& calls,
                   const std::string& endpoint, const std::string& method, Buffer request,
                   const CallOptions& options, Executor& executor, Transport::CallDone done) {
  auto call = std::make_shared<UnaryCall>();
  call->request = ToByteBuffer(request);
  call->done = std::move(done);
  if (!calls.Add(call->context.get())) {
    executor.Post([call] { call->done(absl::CancelledError("this node is stopping")); });
    return;
  }
  SetDeadline(*call->context, options.deadline, executor.clock());
  grpc::GenericStub stub(std::move(channel));
  stub.UnaryCall(
      call->context.get(), method, {}, &call->request, &call->response,
      [call, &calls, &executor, endpoint](const grpc::Status& status) {
        absl::StatusOr<Buffer> result;
        if (status.ok()) {
          result = FromByteBuffer(call->response);
        } else {
          result = FromGrpcStatus(status, endpoint);
        }
        executor.Post([done = std::move(call->done), result = std::move(result)]() mutable {
          done(std::move(result));
        });
        calls.Remove(std::move(call->context));
      });
}

}  // namespace conclave::grpc_transport
