#ifndef CONCLAVE_RAFT_CORE_QUORUM_H_
#define CONCLAVE_RAFT_CORE_QUORUM_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

// The arithmetic of majorities. Pure functions.
namespace conclave::raft {

// Voters that a majority of `voters` has; more than half.
constexpr size_t MajorityOf(size_t voters) { return voters / 2 + 1; }

// The greatest value that a majority has reached, given one value for each voter. `values` is not
// empty. For log positions: what a majority holds. For moments: since when a majority was heard.
template <typename T>
T ReachedByMajority(std::vector<T> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(MajorityOf(values.size()) - 1);
  std::nth_element(values.begin(), at, values.end(), std::greater<T>());
  return *at;
}

enum class VoteResult { kPending, kWon, kLost };

// Lost as soon as those who have not refused are no majority.
constexpr VoteResult CountVotes(size_t voters, size_t granted, size_t refused) {
  if (granted >= MajorityOf(voters)) return VoteResult::kWon;
  if (voters - refused < MajorityOf(voters)) return VoteResult::kLost;
  return VoteResult::kPending;
}

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_QUORUM_H_
