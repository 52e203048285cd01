#include "common/executor/thread_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "common/clock/system_clock.h"

namespace conclave {
namespace {

class ThreadExecutorTest : public ::testing::Test {
 protected:
  // Waits until everything posted so far has run.
  void Drain(Executor& executor) {
    std::promise<void> done;
    executor.Post([&] { done.set_value(); });
    done.get_future().wait();
  }

  SystemClock clock_;
};

TEST_F(ThreadExecutorTest, RunsInTheOrderPosted) {
  ThreadExecutor executor(clock_, {});
  std::vector<int> ran;
  for (int i = 0; i < 1000; ++i) executor.Post([&ran, i] { ran.push_back(i); });
  Drain(executor);
  ASSERT_EQ(ran.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[i], i);
}

TEST_F(ThreadExecutorTest, PostsFromManyThreadsAllRunOneAtATime) {
  ThreadExecutor executor(clock_, {});
  int count = 0;  // Unguarded on purpose: the executor is the guard.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) executor.Post([&] { ++count; });
    });
  }
  for (auto& thread : threads) thread.join();
  Drain(executor);
  EXPECT_EQ(count, 4000);
}

TEST_F(ThreadExecutorTest, TimersFireInOrderOfTime) {
  ThreadExecutor executor(clock_, {});
  const MonotonicTime start = clock_.Now();
  std::vector<int> fired;
  std::promise<void> done;
  executor.PostAt(start + Duration::Milliseconds(20), [&] {
    fired.push_back(2);
    done.set_value();
  });
  executor.PostAt(start + Duration::Milliseconds(5), [&] { fired.push_back(1); });
  executor.PostAt(start - Duration::Seconds(1), [&] { fired.push_back(0); });
  executor.PostAt(MonotonicTime::Never(), [&] { fired.push_back(9); });
  done.get_future().wait();
  EXPECT_GE(clock_.Now() - start, Duration::Milliseconds(20));
  EXPECT_EQ(fired, (std::vector<int>{0, 1, 2}));
}

TEST_F(ThreadExecutorTest, ACancelledTimerDoesNotFire) {
  ThreadExecutor executor(clock_, {});
  bool fired = false;
  std::promise<void> done;
  const TimerId timer = executor.PostAfter(Duration::Milliseconds(5), [&] { fired = true; });
  executor.Cancel(timer);
  executor.Cancel(timer);
  executor.PostAfter(Duration::Milliseconds(10), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(fired);
}

TEST_F(ThreadExecutorTest, RefusesNewWorkWhenFullButNeverCompletions) {
  ThreadExecutor executor(clock_, {.name = "small", .capacity = 2});
  std::promise<void> running, release;
  executor.Post([&] {
    running.set_value();
    release.get_future().wait();
  });
  running.get_future().wait();
  std::atomic<int> ran = 0;
  EXPECT_TRUE(executor.TryPost([&] { ++ran; }));
  EXPECT_FALSE(executor.TryPost([&] { ++ran; }));
  executor.Post([&] { ++ran; });
  release.set_value();
  Drain(executor);
  EXPECT_EQ(ran, 2);
}

TEST_F(ThreadExecutorTest, StopDestroysWhatWaitsUnrun) {
  auto token = std::make_shared<int>(0);
  ThreadExecutor executor(clock_, {});
  executor.PostAt(MonotonicTime::Never(), [token] {});
  executor.Stop();
  executor.Post([token] { FAIL(); });
  executor.PostAfter(Duration(), [token] { FAIL(); });
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace conclave
