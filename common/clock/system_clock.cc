#include "common/clock/system_clock.h"

#include <time.h>

namespace conclave {
namespace {

timespec Read(clockid_t id) {
  timespec now;
  // Cannot fail: both clocks exist on every Linux, and `now` is writable.
  clock_gettime(id, &now);
  return now;
}

}  // namespace

MonotonicTime SystemClock::Now() const {
  const timespec now = Read(CLOCK_MONOTONIC);
  return MonotonicTime::FromNanoseconds(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
}

WallTime SystemClock::WallNow() const {
  const timespec now = Read(CLOCK_REALTIME);
  return WallTime::FromUnixMillis(now.tv_sec * 1000LL + now.tv_nsec / 1'000'000);
}

}  // namespace conclave
