#ifndef CONCLAVE_COMMON_SIM_SIM_CLOCK_H_
#define CONCLAVE_COMMON_SIM_SIM_CLOCK_H_

#include "common/clock/clock.h"
#include "common/sim/sim_scheduler.h"

namespace conclave {

// A node's clock: the scheduler's time, and a wall clock that may be wrong. The scheduler outlives
// it.
class SimClock : public Clock {
 public:
  // `wall_error`: what this node's wall clock shows more than the world's.
  explicit SimClock(const SimScheduler& scheduler, Duration wall_error = Duration())
      : scheduler_(scheduler), wall_error_(wall_error) {}

  MonotonicTime Now() const override { return scheduler_.now(); }
  WallTime WallNow() const override;

  // The wall clock is set, forward or back; the monotonic one knows nothing of it.
  void StepWall(Duration step) { wall_error_ = wall_error_ + step; }

 private:
  const SimScheduler& scheduler_;
  Duration wall_error_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_SIM_SIM_CLOCK_H_
