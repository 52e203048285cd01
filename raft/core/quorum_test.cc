#include "raft/core/quorum.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/random/random.h"

namespace conclave::raft {
namespace {

// The definition itself: more than half have at least this much.
bool AMajorityHas(const std::vector<int>& values, int value) {
  size_t have = 0;
  for (int v : values) have += v >= value ? 1 : 0;
  return have * 2 > values.size();
}

TEST(QuorumTest, ReachedByMajorityAgreesWithItsDefinition) {
  Random random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<int> values(1 + random.Below(9));
    for (int& v : values) v = static_cast<int>(random.Below(6));
    int naive = 0;
    for (int candidate = 0; candidate <= 6; ++candidate) {
      if (AMajorityHas(values, candidate)) naive = candidate;
    }
    ASSERT_EQ(ReachedByMajority(values), naive);
  }
}

// Plays out every way in which those who are silent could still vote.
VoteResult Naive(size_t voters, size_t granted, size_t refused) {
  bool can_win = false, can_lose = false;
  for (size_t more = 0; more <= voters - granted - refused; ++more) {
    ((granted + more) * 2 > voters ? can_win : can_lose) = true;
  }
  if (!can_win) return VoteResult::kLost;
  return can_lose ? VoteResult::kPending : VoteResult::kWon;
}

TEST(QuorumTest, CountVotesAgreesWithPlayingOutTheRest) {
  for (size_t voters = 1; voters <= 9; ++voters) {
    for (size_t granted = 0; granted <= voters; ++granted) {
      for (size_t refused = 0; granted + refused <= voters; ++refused) {
        EXPECT_EQ(CountVotes(voters, granted, refused), Naive(voters, granted, refused))
            << granted << " for, " << refused << " against, of " << voters;
      }
    }
  }
}

}  // namespace
}  // namespace conclave::raft
