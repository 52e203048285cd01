#ifndef CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_
#define CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "broker/partition/sync_runner.h"

namespace conclave::broker {

// Works on a few threads. Tasks run side by side, first come, first served. Syncs are gathered: one
// thread takes all that wait, lets the disk begin with the files of many of them, and then syncs
// one after the other, which the first one's commit of the file system's journal has mostly done;
// what comes meanwhile is the next batch. A batch that takes long, of much that was written, does
// not keep the next one waiting. Thread-safe.
class SyncPool : public SyncRunner {
 public:
  // Logs whose files the disk begins with together. With more, those that are synced last have been
  // written to again by then, and are written to disk twice.
  static constexpr size_t kBegunTogether = 64;

  explicit SyncPool(int threads);
  // Waits for the syncs under way; those that wait are dropped.
  ~SyncPool() override;

  void Run(LogSync sync, Executor& executor, Done done) override;
  void RunTask(absl::AnyInvocable<void()> task) override;

 private:
  struct Job {
    LogSync sync;
    Executor* executor;
    Done done;
    absl::Status result;
  };
  using Jobs = std::vector<Job>;
  using Time = std::chrono::steady_clock::time_point;

  void Work(int number);
  // With the lock: until there is something that may be begun, or an end.
  void AwaitWork(std::unique_lock<std::mutex>& lock);
  bool MayBeginBatch() const;
  static void RunBatch(Jobs jobs);
  static void Tell(Jobs jobs);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  Jobs syncs_;
  // Batches under way, and from when on another one may begin beside them.
  int batches_ = 0;
  Time next_batch_at_;
  // A thread waits for that time.
  bool watching_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_SYNC_POOL_H_
