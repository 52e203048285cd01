#include "common/sim/sim_executor.h"

#include <glog/logging.h>

#include <deque>
#include <map>
#include <utility>

namespace conclave {

class SimExecutor::Impl : public std::enable_shared_from_this<SimExecutor::Impl> {
 public:
  Impl(SimScheduler& scheduler, const Clock& clock, Options options)
      : scheduler_(scheduler), clock_(clock), options_(std::move(options)) {}

  void Post(Task task) {
    if (stopped_) return;
    queue_.push_back(std::move(task));
    ScheduleNext();
  }

  bool TryPost(Task task) {
    if (!stopped_ && queue_.size() >= options_.capacity) return false;
    Post(std::move(task));
    return true;
  }

  TimerId PostAt(MonotonicTime when, Task task) {
    const TimerId id(++last_timer_);
    if (stopped_) return id;
    timers_.emplace(id, std::move(task));
    scheduler_.At(when, [weak = weak_from_this(), id] {
      if (auto self = weak.lock()) self->Due(id);
    });
    return id;
  }

  void Cancel(TimerId id) { timers_.erase(id); }

  void Stop() {
    CHECK(!running_) << "an executor cannot stop itself";
    stopped_ = true;
    // What is destroyed may post and cancel in turn.
    const auto queue = std::exchange(queue_, {});
    const auto timers = std::exchange(timers_, {});
  }

  void SetPaused(bool paused) {
    paused_ = paused;
    ScheduleNext();
  }
  bool paused() const { return paused_; }

  bool RunNext() {
    if (stopped_ || queue_.empty()) return false;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    task();
    // While it still counts as running: its captures may post.
    task = nullptr;
    running_ = false;
    return true;
  }

  size_t waiting() const { return queue_.size(); }
  const Clock& clock() const { return clock_; }

 private:
  // The timer's moment has come: it waits its turn, and may still be cancelled.
  void Due(TimerId id) {
    if (timers_.count(id) == 0) return;
    Post([this, id] {
      const auto it = timers_.find(id);
      if (it == timers_.end()) return;
      Task task = std::move(it->second);
      timers_.erase(it);
      task();
    });
  }

  void ScheduleNext() {
    if (scheduled_ || paused_ || stopped_ || queue_.empty()) return;
    scheduled_ = true;
    const Duration duration = options_.duration ? options_.duration() : Duration();
    scheduler_.After(duration, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->OnTurn();
    });
  }

  void OnTurn() {
    scheduled_ = false;
    if (paused_) return;
    RunNext();
    ScheduleNext();
  }

  SimScheduler& scheduler_;
  const Clock& clock_;
  const Options options_;
  std::deque<Task> queue_;
  std::map<TimerId, Task> timers_;
  uint64_t last_timer_ = 0;
  bool scheduled_ = false;
  bool running_ = false;
  bool paused_ = false;
  bool stopped_ = false;
};

SimExecutor::SimExecutor(SimScheduler& scheduler, const Clock& clock)
    : SimExecutor(scheduler, clock, Options()) {}
SimExecutor::SimExecutor(SimScheduler& scheduler, const Clock& clock, Options options)
    : impl_(std::make_shared<Impl>(scheduler, clock, std::move(options))) {}
SimExecutor::~SimExecutor() { Stop(); }

void SimExecutor::Post(Task task) { impl_->Post(std::move(task)); }
bool SimExecutor::TryPost(Task task) { return impl_->TryPost(std::move(task)); }
TimerId SimExecutor::PostAt(MonotonicTime when, Task task) {
  return impl_->PostAt(when, std::move(task));
}
void SimExecutor::Cancel(TimerId timer) { impl_->Cancel(timer); }
const Clock& SimExecutor::clock() const { return impl_->clock(); }
void SimExecutor::Stop() { impl_->Stop(); }
void SimExecutor::Pause() { impl_->SetPaused(true); }
void SimExecutor::Resume() { impl_->SetPaused(false); }
bool SimExecutor::paused() const { return impl_->paused(); }
bool SimExecutor::RunNext() { return impl_->RunNext(); }
size_t SimExecutor::waiting() const { return impl_->waiting(); }

}  // namespace conclave
