#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_VIOLATION_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_VIOLATION_H_

#include <optional>
#include <string>

namespace conclave::raft::sim {

// An invariant that does not hold. The names are those of Raft's figure 3 where it has one.
struct Violation {
  std::string invariant;
  std::string detail;
};
using MaybeViolation = std::optional<Violation>;

inline constexpr char kElectionSafety[] = "election safety";
inline constexpr char kOneVote[] = "one vote a term";
inline constexpr char kTermsNeverFall[] = "terms never fall";
inline constexpr char kLogMatching[] = "log matching";
inline constexpr char kLeaderCompleteness[] = "leader completeness";
inline constexpr char kStateMachineSafety[] = "state machine safety";
inline constexpr char kDurability[] = "durability of commits";
inline constexpr char kCurrentReads[] = "reads are current";
inline constexpr char kLiveness[] = "liveness";
inline constexpr char kNoRejections[] = "no rejections among correct replicas";

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_VIOLATION_H_
