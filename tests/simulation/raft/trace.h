#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_TRACE_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_TRACE_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "common/types/time.h"
#include "conclave/v1/raft.pb.h"

namespace conclave::raft::sim {

// Everything that happens in a run, as a hash and, where asked for, as text.
class Trace {
 public:
  // `text` may be null; it outlives this.
  explicit Trace(std::ostream* text) : text_(text) {}

  bool wants_text() const { return text_ != nullptr; }
  void Line(MonotonicTime now, const std::string& line);
  void Mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ULL;
    hash_ ^= hash_ >> 29;
  }
  uint64_t hash() const { return hash_; }

 private:
  std::ostream* text_;
  uint64_t hash_ = 0;
};

// One line for a person.
std::string Describe(const v1::RaftMessage& message);

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_TRACE_H_
