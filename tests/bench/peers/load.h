#ifndef CONCLAVE_TESTS_BENCH_PEERS_LOAD_H_
#define CONCLAVE_TESTS_BENCH_PEERS_LOAD_H_

#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/clock/system_clock.h"
#include "common/types/time.h"
#include "tools/measure/histogram.h"

namespace conclave::bench {

struct LoadOptions {
  size_t size = 1024;
  uint64_t messages = 100'000;
  uint64_t warm_up = 0;
  // A closed loop: so many under way at a time. Where `rate` is set: an open loop instead.
  uint64_t window = 4000;
  double rate = 0;
};

// Adds an option for each.
void AddLoadOptions(CLI::App& app, LoadOptions& options);

// Sends numbered messages in a closed or an open loop, and times what becomes of them. Latencies
// count from the moment a message was due, which in a closed loop is when it is sent.
class Load {
 public:
  explicit Load(const LoadOptions& options);

  uint64_t total() const { return options_.messages + options_.warm_up; }

  // Calls `send(first, count)` for all messages, on this thread: several at a time where several
  // may go. Returns when all are acknowledged.
  void Run(const std::function<void(uint64_t, uint64_t)>& send);

  // From the thread that reads acknowledgements.
  void Acknowledged(uint64_t number);
  // From the thread that consumes.
  void Consumed(uint64_t number);

  // After Run (and what has been consumed), for output.
  nlohmann::ordered_json Outcome() const;

 private:
  MonotonicTime DueAt(uint64_t number) const;
  void SetDue(uint64_t number, MonotonicTime due);

  const LoadOptions options_;
  const SystemClock clock_;
  std::vector<std::atomic<int64_t>> due_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  tools::Histogram ack_;
  tools::Histogram consumed_;
  MonotonicTime measured_from_;
  MonotonicTime ended_;
};

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_PEERS_LOAD_H_
