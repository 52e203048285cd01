#include "tests/simulation/cluster/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <iostream>
#include <utility>

namespace conclave::cluster_sim {
namespace {

constexpr uint64_t kSeedsPerBatch = 25;
constexpr uint64_t kBatches = 8;

class ClusterSimulation : public testing::TestWithParam<uint64_t> {
 protected:
  ClusterSimulation() { FLAGS_minloglevel = google::GLOG_FATAL; }
};

// A simulation in which nothing happens, or nothing goes wrong, finds nothing. Of each batch.
constexpr std::pair<const char*, uint64_t> kFloors[] = {
    {"acknowledged", 30'000},         {"polled", 30'000},          {"offsets committed", 2'000},
    {"offsets read", 4'000},          {"group offsets read", 500}, {"records handed out", 10'000},
    {"partition leaders", 100},       {"truncations", 5},          {"broker crashes", 30},
    {"leader crashes", 20},           {"controller crashes", 15},  {"power cuts", 2},
    {"brokers cut from brokers", 30}, {"one-way cuts", 20},        {"pauses", 10},
    {"members crashed", 5},           {"members paused", 3},
};

TEST_P(ClusterSimulation, LosesNothingAndRecovers) {
  Coverage total;
  for (uint64_t i = 1; i <= kSeedsPerBatch; ++i) {
    const uint64_t seed = GetParam() * kSeedsPerBatch + i;
    const RunResult result = RunSeed({.seed = seed});
    EXPECT_EQ(result.violation, "") << "seed " << seed << "\nreplay: " << ReplayCommand(seed);
    total += result.coverage;
  }
  std::cout << kSeedsPerBatch << " seeds: " << total << std::endl;
  for (const auto& [what, floor] : kFloors) EXPECT_GE(total[what], floor) << what;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterSimulation, testing::Range<uint64_t>(0, kBatches));

TEST(ClusterDeterminism, TheSameSeedIsTheSameHistory) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  for (uint64_t seed : {7, 8, 9}) {
    const RunResult first = RunSeed({.seed = seed});
    const RunResult second = RunSeed({.seed = seed});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
  EXPECT_NE(RunSeed({.seed = 7}).trace_hash, RunSeed({.seed = 8}).trace_hash);
}

}  // namespace
}  // namespace conclave::cluster_sim
