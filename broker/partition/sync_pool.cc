#include "broker/partition/sync_pool.h"

#include <pthread.h>

#include <string>
#include <utility>

namespace conclave::broker {

SyncPool::SyncPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { Work(i); });
}

SyncPool::~SyncPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SyncPool::Run(LogSync sync, Executor& executor, Done done) {
  RunTask([sync = std::move(sync), executor = &executor, done = std::move(done)]() mutable {
    absl::Status result = sync.Run();
    executor->Post([sync = std::move(sync), result = std::move(result),
                    done = std::move(done)]() mutable { done(sync, std::move(result)); });
  });
}

void SyncPool::RunTask(absl::AnyInvocable<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void SyncPool::Work(int number) {
  pthread_setname_np(pthread_self(), ("sync-" + std::to_string(number)).c_str());
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    absl::AnyInvocable<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace conclave::broker
