#include "tests/simulation/controllers/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <iostream>

namespace conclave::control_sim {
namespace {

constexpr uint64_t kSeedsPerBatch = 25;
constexpr uint64_t kBatches = 4;

class ControlPlaneSimulation : public testing::TestWithParam<uint64_t> {
 protected:
  ControlPlaneSimulation() { FLAGS_minloglevel = google::GLOG_FATAL; }
};

TEST_P(ControlPlaneSimulation, KeepsItsInvariantsAndRecovers) {
  RunCounters total;
  for (uint64_t i = 1; i <= kSeedsPerBatch; ++i) {
    const uint64_t seed = GetParam() * kSeedsPerBatch + i;
    const RunResult result = RunSeed({.seed = seed});
    EXPECT_EQ(result.violation, "") << "seed " << seed << "\nreplay: " << ReplayCommand(seed);
    total += result.counters;
  }
  std::cout << kSeedsPerBatch << " seeds: " << total.ToString() << std::endl;

  // A simulation in which nothing happens, or nothing goes wrong, finds nothing.
  EXPECT_GE(total.topics_created, 600u);
  EXPECT_GE(total.topics_deleted, 150u);
  EXPECT_GE(total.lists, 150u);
  EXPECT_GE(total.requests_failed, 20u);
  EXPECT_GE(total.activations, 60u);
  EXPECT_GE(total.controller_crashes, 25u);
  EXPECT_GE(total.broker_crashes, 25u);
  EXPECT_GE(total.partitions, 30u);
  EXPECT_GE(total.one_way_cuts, 20u);
  EXPECT_GE(total.pauses, 10u);
  EXPECT_GE(total.disk_errors, 1u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ControlPlaneSimulation, testing::Range<uint64_t>(0, kBatches));

TEST(ControlPlaneDeterminism, TheSameSeedIsTheSameHistory) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  for (uint64_t seed : {7, 8, 9, 10, 11}) {
    const RunResult first = RunSeed({.seed = seed});
    const RunResult second = RunSeed({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.counters.events, second.counters.events) << "seed " << seed;
  }
  EXPECT_NE(RunSeed({.seed = 7}).trace_hash, RunSeed({.seed = 8}).trace_hash);
}

}  // namespace
}  // namespace conclave::control_sim
