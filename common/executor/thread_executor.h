#ifndef CONCLAVE_COMMON_EXECUTOR_THREAD_EXECUTOR_H_
#define CONCLAVE_COMMON_EXECUTOR_THREAD_EXECUTOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "common/executor/executor.h"

namespace conclave {

// An Executor that is one thread; or, with `takes_lent_threads`, one at a time: its own, or one
// that is lent to it (LendingScope), which saves waking its own.
class ThreadExecutor : public Executor {
 public:
  struct Options {
    // Shown by tools such as top; at most 15 bytes are kept.
    std::string name = "executor";
    // Tasks that may wait before TryPost refuses.
    size_t capacity = 10'000;
    // For tasks that are short. Those who lend run a few of them, and leave what is more to the
    // executor's own thread.
    bool takes_lent_threads = false;
  };

  // Starts the thread. `clock` outlives the executor and must be one that real waiting follows.
  ThreadExecutor(const Clock& clock, Options options);
  // Stops.
  ~ThreadExecutor() override;

  // Returns when the running task is done and the thread has ended; what was waiting is destroyed
  // unrun. Not to be called on the executor's own thread. Later posts are destroyed unrun.
  void Stop();

  void Post(Task task) override;
  [[nodiscard]] bool TryPost(Task task) override;
  TimerId PostAt(MonotonicTime when, Task task) override;
  void Cancel(TimerId timer) override;
  const Clock& clock() const override;
  void Lend() override;

  // Whether the caller is running the executor's tasks; for assertions.
  bool IsCurrent() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_EXECUTOR_THREAD_EXECUTOR_H_
