#ifndef CONCLAVE_TESTS_HISTORY_ERAS_H_
#define CONCLAVE_TESTS_HISTORY_ERAS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/history/check.h"
#include "tests/history/history.h"

namespace conclave::history {

// The times between losses that the flush policy excuses: what was told in one era and what is told
// in another are not held against each other.
class Eras {
 public:
  Eras(const History& history, const CheckOptions& options);

  // -1: it was under way during an excused loss, and proves nothing.
  int Of(const Operation& operation) const;
  int last() const { return static_cast<int>(losses_.size()); }

 private:
  // From the moment at which too many nodes were without power until enough were back; disjoint,
  // rising.
  std::vector<std::pair<Time, Time>> losses_;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_ERAS_H_
