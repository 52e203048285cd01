#include "common/transport/memory_stream.h"

#include <utility>

namespace conclave::memory_transport {

namespace {

// A copy that shares nothing. Copies of an absl::Status share a counted value, and the counting is
// inside a library that the thread sanitizer does not see.
absl::Status Unshared(const absl::Status& status) {
  absl::Status copy(status.code(), status.message());
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { copy.SetPayload(url, payload); });
  return copy;
}

Pipe::Side Other(Pipe::Side side) { return side == Pipe::kClient ? Pipe::kServer : Pipe::kClient; }

}  // namespace

Pipe::Pipe(Wire& wire, uint64_t id, Party client, Party server) : wire_(wire), id_(id) {
  ends_[kClient].node = std::move(client.node);
  ends_[kClient].executor = client.executor;
  ends_[kServer].node = std::move(server.node);
  ends_[kServer].executor = server.executor;
}

void Pipe::CarryToServer(Executor::Task task) {
  wire_.Carry(ends_[kClient].node, ends_[kServer].node, id_ * 2 + kServer, 0,
              *ends_[kServer].executor, std::move(task));
}

void Pipe::Start(Side side, StreamHandler* handler) {
  std::lock_guard lock(mutex_);
  ends_[side].handler = handler;
  ends_[side].started = true;
  PostPump(side);
}

void Pipe::Send(Side from, Buffer message) {
  std::lock_guard lock(mutex_);
  End& sender = ends_[from];
  if (!sender.sending || sender.closed || sender.abandoned) return;
  const size_t bytes = message.size();
  sender.pending_bytes += bytes;
  Carry(Other(from), bytes, std::move(message));
}

void Pipe::HalfClose() {
  std::lock_guard lock(mutex_);
  End& client = ends_[kClient];
  if (!client.sending || client.closed || client.abandoned) return;
  client.sending = false;
  Carry(kServer, 0, HalfClosed{});
}

void Pipe::Finish(absl::Status status) {
  std::lock_guard lock(mutex_);
  End& server = ends_[kServer];
  if (!server.sending || server.closed || server.abandoned) return;
  server.sending = false;
  Carry(kClient, 0, Unshared(status));
  CloseLocally(kServer, std::move(status));
}

void Pipe::Abandon(Side side) {
  std::lock_guard lock(mutex_);
  End& end = ends_[side];
  if (end.abandoned) return;
  end.abandoned = true;
  end.handler = nullptr;
  end.inbox.clear();
  if (end.closed || (side == kServer && !end.sending)) return;
  end.closed = true;
  Carry(Other(side), 0,
        side == kClient ? absl::UnavailableError("client " + end.node + " is gone")
                        : absl::CancelledError("the server has given up the stream"));
}

void Pipe::SetReading(Side side, bool reading) {
  std::lock_guard lock(mutex_);
  ends_[side].reading = reading;
  if (reading) PostPump(side);
}

size_t Pipe::pending_bytes(Side side) const {
  std::lock_guard lock(mutex_);
  const End& end = ends_[side];
  if (end.pending_bytes > 0) end.drain_wanted = true;
  return end.pending_bytes;
}

bool Pipe::over() const {
  std::lock_guard lock(mutex_);
  return (ends_[kClient].closed || ends_[kClient].abandoned) &&
         (ends_[kServer].closed || ends_[kServer].abandoned);
}

void Pipe::Break(const absl::Status& status, int deaf) {
  std::lock_guard lock(mutex_);
  for (Side side : {kClient, kServer}) {
    if (side == deaf) {
      ends_[side].abandoned = true;
    } else {
      CloseLocally(side, Unshared(status));
    }
  }
}

void Pipe::Carry(Side to, size_t bytes, Event event) {
  // One number for each direction: the wire keeps the order within it.
  const uint64_t direction = id_ * 2 + static_cast<uint64_t>(to);
  wire_.Carry(ends_[Other(to)].node, ends_[to].node, direction, bytes, *ends_[to].executor,
              [self = shared_from_this(), to, event = std::move(event)]() mutable {
                self->Arrive(to, std::move(event));
              });
}

void Pipe::CloseLocally(Side side, absl::Status status) {
  End& end = ends_[side];
  if (end.closed || end.abandoned) return;
  end.closed = true;
  end.inbox.emplace_back(std::move(status));
  PostPump(side);
}

