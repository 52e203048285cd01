#include "tests/bench/ceilings/disk.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <barrier>
#include <thread>

#include "common/clock/system_clock.h"

namespace conclave::bench {
namespace {

struct WriterOutcome {
  double rate = 0;
  tools::Histogram latency;
};

WriterOutcome Write(const std::string& path, size_t write_bytes, uint64_t sync_every,
                    uint64_t total, std::barrier<>& all_ready) {
  const SystemClock clock;
  const std::string block(write_bytes, 'w');
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  PCHECK(fd >= 0) << path;
  WriterOutcome outcome;
  all_ready.arrive_and_wait();
  const MonotonicTime begun = clock.Now();
  MonotonicTime piece = begun;
  for (uint64_t written = 0; written < total;) {
    PCHECK(write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size()))
        << "writing " << path;
    written += block.size();
    if (written % sync_every != 0 && written < total) continue;
    PCHECK(fdatasync(fd) == 0) << path;
    const MonotonicTime now = clock.Now();
    outcome.latency.Add(static_cast<uint64_t>((now - piece).nanoseconds()));
    piece = now;
  }
  outcome.rate = static_cast<double>(total) / (piece - begun).seconds();
  close(fd);
  unlink(path.c_str());
  return outcome;
}

}  // namespace

DiskOutcome WriteSynced(const std::string& dir, size_t writers, size_t write_bytes,
                        uint64_t sync_every, uint64_t total) {
  std::barrier<> all_ready(static_cast<std::ptrdiff_t>(writers));
  std::vector<WriterOutcome> outcomes(writers);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      outcomes[i] = Write(dir + "/ceilings-writer-" + std::to_string(i), write_bytes, sync_every,
                          total, all_ready);
    });
  }
  DiskOutcome all;
  for (size_t i = 0; i < writers; ++i) {
    threads[i].join();
    all.rates.push_back(outcomes[i].rate);
    all.latency.Merge(outcomes[i].latency);
  }
  return all;
}

}  // namespace conclave::bench
