#ifndef CONCLAVE_COMMON_SIM_SIM_SCHEDULER_H_
#define CONCLAVE_COMMON_SIM_SIM_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "common/types/time.h"

namespace conclave {

// Virtual time: what will happen, by (time, order of scheduling). Time passes only by running what
// comes next. One thread alone uses it, and everything in its world.
class SimScheduler {
 public:
  using Event = absl::AnyInvocable<void()>;
  // Names a scheduled event; rises with each.
  using EventId = std::pair<MonotonicTime, uint64_t>;

  SimScheduler();
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  // Not the zero of MonotonicTime, which many take for "never yet".
  MonotonicTime now() const { return now_; }

  // At once, behind what is due already, where `at` has passed.
  EventId At(MonotonicTime at, Event event);
  EventId After(Duration delay, Event event) { return At(now_ + delay, std::move(event)); }
  // An event that has run, or is running, is no error.
  void Cancel(const EventId& id) { events_.erase(id); }

  // Runs the next event. False if there is none.
  bool RunOne();
  // Runs what is due up to `end`, which it is afterwards.
  void RunUntil(MonotonicTime end);
  void RunFor(Duration duration) { RunUntil(now_ + duration); }

  // Events run so far.
  uint64_t events() const { return count_; }
  size_t pending() const { return events_.size(); }

  // A hash of when each event ran, and of what Mix was given: equal for equal histories, and for
  // others as good as never.
  uint64_t trace_hash() const { return hash_; }
  void Mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ULL;
    hash_ ^= hash_ >> 29;
  }

 private:
  MonotonicTime now_;
  uint64_t last_order_ = 0;
  uint64_t count_ = 0;
  uint64_t hash_ = 0;
  std::map<EventId, Event> events_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_SIM_SIM_SCHEDULER_H_
