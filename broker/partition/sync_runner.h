#ifndef CONCLAVE_BROKER_PARTITION_SYNC_RUNNER_H_
#define CONCLAVE_BROKER_PARTITION_SYNC_RUNNER_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "broker/log/log_sync.h"
#include "common/executor/executor.h"

namespace conclave::broker {

// Runs what waits for the disk away from the thread that owns the logs: workers in production
// (SyncPool), an event in virtual time in simulation. Syncs of different logs, and tasks, may run
// side by side.
class SyncRunner {
 public:
  using Done = absl::AnyInvocable<void(const LogSync&, absl::Status)>;

  virtual ~SyncRunner() = default;

  // Runs `sync`, then `done` on `executor`, once, unless that stops first. Called on any thread.
  virtual void Run(LogSync sync, Executor& executor, Done done) = 0;
  // The same for a task of another kind, which sees to its own results.
  virtual void RunTask(absl::AnyInvocable<void()> task) = 0;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_SYNC_RUNNER_H_
