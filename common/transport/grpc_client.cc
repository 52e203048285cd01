#include "common/transport/grpc_client.h"

#include <grpc/grpc.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>

#include <utility>

#include "common/transport/completion.h"
#include "common/transport/grpc_convert.h"
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

// A call that the transport knows of while this lives.
class CountedCall {
 public:
  explicit CountedCall(CallsInFlight& calls)
      : calls_(calls), may_begin_(calls.Add(context_.get())) {}
  ~CountedCall() {
    if (may_begin_) calls_.Remove(std::move(context_));
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

  // False: the transport is ending.
  bool may_begin() const { return may_begin_; }
  grpc::ClientContext& context() { return *context_; }

 private:
  CallsInFlight& calls_;
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
  const bool may_begin_;
};

class ClientEnd : public StreamEnd {
 public:
  ClientEnd(CallPath path, Executor& executor, StreamHandler* handler)
      : StreamEnd(&executor), path_(std::move(path)) {
    handler_ = handler;
  }

  void Begin(const std::string& method, MonotonicTime deadline) {
    std::lock_guard lock(mutex_);
    auto call = std::make_shared<Call>(path_.calls);
    if (!call->may_begin()) {
      ending_ = over_ = true;
      PostClosed(absl::CancelledError("this node is stopping"));
      return;
    }
    self_ = shared_from_this();
    call_ = call.get();
    held_call_ = std::move(call);
    SetDeadline(call_->context(), deadline, executor_->clock());
    grpc::GenericStub stub(std::move(path_.channel));
    call_->stream = stub.PrepareCall(&call_->context(), method, &path_.queue);
    Asked();
    call_->stream->StartCall(begun_.tag());
  }

  void HalfClose() {
    std::lock_guard lock(mutex_);
    if (!CanWrite()) return;
    half_closed_ = true;
    Advance();
  }

  void Abandon() {
    handler_ = nullptr;
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (over_) return;
    call_->context().TryCancel();
    ending_ = true;
    Advance();
  }

 private:
  struct Call : CountedCall {
    using CountedCall::CountedCall;
    // It lies in memory of the call, which is the context's.
    ~Call() { stream.reset(); }
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  };

  void AskRead(grpc::ByteBuffer* into, void* tag) override { call_->stream->Read(into, tag); }
  void AskWrite(const grpc::ByteBuffer& message, void* tag) override {
    call_->stream->Write(message, tag);
  }
  void ReadsEnded() override { ending_ = true; }
  bool CanWrite() const override { return !ending_ && !half_closed_ && !write_failed(); }
  bool CanRead() const override { return !ending_; }
  bool Over() const override { return over_; }

  void Advance() override {
    // A write that failed ends nothing: what the server sent before is still to be read, and the
    // end comes with the reads.
    //
    // gRPC 1.51 takes no Finish beside a read that may still bring the initial metadata. Once the
    // call has ended, or is cancelled, the read comes back.
    if (ending_ && !over_ && begun_told_ && !reading_now()) {
      over_ = true;
      DropQueue();
      Asked();
      call_->stream->Finish(&status_, finished_.tag());
    }
    if (half_closed_ && sending_ && !over_ && !anything_to_write() && !writes_done_) {
      writes_done_ = true;
      Asked();
      call_->stream->WritesDone(writes_ended_.tag());
    }
  }

  void Ended() override {
    call_ = nullptr;
    PostClosed(FromGrpcStatus(status_, path_.endpoint));
  }

  void OnBegun(bool ok) {
    const Telling telling(*this);
    Told();
    begun_told_ = true;
    if (ok) {
      sending_ = receiving_ = true;
      MaybeRead();
      MaybeWrite();
    } else {
      ending_ = true;
    }
    Advance();
    ReleaseIfDone();
  }

  void OnTold(bool) {
    const Telling telling(*this);
    Told();
    ReleaseIfDone();
  }

  CallPath path_;
  // Until the end; held elsewhere.
  Call* call_ = nullptr;
  grpc::Status status_;
  bool begun_told_ = false;
  bool half_closed_ = false;
  bool writes_done_ = false;
  // Nothing is worth reading or writing any more, and the status is asked for when it may be.
  bool ending_ = false;
  bool over_ = false;
  MemberCompletion<ClientEnd> begun_{this, &ClientEnd::OnBegun};
  MemberCompletion<ClientEnd> writes_ended_{this, &ClientEnd::OnTold};
  MemberCompletion<ClientEnd> finished_{this, &ClientEnd::OnTold};
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

// Destroys itself when it is answered.
class UnaryCall final : public Completion {
 public:
  UnaryCall(CallPath path, Executor& executor, Transport::CallDone done)
      : path_(std::move(path)), executor_(executor), done_(std::move(done)), call_(path_.calls) {}

  void Begin(const std::string& method, const Buffer& request, MonotonicTime deadline) {
    if (!call_.may_begin()) {
      Answer(absl::CancelledError("this node is stopping"));
      delete this;
      return;
    }
    SetDeadline(call_.context(), deadline, executor_.clock());
    grpc::GenericStub stub(std::move(path_.channel));
    reader_ = stub.PrepareUnaryCall(&call_.context(), method, ToByteBuffer(request), &path_.queue);
    reader_->StartCall();
    // Last: it may be answered, and this destroyed, at once.
    reader_->Finish(&response_, &status_, static_cast<Completion*>(this));
  }

  void OnCompleted(bool) override {
    {
      const LendingScope lend(executor_);
      if (status_.ok()) {
        Answer(FromByteBuffer(response_));
      } else {
        Answer(FromGrpcStatus(status_, path_.endpoint));
      }
    }
    // The transport may end from here on.
    delete this;
  }

 private:
  void Answer(absl::StatusOr<Buffer> result) {
    executor_.Post([done = std::move(done_), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  CallPath path_;
  Executor& executor_;
  Transport::CallDone done_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  CountedCall call_;
  // It lies in memory of the call, which is the context's, and so goes first.
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

}  // namespace

std::unique_ptr<ClientStream> OpenGrpcStream(CallPath path, const std::string& method,
                                             const CallOptions& options, Executor& executor,
                                             StreamHandler* handler) {
  auto end = std::make_shared<ClientEnd>(std::move(path), executor, handler);
  end->Begin(method, options.deadline);
  return std::make_unique<GrpcClientStream>(std::move(end));
}

void StartGrpcCall(CallPath path, const std::string& method, const Buffer& request,
                   const CallOptions& options, Executor& executor, Transport::CallDone done) {
  auto* const call = new UnaryCall(std::move(path), executor, std::move(done));
  call->Begin(method, request, options.deadline);
}

}  // namespace conclave::grpc_transport
