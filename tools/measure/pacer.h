#ifndef CONCLAVE_TOOLS_MEASURE_PACER_H_
#define CONCLAVE_TOOLS_MEASURE_PACER_H_

#include <cstdint>
#include <functional>

#include "common/clock/clock.h"
#include "common/types/time.h"

namespace conclave::tools {

// When each of a series of sends is due at a fixed rate.
class Schedule {
 public:
  // `per_second` > 0.
  Schedule(MonotonicTime begin, double per_second) : begin_(begin), per_second_(per_second) {}

  // Of number 0 at the beginning. Computed from the number alone, so that neither rounding nor what
  // came late before shifts it.
  MonotonicTime DueAt(uint64_t number) const;

 private:
  const MonotonicTime begin_;
  const double per_second_;
};

// Waits until a moment; may return late, never early.
using SleepUntil = std::function<void(MonotonicTime)>;
// The operating system's, to some tens of microseconds, for the thread that calls this.
SleepUntil SystemSleep();

// An open loop: calls `send(number, due)` for the numbers from 0 to `count` - 1, each once it is
// due, or at once where it is late because `send` took long before. Who counts a latency from `due`
// has no coordinated omission: a server that stalls is charged for every send that had to wait.
// `send` returns whether to go on. Returns how many were sent.
uint64_t RunPaced(const Clock& clock, const SleepUntil& sleep_until, const Schedule& schedule,
                  uint64_t count, const std::function<bool(uint64_t, MonotonicTime)>& send);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_MEASURE_PACER_H_
