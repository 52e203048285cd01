#ifndef CONCLAVE_TOOLS_CLI_BENCH_ARRIVALS_H_
#define CONCLAVE_TOOLS_CLI_BENCH_ARRIVALS_H_

#include <atomic>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/types/time.h"
#include "tools/cli/bench_records.h"
#include "tools/cli/bench_run.h"
#include "tools/cli/data_session.h"
#include "tools/measure/histogram.h"

namespace conclave::tools {

// When each record was due to be sent. One thread sets, others read what has reached them.
class DueTimes {
 public:
  explicit DueTimes(uint64_t count) : ns_(count) {}

  uint64_t count() const { return ns_.size(); }
  void Set(uint64_t number, MonotonicTime due) {
    ns_[number].store(due.nanoseconds(), std::memory_order_release);
  }
  MonotonicTime At(uint64_t number) const {
    return MonotonicTime::FromNanoseconds(ns_[number].load(std::memory_order_acquire));
  }

 private:
  std::vector<std::atomic<int64_t>> ns_;
};

// Consumes the records of a benchmark while they are sent, and times each from when it was due.
// On a session of its own, as whoever consumes is another than who produces.
class Arrivals {
 public:
  // `beside`: whose bootstrap addresses and time-out are taken. Records below `warm_up` do not
  // count.
  Arrivals(const DataSession& beside, BenchRecords records, const DueTimes& due, uint64_t warm_up);

  void Start(const std::string& topic, const PartitionOffsets& from);
  // Once all are sent: waits until each has come. An error: none came for the session's time-out,
  // or reading failed.
  absl::Status WaitForAll();
  // After WaitForAll; nanoseconds.
  const Histogram& latency() const { return latency_; }

 private:
  // On the session's executor, as the rest of what they write.
  void Poll();
  void Take(Consumer::PollResult result);
  void End(absl::Status status);

  const BenchRecords records_;
  const DueTimes& due_;
  const uint64_t warm_up_;
  std::vector<bool> seen_;
  uint64_t arrived_ = 0;
  bool all_sent_ = false;
  MonotonicTime progressed_;
  bool ended_ = false;
  std::promise<absl::Status> end_;
  Histogram latency_;
  // Ends first: what it calls back uses the others.
  DataSession session_;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_ARRIVALS_H_
