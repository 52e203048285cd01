#ifndef CONCLAVE_TESTS_BENCH_CEILINGS_DISK_H_
#define CONCLAVE_TESTS_BENCH_CEILINGS_DISK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/measure/histogram.h"

namespace conclave::bench {

// What writers on one disk reach at the same time, each with a file of its own in `dir`.
struct DiskOutcome {
  // Bytes a second of each writer, over its own time.
  std::vector<double> rates;
  // Nanoseconds of each write with its sync, of all writers.
  tools::Histogram latency;
};

// Each writer appends `total` bytes in pieces of `write_bytes`, and calls fdatasync after each
// `sync_every` bytes.
DiskOutcome WriteSynced(const std::string& dir, size_t writers, size_t write_bytes,
                        uint64_t sync_every, uint64_t total);

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_CEILINGS_DISK_H_
