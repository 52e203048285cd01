#ifndef CONCLAVE_TESTS_SIMULATION_REPLICATION_INVARIANTS_H_
#define CONCLAVE_TESTS_SIMULATION_REPLICATION_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/types/ids.h"
#include "tests/simulation/replication/sim_log.h"

namespace conclave::replication_simulation {

struct Violation {
  std::string invariant;
  std::string detail;
};

// What must hold of a partition, whatever fails. Told of each step, it checks what the step
// touched; the first violation stays.
class Invariants {
 public:
  // One reign an epoch: an epoch is led by one incarnation of one broker.
  void LeaderBegan(LeaderEpoch epoch, BrokerId broker, BrokerEpoch incarnation, const SimLog& log);
  // Below high watermarks all replicas are the same, for ever; and marks do not fall.
  void MarkStands(BrokerId broker, BrokerEpoch incarnation, Offset mark, const SimLog& log);
  // The producer was told that its record is committed.
  void Acknowledged(uint64_t value, Offset offset);

  const std::optional<Violation>& violation() const { return violation_; }
  const std::vector<SimRecord>& committed() const { return committed_; }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  void Violated(const char* invariant, std::string detail);

  std::vector<SimRecord> committed_;
  std::map<LeaderEpoch, std::pair<BrokerId, BrokerEpoch>> reigns_;
  std::map<std::pair<BrokerId, BrokerEpoch>, Offset> marks_;
  uint64_t acknowledged_ = 0;
  std::optional<Violation> violation_;
};

inline constexpr char kOneReignAnEpoch[] = "one reign an epoch";
inline constexpr char kLeaderCompleteness[] = "leader completeness";
inline constexpr char kIdenticalBelowMark[] = "identical below the high watermark";
inline constexpr char kMarksDoNotFall[] = "high watermarks do not fall";
inline constexpr char kAcknowledgedIsCommitted[] = "acknowledged is committed";
inline constexpr char kConvergence[] = "convergence";

}  // namespace conclave::replication_simulation

#endif  // CONCLAVE_TESTS_SIMULATION_REPLICATION_INVARIANTS_H_
