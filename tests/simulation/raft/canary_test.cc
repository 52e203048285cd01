// Deliberate faults of the driver: each has to be noticed, by the invariant that names it.
#include <gtest/gtest.h>

#include "tests/simulation/raft/canary_runs.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {
namespace {

TEST(RaftCanary, TheCleanBuildPassesTheSameSeeds) {
  for (uint64_t seed = 1; seed <= kCanarySeeds; ++seed) {
    const RunResult result = RunSeed({.seed = seed});
    ASSERT_FALSE(result.violation)
        << "seed " << seed << " violates " << result.violation->invariant << ": "
        << result.violation->detail << "\nreplay: " << ReplayCommand({.seed = seed});
  }
}

TEST(RaftCanary, R1_VoteForgottenIsCaughtByOneVoteATerm) {
  const CanaryRuns runs = RunCanary(DriverFault::kVoteForgotten, kOneVote, 2);
  EXPECT_GE(runs.caught, 1u);
}

TEST(RaftCanary, AckBeforeSyncIsCaughtByDurabilityOfCommits) {
  const CanaryRuns runs = RunCanary(DriverFault::kAckBeforeSync, kDurability, 2);
  EXPECT_GE(runs.caught, 1u);
}

TEST(RaftCanary, LeaderCountingItselfBeforeSyncIsCaughtByDurabilityOfCommits) {
  const CanaryRuns runs = RunCanary(DriverFault::kLeaderCountsUnsynced, kDurability, 2);
  EXPECT_GE(runs.caught, 1u);
}

}  // namespace
}  // namespace conclave::raft::sim
