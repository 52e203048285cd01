#include "common/sim/sim_wire.h"

#include <algorithm>
#include <vector>

namespace conclave {

SimWire::SimWire(SimScheduler& scheduler, const Random& random, Options options)
    : scheduler_(scheduler), random_(random), options_(options) {}

void SimWire::Cut(const std::string& from, const std::string& to) {
  const Link link(from, to);
  if (cut_.count(link) > 0) return;
  const uint64_t number = ++last_cut_;
  cut_[link] = number;
  scheduler_.After(options_.break_after, [this, link, number] {
    const auto it = cut_.find(link);
    if (it == cut_.end() || it->second != number) return;
    if (break_streams_) break_streams_(link.first, link.second);
  });
}

void SimWire::Heal(const std::string& from, const std::string& to) {
  const Link link(from, to);
  if (cut_.erase(link) == 0) return;
  std::vector<uint64_t> waiting;
  for (const auto& [stream, direction] : directions_) {
    if (direction.link == link) waiting.push_back(stream);
  }
  for (uint64_t stream : waiting) {
    // Sent again by then: it takes its way anew.
    auto& messages = directions_[stream].messages;
    const MonotonicTime due = scheduler_.now() + DrawDelay();
    // One that is not due yet has an event of its own under way.
    if (messages.front().due > scheduler_.now()) continue;
    messages.front().due = due;
    ScheduleFront(stream);
  }
}

void SimWire::CutBothWays(const std::string& a, const std::string& b) {
  Cut(a, b);
  Cut(b, a);
}

void SimWire::HealAll() {
  while (!cut_.empty()) {
    const Link link = cut_.begin()->first;
    Heal(link.first, link.second);
  }
}

bool SimWire::IsCut(const std::string& from, const std::string& to) const {
  return cut_.count({from, to}) > 0;
}

void SimWire::Carry(const std::string& from, const std::string& to, uint64_t stream, size_t,
                    Executor& receiver, Executor::Task deliver) {
  Direction& direction = directions_[stream];
  direction.link = {from, to};
  direction.messages.push_back({scheduler_.now() + DrawDelay(), &receiver, std::move(deliver)});
  if (direction.messages.size() == 1) ScheduleFront(stream);
  if (random_.Chance(options_.break_streams)) {
    // Not from within: the stream holds its lock while it sends.
    scheduler_.After(Duration(), [this, from, to] {
      if (break_streams_) break_streams_(from, to);
    });
  }
}

bool SimWire::CanConnect(const std::string& from, const std::string& to) {
  return !IsCut(from, to) && !IsCut(to, from);
}

Duration SimWire::DrawDelay() {
  const Duration max = random_.Chance(options_.slow) ? options_.slow_delay_max : options_.delay_max;
  return Duration::Nanoseconds(
      random_.Between(options_.delay_min.nanoseconds(), max.nanoseconds()));
}

void SimWire::ScheduleFront(uint64_t stream) {
  scheduler_.At(directions_[stream].messages.front().due, [this, stream] { DeliverFront(stream); });
}

void SimWire::DeliverFront(uint64_t stream) {
  const auto it = directions_.find(stream);
  if (it == directions_.end()) return;
  Direction& direction = it->second;
  // It waits; Heal goes on with it.
  if (cut_.count(direction.link) > 0) return;
  // Heal has given it another moment.
  if (direction.messages.front().due > scheduler_.now()) return;
  Message message = std::move(direction.messages.front());
  direction.messages.pop_front();
  if (direction.messages.empty()) {
    directions_.erase(it);
  } else {
    ScheduleFront(stream);
  }
  message.receiver->Post(std::move(message.deliver));
}

}  // namespace conclave
