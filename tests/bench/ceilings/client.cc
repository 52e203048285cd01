#include "tests/bench/ceilings/client.h"

#include <glog/logging.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "common/clock/system_clock.h"
#include "tests/bench/ceilings/methods.h"
#include "tools/measure/pacer.h"

namespace conclave::bench {
namespace {

// What is sent, aligned as copies like it.
class Payload {
 public:
  explicit Payload(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), &std::free) {
    std::memset(data_.get(), 'm', bytes);
  }
  grpc::ByteBuffer Message() const {
    const grpc::Slice slice(data_.get(), bytes_, grpc::Slice::STATIC_SLICE);
    return grpc::ByteBuffer(&slice, 1);
  }

 private:
  const size_t bytes_;
  const std::unique_ptr<char, decltype(&std::free)> data_;
};

struct Call {
  std::unique_ptr<grpc::ClientContext> context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

void DieUnless(const grpc::Status& status, const char* method) {
  CHECK(status.ok()) << method << " failed: " << status.error_message();
}

// Reads a stream to its end.
class PullReader : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  PullReader(grpc::GenericStub& stub, const std::string& request) {
    const grpc::Slice slice(request);
    request_ = grpc::ByteBuffer(&slice, 1);
    stub.PrepareBidiStreamingCall(&context_, kPull, grpc::StubOptions(), this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++messages;
    bytes += message_.Length();
    StartRead(&message_);
  }
  void OnDone(const grpc::Status& status) override {
    DieUnless(status, kPull);
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }

  uint64_t messages = 0;
  uint64_t bytes = 0;

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

// What becomes of so many unary calls, from whatever threads answer them.
class Tally {
 public:
  explicit Tally(uint64_t messages) : messages_(messages), begun_(clock_.Now()) {}

  const SystemClock& clock() const { return clock_; }
  MonotonicTime begun() const { return begun_; }

  void Took(Duration took) {
    std::lock_guard lock(mutex_);
    outcome_.latency.Add(static_cast<uint64_t>(took.nanoseconds()));
    if (++done_ == messages_) changed_.notify_all();
  }

  // Once all are done.
  Outcome Await(size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_ == messages_; });
    outcome_.seconds = (clock_.Now() - begun_).seconds();
    outcome_.messages = messages_;
    outcome_.bytes = messages_ * bytes;
    return std::move(outcome_);
  }

 private:
  const SystemClock clock_;
  const uint64_t messages_;
  const MonotonicTime begun_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t done_ = 0;
  Outcome outcome_;
};

}  // namespace

Client::Client(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  channel_ = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  CHECK(channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)))
      << "no server of the ceilings at " << target;
}

Outcome Client::Closed(const char* method, size_t bytes, size_t in_flight, uint64_t messages) {
  const Payload payload(bytes);
  grpc::GenericStub stub(channel_);
  std::vector<Call> calls(in_flight);
  std::atomic<uint64_t> started{0};
  Tally tally(messages);
  std::function<void(Call*)> start = [&](Call* call) {
    if (started++ >= messages) return;
    call->context = std::make_unique<grpc::ClientContext>();
    call->request = payload.Message();
    const MonotonicTime sent = tally.clock().Now();
    stub.UnaryCall(call->context.get(), method, grpc::StubOptions(), &call->request,
                   &call->response, [&, call, sent](const grpc::Status& status) {
                     DieUnless(status, method);
                     const Duration took = tally.clock().Now() - sent;
                     start(call);
                     tally.Took(took);
                   });
  };
  for (Call& call : calls) start(&call);
  return tally.Await(bytes);
}

Outcome Client::Paced(const char* method, size_t bytes, double per_second, uint64_t messages) {
  const Payload payload(bytes);
  grpc::GenericStub stub(channel_);
  Tally tally(messages);
  tools::RunPaced(
      tally.clock(), tools::SystemSleep(), tools::Schedule(tally.begun(), per_second), messages,
      [&](uint64_t, MonotonicTime due) {
        auto* call = new Call{std::make_unique<grpc::ClientContext>(), payload.Message(), {}};
        stub.UnaryCall(call->context.get(), method, grpc::StubOptions(), &call->request,
                       &call->response, [&, call, due](const grpc::Status& status) {
                         DieUnless(status, method);
                         const Duration took = tally.clock().Now() - due;
                         delete call;
                         tally.Took(took);
                       });
        return true;
      });
  return tally.Await(bytes);
}

Outcome Client::Pull(size_t bytes, uint64_t messages) {
  const SystemClock clock;
  grpc::GenericStub stub(channel_);
  const MonotonicTime begun = clock.Now();
  PullReader reader(stub, std::to_string(bytes) + " " + std::to_string(messages));
  reader.Wait();
  Outcome outcome;
  outcome.seconds = (clock.Now() - begun).seconds();
  outcome.messages = reader.messages;
  outcome.bytes = reader.bytes;
  CHECK_EQ(reader.messages, messages) << "the stream ended early";
  return outcome;
}

}  // namespace conclave::bench
