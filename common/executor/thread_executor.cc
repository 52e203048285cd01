#include "common/executor/thread_executor.h"

#include <glog/logging.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace conclave {

// std::mutex carries no annotations for clang's thread-safety check under libstdc++; the whole of
// the guarded state is private to this file and touched only under `mutex_`.
class ThreadExecutor::Impl {
 public:
  // A message and what settles it, and a few that came meanwhile.
  static constexpr size_t kLentTasks = 8;

  Impl(const Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() { Stop(); }

  void Stop() {
    CHECK(!IsCurrent()) << "an executor cannot stop itself: " << options_.name;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    std::lock_guard join_lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
    DropWaiting();
  }

  bool Post(Task task, bool bounded, bool lending) {
    {
      std::lock_guard lock(mutex_);
      if (!stopping_) {
        if (bounded && queue_.size() >= options_.capacity) return false;
        queue_.push_back({std::move(task), TimerId()});
        if (running_ || woken_ || (lending && options_.takes_lent_threads)) return true;
        woken_ = true;
      }
    }
    // A task refused because of stopping is destroyed by now leaving scope, outside the lock.
    wake_.notify_one();
    return true;
  }

  void Lend() {
    if (!options_.takes_lent_threads) return;
    std::unique_lock lock(mutex_);
    if (running_ || woken_ || queue_.empty() || stopping_) return;
    RunTasks(lock, kLentTasks);
    if (queue_.empty() && !stopping_) return;
    woken_ = true;
    // Under the lock: once it is free, this may be gone.
    wake_.notify_all();
  }

  TimerId PostAt(MonotonicTime when, Task task) {
    bool first;
    TimerId id;
    {
      std::lock_guard lock(mutex_);
      id = TimerId(++last_timer_);
      if (stopping_) return id;
      const auto at = timers_.emplace(std::make_pair(when, id), std::move(task)).first;
      due_.emplace(id, when);
      first = at == timers_.begin();
    }
    if (first) wake_.notify_one();
    return id;
  }

  void Cancel(TimerId id) {
    Task doomed;  // Destroyed outside the lock: its captures may post or cancel in turn.
    std::lock_guard lock(mutex_);
    const auto due = due_.find(id);
    if (due == due_.end()) return;
    const auto timer = timers_.find({due->second, id});
    if (timer != timers_.end()) {
      doomed = std::move(timer->second);
      timers_.erase(timer);
    } else {
      // It is due, and waits among the tasks.
      const auto waiting = std::find_if(queue_.begin(), queue_.end(),
                                        [id](const Waiting& one) { return one.timer == id; });
      doomed = std::move(waiting->task);
      queue_.erase(waiting);
    }
    due_.erase(due);
  }

  const Clock& clock() const { return clock_; }
  bool IsCurrent() const { return std::this_thread::get_id() == runner_.load(); }

 private:
  struct Waiting {
    Task task;
    // Of a timer that is due; it may be cancelled yet.
    TimerId timer;
  };

  void Run() {
    pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      MoveDueTimersToQueue();
      // What a lent thread leaves, it tells.
      if (queue_.empty() || running_) {
        WaitForWork(lock);
        continue;
      }
      RunTasks(lock, 1);
    }
    while (running_) wake_.wait(lock);
  }

  // Runs up to so many of those that wait. Called with the lock, by one thread at a time.
  void RunTasks(std::unique_lock<std::mutex>& lock, size_t limit) {
    running_ = true;
    woken_ = false;
    runner_ = std::this_thread::get_id();
    for (size_t i = 0; i < limit && !queue_.empty() && !stopping_; ++i) {
      Waiting next = std::move(queue_.front());
      queue_.pop_front();
      if (next.timer != TimerId()) due_.erase(next.timer);
      lock.unlock();
      next.task();
      next.task = nullptr;
      lock.lock();
    }
    runner_ = std::thread::id();
    running_ = false;
  }

  void MoveDueTimersToQueue() {
    if (timers_.empty()) return;
    const MonotonicTime now = clock_.Now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
      auto timer = timers_.begin();
      queue_.push_back({std::move(timer->second), timer->first.second});
      timers_.erase(timer);
    }
  }

  void WaitForWork(std::unique_lock<std::mutex>& lock) {
    if (timers_.empty()) {
      wake_.wait(lock);
      return;
    }
    const MonotonicTime next = timers_.begin()->first.first;
    if (next == MonotonicTime::Never()) {
      wake_.wait(lock);
      return;
    }
    const Duration wait = next - clock_.Now();
    if (wait > Duration()) wake_.wait_for(lock, std::chrono::nanoseconds(wait.nanoseconds()));
  }

  void DropWaiting() {
    std::deque<Waiting> queue;
    std::map<std::pair<MonotonicTime, TimerId>, Task> timers;
    std::lock_guard lock(mutex_);
    queue.swap(queue_);
    timers.swap(timers_);
    due_.clear();
  }

  const Clock& clock_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Waiting> queue_;
  std::map<std::pair<MonotonicTime, TimerId>, Task> timers_;
  // Of the timers that have not begun to run.
  std::unordered_map<TimerId, MonotonicTime> due_;
  uint64_t last_timer_ = 0;
  std::mutex join_mutex_;
  // Somebody runs tasks, and will look for more of them.
  bool running_ = false;
  // The thread has been told that there are some, and has not looked yet.
  bool woken_ = false;
  std::atomic<std::thread::id> runner_{};
  std::thread thread_;
};

ThreadExecutor::ThreadExecutor(const Clock& clock, Options options)
    : impl_(std::make_unique<Impl>(clock, std::move(options))) {}
ThreadExecutor::~ThreadExecutor() = default;

void ThreadExecutor::Stop() { impl_->Stop(); }
void ThreadExecutor::Post(Task task) {
  impl_->Post(std::move(task), /*bounded=*/false, LendingScope::IsFor(*this));
}
bool ThreadExecutor::TryPost(Task task) {
  return impl_->Post(std::move(task), /*bounded=*/true, LendingScope::IsFor(*this));
}
void ThreadExecutor::Lend() { impl_->Lend(); }
TimerId ThreadExecutor::PostAt(MonotonicTime when, Task task) {
  return impl_->PostAt(when, std::move(task));
}
void ThreadExecutor::Cancel(TimerId timer) { impl_->Cancel(timer); }
const Clock& ThreadExecutor::clock() const { return impl_->clock(); }
bool ThreadExecutor::IsCurrent() const { return impl_->IsCurrent(); }

}  // namespace conclave
