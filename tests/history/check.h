#ifndef CONCLAVE_TESTS_HISTORY_CHECK_H_
#define CONCLAVE_TESTS_HISTORY_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/history/history.h"

// Holds a history against the contract of a replicated log. The rules, by number:
//
//    1  inconsistent offset: two values were seen at one offset
//    2  duplicate: one value at two offsets, though its send was idempotent
//    3  lost: an acknowledged value among what a consumer read on through, which no poll has
//    4  unseen: an acknowledged value is not in the final read
//    5  phantom: a value that nobody sent, not yet, or whose send failed
//    6  the offsets within a poll rise, and skip no record
//    7  so do those between the polls of a process, until it is put elsewhere
//    8  the first record after that is the first at or after where it was put
//    9  what a process sends to a log keeps its order
//   10  what was acknowledged before another send began has the lower offset
//   11  what a poll showed at an offset every later one shows there
//   12  a committed offset is a register
//   13  what is below the last committed offset was polled by some member of the group
//   14  assignments of an epoch are disjoint and cover; epochs of a group never fall
//   15  one leader an epoch of a log, and a term; neither falls; start <= high watermark <= end
//   16  dumps of replicas at rest agree in offsets, epochs and checksums of batches
//
// A record counts as skipped only if it is known: polled, read at the end, or acknowledged. So
// holes that compaction left are none, but values that compaction removed count as lost: histories
// of compacted topics are not for rules 3, 4, 11 and 13.
//
// Only what was acknowledged by all in-sync replicas (Acks::kAll) counts as acknowledged.
namespace conclave::history {

struct CheckOptions {
  enum class FlushPolicy {
    // Acknowledged is synced: no loss of power excuses anything.
    kFsync,
    // Acknowledged is on the in-sync replicas: when as many as the minimum ISR have lost power at
    // the same time (see PowerLoss), what was told before and what is told afterwards are not held
    // against each other by rules 1 to 4 and 6 to 13.
    kReplicated,
  };
  FlushPolicy flush_policy = FlushPolicy::kFsync;
  int min_insync_replicas = 2;
  // Further violations of a rule are only counted.
  size_t max_violations_per_rule = 20;
};

struct Violation {
  int rule = 0;
  // Names the log, the offset, the value, the processes and the times, as far as there are.
  std::string message;
};

struct CheckReport {
  // By rule.
  std::vector<Violation> violations;
  // Of each rule that was broken, how often.
  std::map<int, uint64_t> counts;

  bool clean() const { return counts.empty(); }
};

// Takes O(n log n) for n operations and records.
CheckReport Check(const History& history, const CheckOptions& options = {});

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_CHECK_H_
