#ifndef CONCLAVE_TESTS_BENCH_CEILINGS_CLIENT_H_
#define CONCLAVE_TESTS_BENCH_CEILINGS_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/measure/histogram.h"

namespace grpc {
class Channel;
}

namespace conclave::bench {

struct Outcome {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  // Nanoseconds, each message's; empty of pulls.
  tools::Histogram latency;
};

// Calls on a server of the ceilings, over one connection. Ends the process where a call fails: a
// figure of half a run is none.
class Client {
 public:
  explicit Client(const std::string& target);

  // Unary calls of `method` with `bytes` each, so many under way at a time.
  Outcome Closed(const char* method, size_t bytes, size_t in_flight, uint64_t messages);
  // An open loop; latencies count from the moment a call was due.
  Outcome Paced(const char* method, size_t bytes, double per_second, uint64_t messages);
  Outcome Pull(size_t bytes, uint64_t messages);

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_CEILINGS_CLIENT_H_
