#ifndef CONCLAVE_COMMON_CLOCK_SYSTEM_CLOCK_H_
#define CONCLAVE_COMMON_CLOCK_SYSTEM_CLOCK_H_

#include "common/clock/clock.h"

namespace conclave {

// The operating system's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME).
class SystemClock : public Clock {
 public:
  MonotonicTime Now() const override;
  WallTime WallNow() const override;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CLOCK_SYSTEM_CLOCK_H_
