#include "tests/bench/peers/load.h"

#include <glog/logging.h>

#include <algorithm>

#include "tools/measure/pacer.h"

namespace conclave::bench {
namespace {

// Written in one go: what a system call costs is shared, as client libraries do.
constexpr uint64_t kAtOnce = 64;

nlohmann::ordered_json Microseconds(const tools::Histogram& latency) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"p50", us(latency.Percentile(50))},
          {"p99", us(latency.Percentile(99))},
          {"p99.9", us(latency.Percentile(99.9))},
          {"max", us(latency.max())}};
}

}  // namespace

void AddLoadOptions(CLI::App& app, LoadOptions& options) {
  app.add_option("--size", options.size, "Bytes of a message");
  app.add_option("--messages", options.messages, "How many");
  app.add_option("--warm-up", options.warm_up, "Before, not counted");
  app.add_option("--window", options.window, "Under way at a time");
  app.add_option("--rate", options.rate, "Instead: an open loop of so many a second");
}

Load::Load(const LoadOptions& options)
    : options_(options), due_ns_(options.messages + options.warm_up) {}

MonotonicTime Load::DueAt(uint64_t number) const {
  return MonotonicTime::FromNanoseconds(due_ns_[number].load(std::memory_order_acquire));
}

void Load::SetDue(uint64_t number, MonotonicTime due) {
  due_ns_[number].store(due.nanoseconds(), std::memory_order_release);
  if (number == options_.warm_up) measured_from_ = due;
}

void Load::Run(const std::function<void(uint64_t, uint64_t)>& send) {
  if (options_.rate > 0) {
    tools::RunPaced(clock_, tools::SystemSleep(), tools::Schedule(clock_.Now(), options_.rate),
                    total(), [&](uint64_t number, MonotonicTime due) {
                      SetDue(number, due);
                      send(number, 1);
                      return true;
                    });
  } else {
    while (sent_ < total()) {
      uint64_t count;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return sent_ - acknowledged_ < options_.window; });
        count = std::min({options_.window - (sent_ - acknowledged_), kAtOnce, total() - sent_});
      }
      const uint64_t first = sent_;
      const MonotonicTime now = clock_.Now();
      for (uint64_t i = 0; i < count; ++i) SetDue(first + i, now);
      {
        std::lock_guard lock(mutex_);
        sent_ += count;
      }
      send(first, count);
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return acknowledged_ == total(); });
}

void Load::Acknowledged(uint64_t number) {
  const MonotonicTime now = clock_.Now();
  CHECK_LT(number, total()) << "an acknowledgement of what was not sent";
  std::lock_guard lock(mutex_);
  if (number >= options_.warm_up) {
    ack_.Add(static_cast<uint64_t>((now - DueAt(number)).nanoseconds()));
  }
  ended_ = now;
  ++acknowledged_;
  // Woken once there is room for a good part, as waking for each costs more than the sending.
  const bool room = sent_ - acknowledged_ <= options_.window / 2;
  if (acknowledged_ == total() || (options_.rate <= 0 && room)) changed_.notify_one();
}

void Load::Consumed(uint64_t number) {
  const MonotonicTime now = clock_.Now();
  CHECK_LT(number, total()) << "what was not sent was consumed";
  if (number < options_.warm_up) return;
  consumed_.Add(static_cast<uint64_t>((now - DueAt(number)).nanoseconds()));
}

nlohmann::ordered_json Load::Outcome() const {
  const double seconds = (ended_ - measured_from_).seconds();
  nlohmann::ordered_json json = {
      {"messages", options_.messages},
      {"size", options_.size},
      {"seconds", seconds},
      {"messages_per_second", static_cast<double>(options_.messages) / seconds},
      {"mb_per_second", static_cast<double>(options_.messages * options_.size) / 1e6 / seconds},
      {"ack_us", Microseconds(ack_)}};
  if (consumed_.count() > 0) json["end_to_end_us"] = Microseconds(consumed_);
  return json;
}

}  // namespace conclave::bench
