#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_FAULT_SCHEDULE_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_FAULT_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "common/sim/sim_scheduler.h"
#include "common/types/time.h"

namespace conclave {

// When which fault strikes a simulated world. Most kinds of fault are absent from a run, for a
// fault that is always there hides what only shows without it. The scheduler outlives it, and runs
// nothing of it afterwards.
class FaultSchedule {
 public:
  FaultSchedule(SimScheduler& scheduler, const Random& random)
      : scheduler_(scheduler), random_(random) {}

  void Begin() {
    for (size_t i = 0; i < faults_.size(); ++i) Schedule(i);
  }

 protected:
  void AddFault(double present, int64_t mean_seconds, std::function<void()> strike) {
    if (random_.Chance(present)) faults_.push_back({mean_seconds, std::move(strike)});
  }
  // Runs `action` after up to `max`, unless faults are over by then.
  void Later(Duration max, std::function<void()> action) {
    After(Duration::Milliseconds(random_.Between(0, max.milliseconds())), std::move(action));
  }
  void After(Duration delay, std::function<void()> action) {
    scheduler_.After(delay, [this, action = std::move(action)] {
      if (!over_) action();
    });
  }
  // No more faults, and nothing of what was to come after them.
  void Finish() { over_ = true; }
  Random& random() { return random_; }

 private:
  struct Fault {
    int64_t mean_seconds;
    std::function<void()> strike;
  };

  void Schedule(size_t fault) {
    const int64_t mean = faults_[fault].mean_seconds;
    After(Duration::Milliseconds(random_.Between(0, 2'000 * mean)), [this, fault] {
      faults_[fault].strike();
      Schedule(fault);
    });
  }

  SimScheduler& scheduler_;
  Random random_;
  std::vector<Fault> faults_;
  bool over_ = false;
};

}  // namespace conclave

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_FAULT_SCHEDULE_H_
