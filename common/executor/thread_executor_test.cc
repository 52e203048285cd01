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
  ThreadExecutor executor(clock_, {.name = "small", .capacity = 1});
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

// Also one that waits behind the task that cancels it.
TEST_F(ThreadExecutorTest, ATimerThatIsDueCanBeCancelledUntilItRuns) {
  ThreadExecutor executor(clock_, {});
  bool ran = false;
  std::promise<void> done;
  executor.Post([&] {
    const MonotonicTime due = clock_.Now();
    const TimerId timer = executor.PostAt(due, [&] { ran = true; });
    executor.PostAt(due, [&] { done.set_value(); });
    executor.PostAt(due - Duration::Milliseconds(1), [&executor, timer] {
      // All three are among the tasks by now.
      executor.Cancel(timer);
    });
  });
  done.get_future().wait();
  Drain(executor);
  EXPECT_FALSE(ran);
}

// --- Lent threads

TEST_F(ThreadExecutorTest, AnIdleExecutorRunsOnTheThreadThatIsLent) {
  ThreadExecutor executor(clock_, {.takes_lent_threads = true});
  std::vector<std::thread::id> ran;
  {
    const LendingScope lend(executor);
    executor.Post([&] {
      ran.push_back(std::this_thread::get_id());
      EXPECT_TRUE(executor.IsCurrent());
      executor.Post([&] { ran.push_back(std::this_thread::get_id()); });
    });
    EXPECT_TRUE(ran.empty()) << "nothing runs within the scope, where locks may be held";
  }
  EXPECT_EQ(ran, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  EXPECT_FALSE(executor.IsCurrent());
}

TEST_F(ThreadExecutorTest, WhoDoesNotTakeLentThreadsHasItsOwn) {
  ThreadExecutor executor(clock_, {});
  std::promise<std::thread::id> ran;
  {
    const LendingScope lend(executor);
    executor.Post([&] { ran.set_value(std::this_thread::get_id()); });
  }
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST_F(ThreadExecutorTest, WhoLendsLeavesWhatIsMoreToTheExecutorsThread) {
  ThreadExecutor executor(clock_, {.takes_lent_threads = true});
  int here = 0;
  int there = 0;
  const auto caller = std::this_thread::get_id();
  {
    const LendingScope lend(executor);
    for (int i = 0; i < 100; ++i) {
      executor.Post([&, caller] { ++(std::this_thread::get_id() == caller ? here : there); });
    }
  }
  Drain(executor);
  EXPECT_EQ(here + there, 100);
  EXPECT_GT(here, 0);
  EXPECT_GT(there, here);
}

TEST_F(ThreadExecutorTest, WhoLendsDoesNotWaitForABusyExecutor) {
  ThreadExecutor executor(clock_, {.takes_lent_threads = true});
  std::promise<void> busy;
  std::promise<void> go_on;
  executor.Post([&] {
    busy.set_value();
    go_on.get_future().wait();
  });
  busy.get_future().wait();
  std::promise<std::thread::id> ran;
  {
    const LendingScope lend(executor);
    executor.Post([&] { ran.set_value(std::this_thread::get_id()); });
  }
  go_on.set_value();
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
}

TEST_F(ThreadExecutorTest, LendersPostersAndTimersAreOneAtATimeAndInOrder) {
  ThreadExecutor executor(clock_, {.takes_lent_threads = true});
  constexpr int kTasks = 2000;
  std::vector<int> last(4, -1);  // Unguarded on purpose, as `count`.
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        const auto task = [&, t, i] {
          EXPECT_EQ(last[static_cast<size_t>(t)], i - 1);
          last[static_cast<size_t>(t)] = i;
          ++count;
          if (i % 10 == 0) executor.PostAfter(Duration::Microseconds(50), [&] { ++count; });
        };
        if (t == 0) {
          executor.Post(task);
        } else {
          const LendingScope lend(executor);
          executor.Post(task);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const int expected = 4 * kTasks + 4 * kTasks / 10;
  for (bool all = false; !all;) {
    std::promise<bool> looked;
    executor.Post([&] { looked.set_value(count == expected); });
    all = looked.get_future().get();
  }
}

TEST_F(ThreadExecutorTest, StopWaitsForALentThread) {
  ThreadExecutor executor(clock_, {.takes_lent_threads = true});
  std::promise<void> busy;
  std::promise<void> go_on;
  std::atomic<bool> done = false;
  std::thread lender([&] {
    const LendingScope lend(executor);
    executor.Post([&] {
      busy.set_value();
      go_on.get_future().wait();
      done = true;
    });
  });
  busy.get_future().wait();
  std::thread other([&] { go_on.set_value(); });
  executor.Stop();
  EXPECT_TRUE(done);
  lender.join();
  other.join();
}

// Counts how often threads other than the one that made it look.
class WatchedClock : public Clock {
 public:
  MonotonicTime Now() const override {
    if (std::this_thread::get_id() != maker_) ++looks_;
    return clock_.Now();
  }
  WallTime WallNow() const override { return clock_.WallNow(); }
  int looks() const { return looks_; }

 private:
  SystemClock clock_;
  const std::thread::id maker_ = std::this_thread::get_id();
  mutable std::atomic<int> looks_ = 0;
};

TEST_F(ThreadExecutorTest, ATimerThatFallsDueDuringALentTaskIsCancelledByIt) {
  WatchedClock clock;
  ThreadExecutor executor(clock, {.takes_lent_threads = true});
  bool ran = false;
  {
    const LendingScope lend(executor);
    executor.Post([&] {
      const int looks = clock.looks();
      const TimerId timer = executor.PostAt(clock.Now(), [&] { ran = true; });
      // With that look the executor's own thread puts it among the tasks that wait.
      while (clock.looks() == looks) std::this_thread::yield();
      executor.Cancel(timer);
    });
  }
  Drain(executor);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace conclave