void Pipe::PostPump(Side side) {
  if (ends_[side].abandoned) return;
  ends_[side].executor->Post([self = shared_from_this(), side] { self->Pump(side); });
}

void Pipe::Arrive(Side side, Event event) {
  {
    std::lock_guard lock(mutex_);
    End& end = ends_[side];
    if (end.closed || end.abandoned) return;
    if (std::holds_alternative<absl::Status>(event)) end.closed = true;
    end.inbox.push_back(std::move(event));
  }
  Pump(side);
}

void Pipe::Pump(Side side) {
  std::unique_lock lock(mutex_);
  End& end = ends_[side];
  while (end.started && !end.abandoned && !end.inbox.empty()) {
    if (!end.reading && std::holds_alternative<Buffer>(end.inbox.front())) return;
    Event event = std::move(end.inbox.front());
    end.inbox.pop_front();
    StreamHandler* handler = end.handler;
    lock.unlock();
    // The handler may abandon the stream from within: `end` lives on in this pipe.
    if (auto* message = std::get_if<Buffer>(&event)) {
      const size_t bytes = message->size();
      handler->OnMessage(std::move(*message));
      Consumed(Other(side), bytes);
    } else if (auto* status = std::get_if<absl::Status>(&event)) {
      handler->OnClosed(std::move(*status));
    } else {
      handler->OnHalfClose();
    }
    lock.lock();
  }
}

void Pipe::Consumed(Side sender, size_t bytes) {
  std::lock_guard lock(mutex_);
  End& end = ends_[sender];
  end.pending_bytes -= bytes;
  if (bytes == 0 || end.pending_bytes > 0 || end.closed || end.abandoned) return;
  if (!std::exchange(end.drain_wanted, false)) return;
  end.executor->Post([self = shared_from_this(), sender] {
    std::unique_lock lock(self->mutex_);
    End& end = self->ends_[sender];
    if (!end.started || end.closed || end.abandoned) return;
    StreamHandler* handler = end.handler;
    lock.unlock();
    handler->OnDrained();
  });
}

namespace {

class ClientEnd : public ClientStream {
 public:
  explicit ClientEnd(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
  ~ClientEnd() override { pipe_->Abandon(Pipe::kClient); }
  void Send(Buffer message) override { pipe_->Send(Pipe::kClient, std::move(message)); }
  size_t pending_bytes() const override { return pipe_->pending_bytes(Pipe::kClient); }
  void SetReading(bool reading) override { pipe_->SetReading(Pipe::kClient, reading); }
  void HalfClose() override { pipe_->HalfClose(); }

 private:
  const std::shared_ptr<Pipe> pipe_;
};

class ServerEnd : public ServerStream {
 public:
  ServerEnd(std::shared_ptr<Pipe> pipe, MonotonicTime deadline)
      : pipe_(std::move(pipe)), deadline_(deadline) {}
  ~ServerEnd() override { pipe_->Abandon(Pipe::kServer); }
  void Start(StreamHandler* handler) override { pipe_->Start(Pipe::kServer, handler); }
  void Send(Buffer message) override { pipe_->Send(Pipe::kServer, std::move(message)); }
  size_t pending_bytes() const override { return pipe_->pending_bytes(Pipe::kServer); }
  void SetReading(bool reading) override { pipe_->SetReading(Pipe::kServer, reading); }
  void Finish(absl::Status status) override { pipe_->Finish(std::move(status)); }
  std::string peer() const override { return pipe_->node(Pipe::kClient); }
  MonotonicTime deadline() const override { return deadline_; }

 private:
  const std::shared_ptr<Pipe> pipe_;
  const MonotonicTime deadline_;
};

}  // namespace

std::unique_ptr<ClientStream> ClientEndOf(std::shared_ptr<Pipe> pipe) {
  return std::make_unique<ClientEnd>(std::move(pipe));
}

std::unique_ptr<ServerStream> ServerEndOf(std::shared_ptr<Pipe> pipe, MonotonicTime deadline) {
  return std::make_unique<ServerEnd>(std::move(pipe), deadline);
}

}  // namespace conclave::memory_transport
