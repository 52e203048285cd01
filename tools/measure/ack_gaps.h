#ifndef CONCLAVE_TOOLS_MEASURE_ACK_GAPS_H_
#define CONCLAVE_TOOLS_MEASURE_ACK_GAPS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/types/time.h"

namespace conclave::tools {

// For how long at a time nothing was acknowledged, a partition: that others go on does not help who
// needs this one. Not thread-safe.
class AckGaps {
 public:
  struct Gap {
    int32_t partition;
    // The acknowledgement before, by the wall clock, and the time to the next.
    WallTime begin;
    Duration length;
  };

  // Gaps of `threshold` and more are kept.
  explicit AckGaps(Duration threshold) : threshold_(threshold) {}

  // From here on acknowledgements of the partition are waited for.
  void Begin(int32_t partition, MonotonicTime now, WallTime wall);
  // A partition that was not begun begins with its first acknowledgement.
  void Acknowledged(int32_t partition, MonotonicTime now, WallTime wall);

  // Nothing is waited for any more: what is open ends here.
  void End(MonotonicTime now);

  // In the order in which they ended.
  const std::vector<Gap>& gaps() const { return gaps_; }
  // The longest of all, also below the threshold; length 0 where there is none.
  const Gap& longest() const { return longest_; }

 private:
  struct Last {
    MonotonicTime at;
    WallTime wall;
  };

  void Add(const Gap& gap);

  const Duration threshold_;
  std::map<int32_t, Last> last_;
  std::vector<Gap> gaps_;
  Gap longest_{-1, WallTime(), Duration()};
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_MEASURE_ACK_GAPS_H_
