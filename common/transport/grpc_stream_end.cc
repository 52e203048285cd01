#include "common/transport/grpc_stream_end.h"

#include "common/transport/grpc_convert.h"

namespace conclave::grpc_transport {
namespace {

// A stream reads ahead of its handler by this much.
constexpr size_t kMaxUndeliveredBytes = 1 << 20;

}  // namespace

void StreamEnd::Send(const Buffer& message) {
  std::lock_guard lock(mutex_);
  if (!CanWrite()) return;
  pending_bytes_ += message.size();
  queue_.push_back(ToByteBuffer(message));
  MaybeWrite();
}

size_t StreamEnd::pending_bytes() const {
  std::lock_guard lock(mutex_);
  if (pending_bytes_ > 0) drain_wanted_ = true;
  return pending_bytes_;
}

void StreamEnd::SetReading(bool reading) {
  std::lock_guard lock(mutex_);
  reading_ = reading;
  MaybeRead();
}

void StreamEnd::MaybeRead() {
  if (!receiving_ || !CanRead() || read_asked_ || reads_ended_ || !reading_) return;
  if (undelivered_bytes_ > kMaxUndeliveredBytes) return;
  read_asked_ = true;
  Asked();
  AskRead(&read_buffer_, read_.tag());
}

void StreamEnd::OnRead(bool ok) {
  const Telling telling(*this);
  Told();
  read_asked_ = false;
  if (ok) {
    const size_t size = read_buffer_.Length();
    undelivered_bytes_ += size;
    PostToHandler([message = FromByteBuffer(read_buffer_), size](StreamEnd& self,
                                                                 StreamHandler& handler) mutable {
      handler.OnMessage(std::move(message));
      self.Delivered(size);
    });
    read_buffer_.Clear();
    MaybeRead();
  } else {
    reads_ended_ = true;
    ReadsEnded();
  }
  Advance();
  ReleaseIfDone();
}

void StreamEnd::Delivered(size_t size) {
  std::lock_guard lock(mutex_);
  undelivered_bytes_ -= size;
  MaybeRead();
}

void StreamEnd::MaybeWrite() {
  if (!sending_ || Over() || write_asked_ || queue_.empty()) return;
  write_asked_ = true;
  write_buffer_.Swap(&queue_.front());
  queue_.pop_front();
  Asked();
  AskWrite(write_buffer_, written_.tag());
}

void StreamEnd::OnWritten(bool ok) {
  const Telling telling(*this);
  Told();
  write_asked_ = false;
  pending_bytes_ -= write_buffer_.Length();
  write_buffer_.Clear();
  if (!ok) {
    // The stream is broken; how is told elsewhere.
    write_failed_ = true;
    DropQueue();
  }
  MaybeWrite();
  // A wake-up for nothing costs as much as one for a message.
  if (ok && !write_asked_ && std::exchange(drain_wanted_, false)) {
    PostToHandler([](StreamEnd&, StreamHandler& handler) { handler.OnDrained(); });
  }
  Advance();
  ReleaseIfDone();
}

void StreamEnd::DropQueue() {
  for (const grpc::ByteBuffer& waiting : queue_) pending_bytes_ -= waiting.Length();
  queue_.clear();
}

void StreamEnd::ReleaseIfDone() {
  if (asked_ != 0 || !Over() || self_ == nullptr) return;
  Ended();
  held_call_.reset();
  self_.reset();
}

void StreamEnd::PostClosed(absl::Status status) {
  if (closed_posted_ || abandoned_) return;
  closed_posted_ = true;
  executor_->Post([self = shared_from_this(), status = std::move(status)]() mutable {
    StreamHandler* handler = std::exchange(self->handler_, nullptr);
    if (handler != nullptr) {
      handler->OnClosed(std::move(status));
    } else {
      self->closed_before_start_ = std::move(status);
    }
  });
}

}  // namespace conclave::grpc_transport
