#ifndef CONCLAVE_COMMON_TRANSPORT_MEMORY_STREAM_H_
#define CONCLAVE_COMMON_TRANSPORT_MEMORY_STREAM_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "common/transport/transport.h"
#include "common/transport/wire.h"

namespace conclave::memory_transport {

// Both ends of one stream in memory. Each end's events arrive through the wire on that end's
// executor, wait in its inbox while it is paused or not started, and are handed on in order.
class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  enum Side { kClient = 0, kServer = 1 };

  struct Party {
    std::string node;
    Executor* executor;
  };

  Pipe(Wire& wire, uint64_t id, Party client, Party server);

  // Runs `task` on the server's executor, by the wire, in the order of what the client sends.
  void CarryToServer(Executor::Task task);

  // Set before anything flows: the client's handler is there from the beginning.
  void Start(Side side, StreamHandler* handler);
  void Send(Side from, Buffer message);
  void HalfClose();
  void Finish(absl::Status status);
  void Abandon(Side side);
  void SetReading(Side side, bool reading);
  size_t pending_bytes(Side side) const;

  // Both ends hear that the stream broke, without the wire; `deaf` (or -1) hears nothing.
  void Break(const absl::Status& status, int deaf);

  const std::string& node(Side side) const { return ends_[side].node; }
  bool over() const;

 private:
  struct HalfClosed {};
  using Event = std::variant<Buffer, HalfClosed, absl::Status>;

  struct End {
    std::string node;
    Executor* executor = nullptr;
    StreamHandler* handler = nullptr;
    std::deque<Event> inbox;
    bool started = false;
    bool reading = true;
    bool abandoned = false;
    bool closed = false;  // OnClosed is in the inbox or was called: nothing follows it.
    bool sending = true;  // May still send.
    size_t pending_bytes = 0;
    mutable bool drain_wanted = false;
  };

  // Under the lock.
  void Carry(Side to, size_t bytes, Event event);
  void CloseLocally(Side side, absl::Status status);
  void PostPump(Side side);

  void Arrive(Side side, Event event);
  // On the side's executor: hands on what may be handed on.
  void Pump(Side side);
  void Consumed(Side sender, size_t bytes);

  Wire& wire_;
  const uint64_t id_;
  mutable std::mutex mutex_;
  std::array<End, 2> ends_;
};

std::unique_ptr<ClientStream> ClientEndOf(std::shared_ptr<Pipe> pipe);
std::unique_ptr<ServerStream> ServerEndOf(std::shared_ptr<Pipe> pipe, MonotonicTime deadline);

}  // namespace conclave::memory_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_MEMORY_STREAM_H_
