#include "common/rpc/unary_call.h"

#include <map>
#include <mutex>
#include <utility>

#include "common/error/error.h"

namespace conclave {
namespace {

class UnaryCall;

// The open calls of one method.
struct OpenCalls {
  UnaryHandler handle;
  std::mutex mutex;
  std::map<UnaryCall*, std::unique_ptr<UnaryCall>> calls;
};

// The call's stream, as long as it is there to be answered on. Shared by the call and whoever is to
// answer it: the answer may come from any thread, and after the call is gone.
class Line {
 public:
  explicit Line(ServerStream* stream) : stream_(stream) {}

  void Reply(Buffer response) {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    stream_->Send(std::move(response));
    std::exchange(stream_, nullptr)->Finish(absl::OkStatus());
  }
  void Finish(absl::Status status) {
    std::lock_guard lock(mutex_);
    if (stream_ == nullptr) return;
    std::exchange(stream_, nullptr)->Finish(std::move(status));
  }
  void Cut() {
    std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }

 private:
  std::mutex mutex_;
  ServerStream* stream_;
};

class Answer : public UnaryAnswer {
 public:
  explicit Answer(std::shared_ptr<Line> line) : line_(std::move(line)) {}
  ~Answer() override {
    line_->Finish(
        MakeError(v1::NOT_READY, "the request was dropped unanswered: the node is stopping"));
  }
  void Reply(Buffer response) override { line_->Reply(std::move(response)); }
  void Finish(absl::Status status) override { line_->Finish(std::move(status)); }

 private:
  const std::shared_ptr<Line> line_;
};

class UnaryCall : public StreamHandler {
 public:
  UnaryCall(std::shared_ptr<OpenCalls> open, std::unique_ptr<ServerStream> stream)
      : open_(std::move(open)),
        stream_(std::move(stream)),
        line_(std::make_shared<Line>(stream_.get())) {}
  ~UnaryCall() override { line_->Cut(); }

  void Start() { stream_->Start(this); }

  void OnMessage(Buffer message) override {
    if (std::exchange(received_, true)) {
      line_->Finish(MakeError(v1::INVALID_REQUEST, "a unary call takes one message, not more"));
      return;
    }
    open_->handle(std::move(message), {stream_->peer(), stream_->deadline()},
                  std::make_shared<Answer>(line_));
  }

  void OnHalfClose() override {
    if (!received_) {
      line_->Finish(MakeError(v1::INVALID_REQUEST, "the call ended before its request"));
    }
  }

  void OnClosed(absl::Status) override {
    std::unique_ptr<UnaryCall> self;
    const std::shared_ptr<OpenCalls> open = open_;
    std::lock_guard lock(open->mutex);
    const auto it = open->calls.find(this);
    self = std::move(it->second);
    open->calls.erase(it);
  }

 private:
  const std::shared_ptr<OpenCalls> open_;
  const std::unique_ptr<ServerStream> stream_;
  const std::shared_ptr<Line> line_;
  bool received_ = false;
};

// Ends the cycle between the calls and their set when the acceptor goes.
class Acceptor {
 public:
  explicit Acceptor(UnaryHandler handle) : open_(std::make_shared<OpenCalls>()) {
    open_->handle = std::move(handle);
  }
  ~Acceptor() {
    std::map<UnaryCall*, std::unique_ptr<UnaryCall>> calls;
    std::lock_guard lock(open_->mutex);
    calls.swap(open_->calls);
  }

  void Accept(std::unique_ptr<ServerStream> stream) {
    auto call = std::make_unique<UnaryCall>(open_, std::move(stream));
    UnaryCall* raw = call.get();
    {
      std::lock_guard lock(open_->mutex);
      open_->calls.emplace(raw, std::move(call));
    }
    raw->Start();
  }

 private:
  const std::shared_ptr<OpenCalls> open_;
};

}  // namespace

StreamAcceptor UnaryAcceptor(UnaryHandler handle) {
  // std::function wants to be copied, so the acceptor is shared.
  return [acceptor = std::make_shared<Acceptor>(std::move(handle))](
             std::unique_ptr<ServerStream> stream) { acceptor->Accept(std::move(stream)); };
}

}  // namespace conclave
