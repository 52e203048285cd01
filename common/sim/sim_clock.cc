#include "common/sim/sim_clock.h"

namespace conclave {
namespace {

// 2026-01-01T00:00:00Z
constexpr int64_t kWallStartMillis = 1'767'225'600'000;

}  // namespace

WallTime SimClock::WallNow() const {
  const Duration since = Now() - MonotonicTime() + wall_error_;
  return WallTime::FromUnixMillis(kWallStartMillis + since.milliseconds());
}

}  // namespace conclave
