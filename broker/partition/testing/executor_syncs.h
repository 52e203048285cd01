#ifndef CONCLAVE_BROKER_PARTITION_TESTING_EXECUTOR_SYNCS_H_
#define CONCLAVE_BROKER_PARTITION_TESTING_EXECUTOR_SYNCS_H_

#include <utility>

#include "broker/partition/sync_runner.h"

namespace conclave::broker {

// Runs syncs and the rest as tasks of an executor: in simulation one whose tasks take as long as a disk's syncs
// do. The executor outlives it.
class ExecutorSyncs : public SyncRunner {
 public:
  explicit ExecutorSyncs(Executor& disk) : disk_(disk) {}

  void Run(LogSync sync, Executor& executor, Done done) override {
    disk_.Post([sync = std::move(sync), executor = &executor, done = std::move(done)]() mutable {
      absl::Status result = sync.Run();
      executor->Post([sync = std::move(sync), result = std::move(result),
                      done = std::move(done)]() mutable { done(sync, std::move(result)); });
    });
  }

  void RunTask(absl::AnyInvocable<void()> task) override { disk_.Post(std::move(task)); }

 private:
  Executor& disk_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_TESTING_EXECUTOR_SYNCS_H_
