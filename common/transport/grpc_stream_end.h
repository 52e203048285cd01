#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/buffer/buffer.h"
#include "common/executor/executor.h"
#include "common/transport/grpc_convert.h"
#include "common/transport/transport.h"

namespace conclave::grpc_transport {

// What both ends of a gRPC stream share: the queue before the one write gRPC allows at a time, the
// reads, and the way from gRPC's threads to the handler on its executor. `Reactor` is gRPC's
// ServerBidiReactor or ClientBidiReactor of byte buffers.
//
// Lives until gRPC is done with it and its user has let go, whichever is later: `self_` is gRPC's
// share. Everything here is guarded by `mutex_`, but for what belongs to the executor.
// gRPC never calls back from within StartRead and StartWrite, so they may be called under the lock;
// posting under the lock makes sure that nothing reaches the executor once Abandon() has returned.
template <class Reactor>
class StreamEnd : public Reactor, public std::enable_shared_from_this<StreamEnd<Reactor>> {
 public:
  explicit StreamEnd(Executor& executor) : executor_(executor) {}

  void Send(const Buffer& message) {
    std::lock_guard lock(mutex_);
    if (!CanWrite()) return;
    pending_bytes_ += message.size();
    queue_.push_back(ToByteBuffer(message));
    if (!writing_) WriteNext();
  }

  size_t pending_bytes() const {
    std::lock_guard lock(mutex_);
    if (pending_bytes_ > 0) drain_wanted_ = true;
    return pending_bytes_;
  }

  void SetReading(bool reading) {
    std::lock_guard lock(mutex_);
    reading_ = reading;
    MaybeRead();
  }

  void OnReadDone(bool ok) override {
    const LendingScope lend(executor_);
    std::lock_guard lock(mutex_);
    read_outstanding_ = false;
    if (!ok) {
      reads_ended_ = true;
      ReadsEnded();
      return;
    }
    const size_t size = read_buffer_.Length();
    undelivered_bytes_ += size;
    PostToHandler([message = FromByteBuffer(read_buffer_), size](StreamEnd& self,
                                                                 StreamHandler& handler) mutable {
      handler.OnMessage(std::move(message));
      self.Delivered(size);
    });
    read_buffer_.Clear();
    MaybeRead();
  }

  void OnWriteDone(bool ok) override {
    const LendingScope lend(executor_);
    std::lock_guard lock(mutex_);
    writing_ = false;
    pending_bytes_ -= write_buffer_.Length();
    write_buffer_.Clear();
    if (!ok) {
      // The stream is broken; how is told elsewhere (OnDone, OnCancel).
      write_failed_ = true;
      queue_.clear();
      pending_bytes_ = 0;
    }
    if (!queue_.empty()) {
      WriteNext();
      return;
    }
    // A wake-up for nothing costs as much as one for a message.
    if (ok && std::exchange(drain_wanted_, false)) {
      PostToHandler([](StreamEnd&, StreamHandler& handler) { handler.OnDrained(); });
    }
    WritesIdle();
  }

 protected:
  // Called under the lock: no read will succeed any more; no write is under way or waiting.
  virtual void ReadsEnded() = 0;
  virtual void WritesIdle() = 0;
  // Called under the lock: whether a further message may be queued.
  virtual bool CanWrite() const = 0;
  // Called under the lock: false once gRPC may be done with the stream, after which it must not be
  // asked to read any more.
  virtual bool CanRead() const = 0;

  // Under the lock. Starts a read unless one runs, the user paused, too much waits for it, or the
  // stream is over.
  void MaybeRead() {
    if (!started_ || !CanRead() || read_outstanding_ || reads_ended_ || !reading_) return;
    if (undelivered_bytes_ > kMaxUndeliveredBytes) return;
    read_outstanding_ = true;
    this->StartRead(&read_buffer_);
  }

  // Under the lock.
  template <class Call>
  void PostToHandler(Call call) {
    if (abandoned_) return;
    executor_.Post([self = this->shared_from_this(), call = std::move(call)]() mutable {
      if (self->handler_ != nullptr) call(*self, *self->handler_);
    });
  }

  // Under the lock.
  void PostClosed(absl::Status status) {
    if (closed_posted_ || abandoned_) return;
    closed_posted_ = true;
    executor_.Post([self = this->shared_from_this(), status = std::move(status)]() mutable {
      StreamHandler* handler = std::exchange(self->handler_, nullptr);
      if (handler != nullptr) {
        handler->OnClosed(std::move(status));
      } else {
        self->closed_before_start_ = std::move(status);
      }
    });
  }

  // A stream reads ahead of its handler by this much.
  static constexpr size_t kMaxUndeliveredBytes = 1 << 20;

  Executor& executor_;
  // These two on the executor alone.
  StreamHandler* handler_ = nullptr;
  std::optional<absl::Status> closed_before_start_;

  mutable std::mutex mutex_;
  std::shared_ptr<StreamEnd> self_;
  bool started_ = false;
  bool abandoned_ = false;
  bool closed_posted_ = false;
  bool reading_ = true;
  bool read_outstanding_ = false;
  bool reads_ended_ = false;
  size_t undelivered_bytes_ = 0;
  grpc::ByteBuffer read_buffer_;
  std::deque<grpc::ByteBuffer> queue_;
  bool writing_ = false;
  bool write_failed_ = false;
  size_t pending_bytes_ = 0;
  mutable bool drain_wanted_ = false;
  grpc::ByteBuffer write_buffer_;

 private:
  void WriteNext() {
    writing_ = true;
    write_buffer_.Swap(&queue_.front());
    queue_.pop_front();
    this->StartWrite(&write_buffer_);
  }

  void Delivered(size_t size) {
    std::lock_guard lock(mutex_);
    undelivered_bytes_ -= size;
    MaybeRead();
  }
};

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_
