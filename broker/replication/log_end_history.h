#ifndef CONCLAVE_BROKER_REPLICATION_LOG_END_HISTORY_H_
#define CONCLAVE_BROKER_REPLICATION_LOG_END_HISTORY_H_

#include <deque>

#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave::replication {

// When a leader's log ended where. Thinned to steps of a fraction of the span it is asked about, so
// that its size is bounded; thinning only ever makes a replica look less current, by one step.
class LogEndHistory {
 public:
  // `span`: how far back Current is asked to tell moments apart.
  LogEndHistory(Duration span, Offset end, MonotonicTime now);

  // The log ends at `end` from now on. Ends and times do not fall.
  void Append(Offset end, MonotonicTime now);

  // The latest time, at most `now`, at which a replica with `position` had all there was.
  MonotonicTime CurrentAt(Offset position, MonotonicTime now) const;

 private:
  struct Step {
    // When the log first went beyond the step before.
    MonotonicTime since;
    Offset end;
  };

  const Duration step_;
  const Duration span_;
  // Ascending. The first stands for everything before it too.
  std::deque<Step> steps_;
};

}  // namespace conclave::replication

#endif  // CONCLAVE_BROKER_REPLICATION_LOG_END_HISTORY_H_
