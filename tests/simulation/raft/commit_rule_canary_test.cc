// The core linked with a commit rule that counts copies of old entries: has to be noticed.
#include <gtest/gtest.h>

#include "tests/simulation/raft/canary_runs.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {
namespace {

TEST(RaftCanary, R2_CommitByCountingAnOldTermIsCaughtByLeaderCompleteness) {
  const CanaryRuns runs = RunCanary(DriverFault::kNone, kLeaderCompleteness, 2);
  EXPECT_GE(runs.caught, 1u);
  EXPECT_EQ(runs.by_others, 0u);
}

}  // namespace
}  // namespace conclave::raft::sim
