#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_POLLER_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_POLLER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace grpc {
class CompletionQueue;
class ServerBuilder;
class ServerCompletionQueue;
}  // namespace grpc

namespace conclave::grpc_transport {

// A completion queue of gRPC's, and the threads that wait at it. Everything put on the queue has
// a Completion for a tag.
//
// gRPC polls the sockets of a process from one thread at a time, whatever the queue. With several
// threads that wait, each event that one of them takes has another one woken to poll on, which
// costs more than most events do. So one thread waits (on machines with many processors, a few),
// and another stands by: it takes over from a thread that does not come back to wait, because what
// it has been given to run takes long or blocks.
//
// Thread-safe. Destroyed by a thread of none, once nothing uses the queue any more.
class Poller {
 public:
  // How many threads wait for gRPC at a time, on this machine.
  static size_t UsualCount();

  explicit Poller(size_t pollers = UsualCount());
  // Returns when what was on the queue has been told.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // May serve the server that is built with TakeBuilder()'s, and calls to others.
  grpc::ServerCompletionQueue& queue() { return *queue_; }

  // What the queue was made with, for the one server that it can serve; nullptr when that was taken
  // already.
  std::unique_ptr<grpc::ServerBuilder> TakeBuilder();

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  // What one of those who wait does.
  struct Seat {
    // The thread, by its number. It leaves once another one is here.
    std::atomic<size_t> holder = kNobody;
    // Of the events that were told.
    std::atomic<uint64_t> told = 0;
    // False while an event is told.
    std::atomic<bool> waiting = true;
  };

  void Run(size_t self);
  // Returns when a seat has been taken over; nullptr: there is no more to wait for.
  Seat* StandBy(size_t self);
  // Returns when another thread has taken over the seat, or there is no more to wait for.
  void Poll(Seat& seat, size_t self);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::unique_ptr<grpc::ServerBuilder> builder_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<Seat> seats_;
  std::vector<std::thread> threads_;
};

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_POLLER_H_
