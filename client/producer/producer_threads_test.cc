// Send and WhenRoom from several threads, with threads for the producer and the brokers: for the
// thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/producer/producer.h"
#include "client/testing/fake_broker.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/transport/memory_transport.h"

namespace conclave {
namespace {

constexpr int kThreads = 4;
constexpr int kRecordsEach = 2000;

TEST(ProducerThreadsTest, AnyThreadMaySend) {
  SystemClock clock;
  ThreadExecutor broker_executor(clock, {.name = "brokers"});
  ThreadExecutor executor(clock, {.name = "client"});
  MemoryNetwork network;
  const auto broker_transport = network.Join("brokers");
  const auto transport = network.Join("client");
  client_testing::FakeWorld world;
  std::vector<std::unique_ptr<client_testing::FakeBroker>> brokers;
  std::promise<std::vector<std::string>> started;
  broker_executor.Post([&] {
    std::vector<std::string> endpoints;
    for (int id = 1; id <= 2; ++id) {
      brokers.push_back(std::make_unique<client_testing::FakeBroker>(world, id, *broker_transport,
                                                                     broker_executor, "brokers:0"));
      endpoints.push_back(world.endpoints[id]);
    }
    world.CreateTopic("t", kThreads);
    started.set_value(endpoints);
  });
  ProducerOptions options;
  options.bootstrap = started.get_future().get();
  options.buffer_bytes = 20'000;
  auto producer = std::make_unique<Producer>(options, *transport, executor, Random(1));

  std::atomic<int> stored{0};
  std::atomic<int> waited{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRecordsEach; ++i) {
        ProducerRecord record;
        record.topic = "t";
        record.partition = PartitionIndex(t);
        record.value = std::to_string(i);
        for (;;) {
          const absl::Status taken = producer->Send(record, [&stored, i](const Delivery& d) {
            if (d.status.ok() && d.offset == Offset(i)) ++stored;
          });
          if (taken.ok()) break;
          ASSERT_EQ(ErrorCodeOf(taken), v1::OVERLOADED);
          std::promise<void> room;
          producer->WhenRoom(BufferBytes(record), [&room] { room.set_value(); });
          room.get_future().wait();
          ++waited;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::promise<void> closed;
  executor.Post([&] { producer->Close(Duration::Seconds(60), [&closed] { closed.set_value(); }); });
  closed.get_future().wait();
  // Each at its place: the order of its thread.
  EXPECT_EQ(stored, kThreads * kRecordsEach);
  EXPECT_GT(waited, 0);
  std::promise<void> gone;
  executor.Post([&] {
    producer.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  executor.Stop();
  broker_executor.Stop();
}

}  // namespace
}  // namespace conclave
