#include "common/sim/sim_scheduler.h"

#include <algorithm>

namespace conclave {
namespace {

constexpr MonotonicTime kStart = MonotonicTime() + Duration::Seconds(3600);

}  // namespace

SimScheduler::SimScheduler() : now_(kStart) {}

SimScheduler::EventId SimScheduler::At(MonotonicTime at, Event event) {
  const EventId id(std::max(at, now_), ++last_order_);
  events_.emplace(id, std::move(event));
  return id;
}

bool SimScheduler::RunOne() {
  if (events_.empty()) return false;
  // Out of the map before it runs: it may schedule and cancel.
  auto node = events_.extract(events_.begin());
  now_ = node.key().first;
  ++count_;
  Mix(static_cast<uint64_t>(now_.nanoseconds()));
  Mix(node.key().second);
  node.mapped()();
  return true;
}

void SimScheduler::RunUntil(MonotonicTime end) {
  while (!events_.empty() && events_.begin()->first.first <= end) RunOne();
  now_ = std::max(now_, end);
}

}  // namespace conclave
