#include "common/sim/sim_executor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/sim/sim_clock.h"
#include "common/sim/sim_scheduler.h"

namespace conclave {
namespace {

constexpr Duration Ms(int64_t n) { return Duration::Milliseconds(n); }

TEST(SimSchedulerTest, RunsByTimeThenByOrderOfScheduling) {
  SimScheduler scheduler;
  const MonotonicTime start = scheduler.now();
  std::string order;
  scheduler.At(start + Ms(2), [&] { order += "c"; });
  scheduler.At(start + Ms(1), [&] { order += "a"; });
  scheduler.At(start + Ms(2), [&] { order += "d"; });
  const auto cancelled = scheduler.At(start + Ms(1), [&] { order += "x"; });
  scheduler.At(start + Ms(1), [&] {
    order += "b";
    scheduler.Cancel(cancelled);
    // What has passed comes at once, behind what is due.
    scheduler.At(start, [&] { order += "!"; });
  });
  scheduler.At(start + Ms(9), [&] { order += "late"; });
  const auto moot = scheduler.At(start + Ms(1), [] {});
  scheduler.RunUntil(start + Ms(5));
  scheduler.Cancel(moot);
  // The one cancelled stood before the one that cancelled it, and had run.
  EXPECT_EQ(order, "axb!cd");
  EXPECT_EQ(scheduler.now(), start + Ms(5));
  EXPECT_EQ(scheduler.pending(), 1u);
  EXPECT_TRUE(scheduler.RunOne());
  EXPECT_EQ(scheduler.now(), start + Ms(9));
  EXPECT_FALSE(scheduler.RunOne());
}

TEST(SimSchedulerTest, CancelledEventsDoNotRun) {
  SimScheduler scheduler;
  bool ran = false;
  const auto id = scheduler.After(Ms(1), [&] { ran = true; });
  scheduler.Cancel(id);
  scheduler.RunFor(Ms(2));
  EXPECT_FALSE(ran);
  EXPECT_EQ(scheduler.events(), 0u);
}

TEST(SimSchedulerTest, TheHashTellsHistoriesApart) {
  const auto hash = [](Duration delay, uint64_t mixed) {
    SimScheduler scheduler;
    scheduler.After(delay, [&] { scheduler.Mix(mixed); });
    scheduler.RunFor(Ms(10));
    return scheduler.trace_hash();
  };
  EXPECT_EQ(hash(Ms(1), 1), hash(Ms(1), 1));
  EXPECT_NE(hash(Ms(1), 1), hash(Ms(2), 1));
  EXPECT_NE(hash(Ms(1), 1), hash(Ms(1), 2));
}

TEST(SimClockTest, TheWallClockStepsAlone) {
  SimScheduler scheduler;
  SimClock right(scheduler);
  SimClock wrong(scheduler, Duration::Seconds(5));
  EXPECT_EQ(wrong.WallNow().unix_millis() - right.WallNow().unix_millis(), 5'000);
  const MonotonicTime monotonic = wrong.Now();
  const WallTime wall = wrong.WallNow();
  scheduler.RunFor(Ms(250));
  EXPECT_EQ(wrong.Now() - monotonic, Ms(250));
  EXPECT_EQ(wrong.WallNow().unix_millis() - wall.unix_millis(), 250);
  wrong.StepWall(Duration::Seconds(-3600));
  EXPECT_EQ(wrong.Now() - monotonic, Ms(250));
  EXPECT_EQ(wrong.WallNow().unix_millis() - wall.unix_millis(), 250 - 3'600'000);
}

class SimExecutorTest : public ::testing::Test {
 protected:
  SimScheduler scheduler_;
  SimClock clock_{scheduler_};
  std::string order_;
};

TEST_F(SimExecutorTest, RunsInTheOrderPosted) {
  SimExecutor executor(scheduler_, clock_);
  executor.Post([&] {
    order_ += "a";
    executor.Post([&] { order_ += "c"; });
  });
  executor.Post([&] { order_ += "b"; });
  // Never from within Post.
  EXPECT_EQ(order_, "");
  scheduler_.RunFor(Duration());
  EXPECT_EQ(order_, "abc");
}

TEST_F(SimExecutorTest, ExecutorsTakeTurns) {
  SimExecutor one(scheduler_, clock_);
  SimExecutor two(scheduler_, clock_);
  for (int i = 0; i < 3; ++i) {
    one.Post([&] { order_ += "1"; });
    two.Post([&] { order_ += "2"; });
  }
  scheduler_.RunFor(Duration());
  EXPECT_EQ(order_, "121212");
}

TEST_F(SimExecutorTest, TimersRunWhenDue) {
  SimExecutor executor(scheduler_, clock_);
  const MonotonicTime start = scheduler_.now();
  std::vector<Duration> at;
  executor.PostAt(start + Ms(20), [&] { at.push_back(clock_.Now() - start); });
  executor.PostAfter(Ms(10), [&] { at.push_back(clock_.Now() - start); });
  executor.PostAt(start - Ms(10), [&] { at.push_back(clock_.Now() - start); });
  const TimerId cancelled = executor.PostAfter(Ms(5), [&] { at.push_back(Ms(-1)); });
  executor.Cancel(cancelled);
  executor.Cancel(cancelled);
  scheduler_.RunFor(Ms(100));
  EXPECT_EQ(at, (std::vector<Duration>{Ms(0), Ms(10), Ms(20)}));
}

TEST_F(SimExecutorTest, ATimerThatIsDueAndWaitsCanBeCancelled) {
  SimExecutor executor(scheduler_, clock_);
  TimerId timer;
  executor.PostAfter(Ms(1), [&] { executor.Cancel(timer); });
  timer = executor.PostAfter(Ms(1), [&] { order_ += "x"; });
  scheduler_.RunFor(Ms(2));
  EXPECT_EQ(order_, "");
}

TEST_F(SimExecutorTest, RefusesWhatItHasNoRoomFor) {
  SimExecutor::Options options;
  options.capacity = 2;
  SimExecutor executor(scheduler_, clock_, options);
  EXPECT_TRUE(executor.TryPost([&] { order_ += "a"; }));
  EXPECT_TRUE(executor.TryPost([&] { order_ += "b"; }));
  EXPECT_FALSE(executor.TryPost([&] { order_ += "x"; }));
  executor.Post([&] { order_ += "c"; });
  scheduler_.RunFor(Duration());
  EXPECT_TRUE(executor.TryPost([&] { order_ += "d"; }));
  scheduler_.RunFor(Duration());
  EXPECT_EQ(order_, "abcd");
}

TEST_F(SimExecutorTest, TasksThatTakeTimeFollowOneAnother) {
  SimExecutor::Options options;
  options.duration = [] { return Ms(10); };
  SimExecutor disk(scheduler_, clock_, options);
  const MonotonicTime start = scheduler_.now();
  std::vector<Duration> done;
  disk.Post([&] { done.push_back(clock_.Now() - start); });
  disk.Post([&] { done.push_back(clock_.Now() - start); });
  scheduler_.RunFor(Ms(15));
  EXPECT_EQ(done, (std::vector<Duration>{Ms(10)}));
  // What the disk had under way may have been done when power went.
  EXPECT_TRUE(disk.RunNext());
  EXPECT_EQ(done.size(), 2u);
  EXPECT_FALSE(disk.RunNext());
  scheduler_.RunFor(Ms(100));
  EXPECT_EQ(done.size(), 2u);
}

TEST_F(SimExecutorTest, APausedOneGoesOnWhereItWas) {
  SimExecutor executor(scheduler_, clock_);
  executor.Post([&] { order_ += "a"; });
  executor.PostAfter(Ms(1), [&] { order_ += "b"; });
  executor.Pause();
  scheduler_.RunFor(Ms(50));
  executor.Post([&] { order_ += "c"; });
  EXPECT_EQ(order_, "");
  executor.Resume();
  scheduler_.RunFor(Duration());
  EXPECT_EQ(order_, "abc");
}

TEST_F(SimExecutorTest, AStoppedOneDestroysItsTasks) {
  const auto token = std::make_shared<int>(1);
  SimExecutor executor(scheduler_, clock_);
  executor.Post([token, this] { order_ += "x"; });
  executor.PostAfter(Ms(1), [token, this] { order_ += "x"; });
  EXPECT_EQ(token.use_count(), 3);
  executor.Stop();
  executor.Post([token, this] { order_ += "x"; });
  EXPECT_TRUE(executor.TryPost([token, this] { order_ += "x"; }));
  executor.PostAfter(Ms(1), [token, this] { order_ += "x"; });
  EXPECT_EQ(token.use_count(), 1);
  scheduler_.RunFor(Ms(10));
  EXPECT_EQ(order_, "");
}

TEST_F(SimExecutorTest, EventsOutliveIt) {
  {
    SimExecutor executor(scheduler_, clock_);
    executor.Post([&] { order_ += "x"; });
    executor.PostAfter(Ms(1), [&] { order_ += "x"; });
  }
  scheduler_.RunFor(Ms(10));
  EXPECT_EQ(order_, "");
}

}  // namespace
}  // namespace conclave
