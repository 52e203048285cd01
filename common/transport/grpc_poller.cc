#include "common/transport/grpc_poller.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "common/transport/completion.h"

namespace conclave::grpc_transport {
namespace {

// A thread that has been telling one event since the last look is not waited for any longer. Short
// beside what nodes allow each other (session and election time-outs), and long enough to cost
// nothing; less often while there is nothing to tell.
constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kLookAtRestEvery{200};

}  // namespace

size_t Poller::UsualCount() {
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 4, 1, 8);
}

Poller::Poller(size_t pollers)
    : builder_(std::make_unique<grpc::ServerBuilder>()),
      queue_(builder_->AddCompletionQueue()),
      seats_(pollers) {
  for (size_t i = 0; i < pollers; ++i) seats_[i].holder = i;
  for (size_t i = 0; i <= pollers; ++i) threads_.emplace_back([this, i] { Run(i); });
}

Poller::~Poller() {
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<grpc::ServerBuilder> Poller::TakeBuilder() {
  std::lock_guard lock(mutex_);
  return std::move(builder_);
}

void Poller::Run(size_t self) {
  pthread_setname_np(pthread_self(), "grpc-poller");
  if (self < seats_.size()) Poll(seats_[self], self);
  while (Seat* const seat = StandBy(self)) Poll(*seat, self);
}

Poller::Seat* Poller::StandBy(size_t self) {
  std::vector<uint64_t> told(seats_.size());
  for (size_t i = 0; i < seats_.size(); ++i) told[i] = seats_[i].told;
  std::unique_lock lock(mutex_);
  bool busy = true;
  while (!over_) {
    wake_.wait_for(lock, busy ? kLookEvery : kLookAtRestEvery);
    busy = false;
    for (size_t i = 0; i < seats_.size(); ++i) {
      Seat& seat = seats_[i];
      const uint64_t now = seat.told;
      if (!over_ && now == told[i] && !seat.waiting) {
        seat.holder = self;
        return &seat;
      }
      busy = busy || !seat.waiting;
      told[i] = now;
    }
  }
  return nullptr;
}

void Poller::Poll(Seat& seat, size_t self) {
  while (seat.holder == self) {
    seat.waiting = true;
    void* tag = nullptr;
    bool ok = false;
    if (!queue_->Next(&tag, &ok)) {
      std::lock_guard lock(mutex_);
      over_ = true;
      wake_.notify_all();
      return;
    }
    // One who has lost the seat meanwhile says nothing of it.
    if (seat.holder == self) seat.waiting = false;
    static_cast<Completion*>(tag)->OnCompleted(ok);
    ++seat.told;
  }
}

}  // namespace conclave::grpc_transport
