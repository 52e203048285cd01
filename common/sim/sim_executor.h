#ifndef CONCLAVE_COMMON_SIM_SIM_EXECUTOR_H_
#define CONCLAVE_COMMON_SIM_SIM_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>

#include "common/executor/executor.h"
#include "common/sim/sim_scheduler.h"

namespace conclave {

// A thread of the virtual world: its tasks are events of the scheduler, one at a time, in the order
// posted. Scheduler and clock outlive it.
class SimExecutor : public Executor {
 public:
  struct Options {
    // Tasks that may wait before TryPost refuses.
    size_t capacity = std::numeric_limits<size_t>::max();
    // How long each task takes, drawn as it begins; its effects all come at the end. Null for no
    // time.
    std::function<Duration()> duration;
  };

  SimExecutor(SimScheduler& scheduler, const Clock& clock);
  SimExecutor(SimScheduler& scheduler, const Clock& clock, Options options);
  // Stops.
  ~SimExecutor() override;

  void Post(Task task) override;
  [[nodiscard]] bool TryPost(Task task) override;
  TimerId PostAt(MonotonicTime when, Task task) override;
  void Cancel(TimerId timer) override;
  const Clock& clock() const override;

  // What was waiting is destroyed unrun, and so is what is posted later. Not from one of its own
  // tasks.
  void Stop();

  // As a process that the operating system does not let run, for SIGSTOP, a long collection of
  // garbage or a slow disk: tasks and timers wait until Resume.
  void Pause();
  void Resume();
  bool paused() const;

  // Runs the task that is under way or waits first, now: what a device finished and did not report
  // any more. False if there is none.
  bool RunNext();

  // Tasks that wait, timers not counted.
  size_t waiting() const;

 private:
  class Impl;
  // The scheduler's events hold it weakly.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_SIM_SIM_EXECUTOR_H_
