// A thousand seeds of the clean build. Each run is at least 30 simulated seconds of faults, then a
// recovery; see docs/testing-raft.md.
#include "tests/simulation/raft/simulation.h"

#include <gtest/gtest.h>

#include <iostream>

namespace conclave::raft::sim {
namespace {

constexpr uint64_t kSeedsPerBatch = 100;
constexpr uint64_t kBatches = 10;

class RaftSimulation : public testing::TestWithParam<uint64_t> {};

TEST_P(RaftSimulation, KeepsItsInvariantsAndRecovers) {
  RunCounters total;
  for (uint64_t i = 1; i <= kSeedsPerBatch; ++i) {
    const RunOptions options{.seed = GetParam() * kSeedsPerBatch + i};
    const RunResult result = RunSeed(options);
    ASSERT_FALSE(result.violation)
        << "seed " << options.seed << " violates " << result.violation->invariant << ": "
        << result.violation->detail << "\nreplay: " << ReplayCommand(options);
    EXPECT_GE(result.simulated, Duration::Seconds(30)) << "seed " << options.seed;
    EXPECT_GE(result.counters.events, 2'000u) << "seed " << options.seed;
    total += result.counters;
  }
  std::cout << kSeedsPerBatch << " seeds: " << total.ToString() << std::endl;

  // A simulation in which nothing goes wrong finds nothing.
  EXPECT_GE(total.elections_won, 1'000u);
  EXPECT_GE(total.truncations, 200u);
  EXPECT_GE(total.committed, 20'000u);
  EXPECT_GE(total.reads_confirmed, 1'000u);
  EXPECT_GE(total.crashes_that_lost_writes, 50u);
  EXPECT_GE(total.one_way_cuts, 200u);
  EXPECT_GE(total.partitions, 200u);
  EXPECT_GE(total.pre_votes_refused, 1'000u);
  EXPECT_GE(total.quorum_resignations, 50u);
  EXPECT_GE(total.stall_resignations, 1u);
  EXPECT_GE(total.wipes, 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RaftSimulation, testing::Range<uint64_t>(0, kBatches));

}  // namespace
}  // namespace conclave::raft::sim
