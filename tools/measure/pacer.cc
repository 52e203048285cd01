#include "tools/measure/pacer.h"

#include <glog/logging.h>
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>

namespace conclave::tools {

MonotonicTime Schedule::DueAt(uint64_t number) const {
  const double after = static_cast<double>(number) * 1e9 / per_second_;
  return begin_ + Duration::Nanoseconds(static_cast<int64_t>(after));
}

SleepUntil SystemSleep() {
  // The kernel may else add 50 us to each sleep, which would be counted as latency.
  PCHECK(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) == 0);
  return [](MonotonicTime until) {
    timespec at;
    at.tv_sec = static_cast<time_t>(until.nanoseconds() / 1'000'000'000);
    at.tv_nsec = static_cast<long>(until.nanoseconds() % 1'000'000'000);
    int failed;
    while ((failed = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr)) == EINTR) {
    }
    CHECK_EQ(failed, 0) << "clock_nanosleep";
  };
}

uint64_t RunPaced(const Clock& clock, const SleepUntil& sleep_until, const Schedule& schedule,
                  uint64_t count, const std::function<bool(uint64_t, MonotonicTime)>& send) {
  for (uint64_t number = 0; number < count; ++number) {
    const MonotonicTime due = schedule.DueAt(number);
    if (clock.Now() < due) sleep_until(due);
    if (!send(number, due)) return number + 1;
  }
  return count;
}

}  // namespace conclave::tools
