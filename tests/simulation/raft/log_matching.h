#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_LOG_MATCHING_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_LOG_MATCHING_H_

#include <cstdint>
#include <vector>

#include "raft/core/types.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {

// A number that two entries share if they hold the same, but for index and term.
uint64_t ContentHash(const Entry& entry);

// Log matching (Raft, figure 3): two entries with one index and term, in whatever logs and at
// whatever times, hold the same and follow entries of one term. By induction everything before them
// is the same too.
class LogMatching {
 public:
  // `entry` was put in some log, after one of `previous`.
  MaybeViolation OnAppend(const Entry& entry, Term previous);

 private:
  struct Known {
    Term term;
    Term previous;
    uint64_t content;
  };
  std::vector<std::vector<Known>> by_index_;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_LOG_MATCHING_H_
