#include "broker/partition/sync_pool.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace conclave::broker {
namespace {

// Several times what a batch of little takes: after that another one is worth its own commit.
constexpr std::chrono::milliseconds kLongBatch(20);

}  // namespace

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
  {
    const std::lock_guard lock(mutex_);
    syncs_.push_back({std::move(sync), &executor, std::move(done), absl::OkStatus()});
    // Whoever ends a batch looks for the next one; somebody watches for one that does not end.
    if (batches_ > 0 && watching_) return;
  }
  wake_.notify_one();
}

void SyncPool::RunTask(absl::AnyInvocable<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

bool SyncPool::MayBeginBatch() const {
  return batches_ == 0 || std::chrono::steady_clock::now() >= next_batch_at_;
}

void SyncPool::AwaitWork(std::unique_lock<std::mutex>& lock) {
  while (!stopping_ && tasks_.empty() && (syncs_.empty() || !MayBeginBatch())) {
    if (batches_ > 0 && !watching_) {
      watching_ = true;
      const Time now = std::chrono::steady_clock::now();
      wake_.wait_until(lock, next_batch_at_ > now ? next_batch_at_ : now + kLongBatch);
      watching_ = false;
    } else {
      wake_.wait(lock);
    }
  }
}

void SyncPool::Work(int number) {
  pthread_setname_np(pthread_self(), ("sync-" + std::to_string(number)).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    AwaitWork(lock);
    if (stopping_) return;
    if (!syncs_.empty() && MayBeginBatch()) {
      ++batches_;
      next_batch_at_ = std::chrono::steady_clock::now() + kLongBatch;
      Jobs jobs = std::exchange(syncs_, {});
      lock.unlock();
      RunBatch(std::move(jobs));
      lock.lock();
      --batches_;
      continue;
    }
    absl::AnyInvocable<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    // This one may have been the one that watches.
    if (!syncs_.empty()) wake_.notify_one();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

// What is durable is told all at once: one message to a follower or leader then tells it of many.
// But for what takes long, which the others do not wait for.
void SyncPool::RunBatch(Jobs jobs) {
  Time told = std::chrono::steady_clock::now();
  Jobs done;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs.size() > 1 && i % kBegunTogether == 0) {
      const size_t end = std::min(jobs.size(), i + kBegunTogether);
      for (size_t begun = i; begun < end; ++begun) jobs[begun].sync.BeginWriteback();
    }
    Job& job = jobs[i];
    job.result = job.sync.Run();
    done.push_back(std::move(job));
    const Time now = std::chrono::steady_clock::now();
    if (now - told < kLongBatch) continue;
    told = now;
    Tell(std::exchange(done, {}));
  }
  Tell(std::move(done));
}

void SyncPool::Tell(Jobs jobs) {
  std::map<Executor*, Jobs> by_executor;
  for (Job& job : jobs) by_executor[job.executor].push_back(std::move(job));
  for (auto& [executor, its] : by_executor) {
    const LendingScope lend(*executor);
    executor->Post([its = std::move(its)]() mutable {
      for (Job& job : its) job.done(job.sync, std::move(job.result));
    });
  }
}

}  // namespace conclave::broker
