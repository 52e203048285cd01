#include "tests/simulation/cluster/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <iostream>

namespace conclave::cluster_sim {
namespace {

constexpr uint64_t kSeedsPerBatch = 25;
constexpr uint64_t kBatches = 4;

class ClusterSimulation : public testing::TestWithParam<uint64_t> {
 protected:
  ClusterSimulation() { FLAGS_minloglevel = google::GLOG_FATAL; }
};

TEST_P(ClusterSimulation, LosesNothingAndRecovers) {
  RunCounters total;
  for (uint64_t i = 1; i <= kSeedsPerBatch; ++i) {
    const uint64_t seed = GetParam() * kSeedsPerBatch + i;
    const RunResult result = RunSeed({.seed = seed});
    EXPECT_EQ(result.violation, "") << "seed " << seed << "\nreplay: " << ReplayCommand(seed);
    total += result.counters;
  }
  std::cout << kSeedsPerBatch << " seeds: " << total.ToString() << std::endl;

  // A simulation in which nothing happens, or nothing goes wrong, finds nothing.
  EXPECT_GE(total.acknowledged, 40'000u);
  EXPECT_GE(total.polled, 40'000u);
  EXPECT_GE(total.offsets_committed, 2'000u);
  EXPECT_GE(total.offsets_read, 4'000u);
  EXPECT_GE(total.refused + total.unknown, 200u);
  EXPECT_GE(total.leaders, 100u);
  EXPECT_GE(total.truncations, 5u);
  EXPECT_GE(total.broker_crashes + total.leader_crashes, 60u);
  EXPECT_GE(total.controller_crashes, 15u);
  EXPECT_GE(total.cuts + total.one_way_cuts, 60u);
  EXPECT_GE(total.pauses, 10u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterSimulation, testing::Range<uint64_t>(0, kBatches));

TEST(ClusterDeterminism, TheSameSeedIsTheSameHistory) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  for (uint64_t seed : {7, 8, 9}) {
    const RunResult first = RunSeed({.seed = seed});
    const RunResult second = RunSeed({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.counters.events, second.counters.events) << "seed " << seed;
  }
  EXPECT_NE(RunSeed({.seed = 7}).trace_hash, RunSeed({.seed = 8}).trace_hash);
}

}  // namespace
}  // namespace conclave::cluster_sim
