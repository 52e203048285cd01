#include "tools/measure/pacer.h"

#include <gtest/gtest.h>

#include <vector>

namespace conclave::tools {
namespace {

// Stands still but for what is slept or spent.
class SteppedClock : public Clock {
 public:
  MonotonicTime Now() const override { return now_; }
  WallTime WallNow() const override { return {}; }
  void Spend(Duration d) { now_ = now_ + d; }
  SleepUntil Sleep() {
    return [this](MonotonicTime until) {
      ASSERT_GT(until, now_);
      now_ = until;
    };
  }

 private:
  MonotonicTime now_ = MonotonicTime::FromNanoseconds(1'000'000);
};

struct Sent {
  uint64_t number;
  MonotonicTime due;
  MonotonicTime at;
};

TEST(PacerTest, SendsAtTheRate) {
  SteppedClock clock;
  const MonotonicTime begin = clock.Now() + Duration::Milliseconds(5);
  std::vector<Sent> sent;
  const uint64_t count = RunPaced(clock, clock.Sleep(), Schedule(begin, 1000), 10,
                                  [&](uint64_t number, MonotonicTime due) {
                                    sent.push_back({number, due, clock.Now()});
                                    return true;
                                  });
  EXPECT_EQ(count, 10u);
  ASSERT_EQ(sent.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(sent[i].number, i);
    EXPECT_EQ(sent[i].due, begin + Duration::Milliseconds(static_cast<int64_t>(i)));
    EXPECT_EQ(sent[i].at, sent[i].due);
  }
}

TEST(PacerTest, AStallIsChargedToAllThatHadToWait) {
  SteppedClock clock;
  const MonotonicTime begin = clock.Now();
  std::vector<Sent> sent;
  RunPaced(clock, clock.Sleep(), Schedule(begin, 1000), 20,
           [&](uint64_t number, MonotonicTime due) {
             sent.push_back({number, due, clock.Now()});
             // The third takes ten of the others' turns.
             if (number == 2) clock.Spend(Duration::Milliseconds(10));
             return true;
           });
  ASSERT_EQ(sent.size(), 20u);
  for (int64_t i = 0; i < 20; ++i) {
    const Sent& one = sent[static_cast<size_t>(i)];
    // Due times do not move; those that came due during the stall go at once after it.
    EXPECT_EQ(one.due, begin + Duration::Milliseconds(i));
    const bool stalled = i > 2 && i < 12;
    EXPECT_EQ(one.at, stalled ? begin + Duration::Milliseconds(12) : one.due) << i;
  }
}

TEST(PacerTest, EndsWhenTold) {
  SteppedClock clock;
  const uint64_t count = RunPaced(clock, clock.Sleep(), Schedule(clock.Now(), 10), 100,
                                  [&](uint64_t number, MonotonicTime) { return number < 6; });
  EXPECT_EQ(count, 7u);
}

TEST(PacerTest, RoundingDoesNotAdd) {
  const Schedule schedule(MonotonicTime::FromNanoseconds(0), 3);
  EXPECT_EQ(schedule.DueAt(3'000'000), MonotonicTime::FromNanoseconds(1'000'000'000'000'000));
}

}  // namespace
}  // namespace conclave::tools
