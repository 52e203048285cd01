#ifndef CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_
#define CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "broker/partition/sync_runner.h"

namespace conclave::broker {

// Works on a few threads, first come, first served, so that dirty files of one disk are synced side
// by side. Thread-safe.
class SyncPool : public SyncRunner {
 public:
  explicit SyncPool(int threads);
  // Waits for the syncs under way; those that wait are dropped.
  ~SyncPool() override;

  void Run(LogSync sync, Executor& executor, Done done) override;
  void RunTask(absl::AnyInvocable<void()> task) override;

 private:
  void Work(int number);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::AnyInvocable<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_
