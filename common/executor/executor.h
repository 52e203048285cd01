#ifndef CONCLAVE_COMMON_EXECUTOR_EXECUTOR_H_
#define CONCLAVE_COMMON_EXECUTOR_EXECUTOR_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "common/clock/clock.h"
#include "common/types/strong_int.h"
#include "common/types/time.h"

namespace conclave {

using TimerId = StrongInt<struct TimerIdTag, uint64_t>;

// Runs tasks one at a time, in the order posted: what runs on one executor needs no locks between
// its parts. A thread in production, a place in the virtual timeline in simulation.
//
// All methods are thread-safe. A task must not block. Tasks left when the executor stops are
// destroyed without being run.
class Executor {
 public:
  using Task = absl::AnyInvocable<void()>;

  virtual ~Executor() = default;

  // For work already taken on (completions, answers, steps of a running operation), which must not
  // be lost.
  virtual void Post(Task task) = 0;

  // For new work from outside. False, with the task destroyed, when as many tasks are waiting as
  // the executor was given room for: the caller refuses by name (OVERLOADED).
  [[nodiscard]] virtual bool TryPost(Task task) = 0;

  // Runs `task` at `when` or soon after; at once if that has passed. Ids are never reused.
  virtual TimerId PostAt(MonotonicTime when, Task task) = 0;
  TimerId PostAfter(Duration delay, Task task) {
    return PostAt(clock().Now() + delay, std::move(task));
  }

  // Called on the executor, the timer's task will not run; from elsewhere it may be running. A
  // timer that has fired, or an unknown id, is no error.
  virtual void Cancel(TimerId timer) = 0;

  // The clock that timers go by.
  virtual const Clock& clock() const = 0;

  // The caller has posted, holds no lock, and has nothing else to do: some of what waits may run
  // before this returns, on the caller's thread, rather than that another is woken for it.
  virtual void Lend() {}
};

// What its thread posts to `executor` while this lives is run at the end of it, by Lend(), where
// the executor takes that, or by whoever runs the executor's tasks anyway. For threads that wait
// for I/O and post what came of it under a lock: declared before the lock, which is released first.
class LendingScope {
 public:
  explicit LendingScope(Executor& executor) : LendingScope(&executor) {}
  // nullptr: there is none to lend to.
  explicit LendingScope(Executor* executor) : executor_(executor), outer_(current_) {
    current_ = executor;
  }
  ~LendingScope() {
    current_ = outer_;
    if (executor_ != nullptr) executor_->Lend();
  }
  LendingScope(const LendingScope&) = delete;
  LendingScope& operator=(const LendingScope&) = delete;

  // Whether the calling thread is about to lend itself to the executor.
  static bool IsFor(const Executor& executor) { return current_ == &executor; }

 private:
  static inline thread_local const Executor* current_ = nullptr;
  Executor* const executor_;
  const Executor* const outer_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_EXECUTOR_EXECUTOR_H_
