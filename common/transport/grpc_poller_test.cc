#include "common/transport/grpc_poller.h"

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "common/transport/completion.h"

namespace conclave::grpc_transport {
namespace {

// Told at once, on the poller's queue. Destroys itself then.
class Event {
 public:
  static void Put(Poller& poller, std::function<void()> told) {
    auto* const event = new Event(std::move(told));
    event->alarm_.Set(&poller.queue(), std::chrono::system_clock::now(), event->completion_.tag());
  }

 private:
  explicit Event(std::function<void()> told) : told_(std::move(told)) {}
  void Told(bool) {
    const std::function<void()> told = std::move(told_);
    delete this;
    told();
  }

  std::function<void()> told_;
  MemberCompletion<Event> completion_{this, &Event::Told};
  grpc::Alarm alarm_;
};

// Of an event that is told, by its thread.
std::thread::id TellOne(Poller& poller) {
  std::promise<std::thread::id> told;
  Event::Put(poller, [&] { told.set_value(std::this_thread::get_id()); });
  return told.get_future().get();
}

// An event that keeps its thread until it may go on.
class Blocking {
 public:
  explicit Blocking(Poller& poller) {
    Event::Put(poller, [this] {
      blocked_.set_value(std::this_thread::get_id());
      go_on_.get_future().wait();
      gone_on_.set_value();
    });
    thread = blocked_.get_future().get();
  }
  void GoOn() {
    go_on_.set_value();
    gone_on_.get_future().wait();
  }

  std::thread::id thread;

 private:
  std::promise<std::thread::id> blocked_;
  std::promise<void> go_on_, gone_on_;
};

TEST(GrpcPollerTest, OneThreadIsToldOfEverything) {
  Poller poller(1);
  // Of a thousand, for one may stand by for another that the machine keeps from running.
  std::set<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) threads.insert(TellOne(poller));
  EXPECT_LE(threads.size(), 2u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(GrpcPollerTest, AnotherTakesOverFromOneThatBlocks) {
  Poller poller(1);
  for (int round = 0; round < 3; ++round) {
    Blocking blocking(poller);
    EXPECT_NE(TellOne(poller), blocking.thread);
    EXPECT_NE(TellOne(poller), blocking.thread);
    blocking.GoOn();
  }
}

TEST(GrpcPollerTest, EachSeatIsTakenOver) {
  constexpr size_t kPollers = 3;
  Poller poller(kPollers);
  for (size_t round = 0; round < 2 * kPollers; ++round) {
    Blocking blocking(poller);
    for (int i = 0; i < 100; ++i) EXPECT_NE(TellOne(poller), blocking.thread);
    blocking.GoOn();
  }
}

TEST(GrpcPollerTest, WhatIsOnTheQueueIsToldBeforeItGoes) {
  std::atomic<int> told = 0;
  {
    Poller poller(1);
    for (int i = 0; i < 100; ++i) Event::Put(poller, [&] { ++told; });
  }
  EXPECT_EQ(told, 100);
}

TEST(GrpcPollerTest, TheBuilderIsTakenOnce) {
  Poller poller;
  EXPECT_NE(poller.TakeBuilder(), nullptr);
  EXPECT_EQ(poller.TakeBuilder(), nullptr);
}

}  // namespace
}  // namespace conclave::grpc_transport
