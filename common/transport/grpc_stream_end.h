#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/buffer/buffer.h"
#include "common/executor/executor.h"
#include "common/transport/completion.h"
#include "common/transport/transport.h"

namespace conclave::grpc_transport {

// What both ends of a gRPC stream share: the queue before the one write gRPC allows at a time, the
// reads, and the way from the threads that wait for gRPC to the handler on its executor.
//
// Lives until gRPC is done with it and its user has let go, whichever is later: `self_` is gRPC's
// share, and is let go of, with the call, when everything that was asked for under a tag has been
// told and nothing will be asked for any more. Everything here is guarded by `mutex_`, but for what
// belongs to the executor. gRPC never tells of what it is asked for from within the asking, so it
// may be asked under the lock; posting under the lock makes sure that nothing reaches the executor
// once Abandon() has returned.
class StreamEnd : public std::enable_shared_from_this<StreamEnd> {
 public:
  void Send(const Buffer& message);
  size_t pending_bytes() const;
  void SetReading(bool reading);

 protected:
  // Something is being told to the end, under its lock. The thread is lent to the executor after
  // that; and until it is back, the call is held, and with it whoever waits for calls to end: a
  // server or a transport that is gone has no thread of this kind in its executors.
  class Telling {
   public:
    explicit Telling(StreamEnd& end)
        : alive_(end.shared_from_this()),
          call_(end.held_call_),
          lend_(end.executor_),
          lock_(end.mutex_) {}

   private:
    const std::shared_ptr<StreamEnd> alive_;
    const std::shared_ptr<void> call_;
    const LendingScope lend_;
    const std::lock_guard<std::mutex> lock_;
  };

  // `executor`: nullptr until it is known; nothing is posted before.
  explicit StreamEnd(Executor* executor) : executor_(executor) {}
  virtual ~StreamEnd() = default;

  // Called under the lock. Asks gRPC.
  virtual void AskRead(grpc::ByteBuffer* into, void* tag) = 0;
  virtual void AskWrite(const grpc::ByteBuffer& message, void* tag) = 0;
  // Called under the lock: no read will succeed any more.
  virtual void ReadsEnded() = 0;
  // Called under the lock when something that was asked for has been told: what is next besides
  // reads and writes?
  virtual void Advance() = 0;
  // Called under the lock: whether a further message may be queued, or read.
  virtual bool CanWrite() const = 0;
  virtual bool CanRead() const = 0;
  // Called under the lock: the last has been asked for.
  virtual bool Over() const = 0;
  // Called under the lock, when what was asked for last has been told, too: nothing will be asked
  // of the call any more.
  virtual void Ended() = 0;

  // Under the lock, all of these.
  //
  // Starts a read unless one runs, the user paused, too much waits for it, or the stream is over.
  void MaybeRead();
  void MaybeWrite();
  bool reading_now() const { return read_asked_; }
  bool write_failed() const { return write_failed_; }
  bool anything_to_write() const { return write_asked_ || !queue_.empty(); }
  // Messages that gRPC was not given yet are not sent.
  void DropQueue();
  // A tag has been handed to gRPC, and has come back.
  void Asked() { ++asked_; }
  void Told() { --asked_; }
  // After whatever may have been the last: gRPC's share goes.
  void ReleaseIfDone();

  template <class Call>
  void PostToHandler(Call call) {
    if (abandoned_) return;
    executor_->Post([self = this->shared_from_this(), call = std::move(call)]() mutable {
      if (self->handler_ != nullptr) call(*self, *self->handler_);
    });
  }
  void PostClosed(absl::Status status);

  Executor* executor_;
  // These two on the executor alone.
  StreamHandler* handler_ = nullptr;
  std::optional<absl::Status> closed_before_start_;

  mutable std::mutex mutex_;
  // gRPC's share. The call is let go of by the last who is telling something of it.
  std::shared_ptr<StreamEnd> self_;
  std::shared_ptr<void> held_call_;
  // gRPC takes messages; the handler does.
  bool sending_ = false;
  bool receiving_ = false;
  bool abandoned_ = false;
  bool closed_posted_ = false;

 private:
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void Delivered(size_t size);

  // What comes of one thing may be told before it is noted that another was asked for.
  int64_t asked_ = 0;
  bool reading_ = true;
  bool read_asked_ = false;
  bool reads_ended_ = false;
  size_t undelivered_bytes_ = 0;
  grpc::ByteBuffer read_buffer_;
  std::deque<grpc::ByteBuffer> queue_;
  bool write_asked_ = false;
  bool write_failed_ = false;
  size_t pending_bytes_ = 0;
  mutable bool drain_wanted_ = false;
  grpc::ByteBuffer write_buffer_;
  MemberCompletion<StreamEnd> read_{this, &StreamEnd::OnRead};
  MemberCompletion<StreamEnd> written_{this, &StreamEnd::OnWritten};
};

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_STREAM_END_H_
