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

// A simulation in which nothing happens, or nothing goes wrong, finds nothing. Of each batch; about
// half of what the batch with the least of it has.
constexpr std::pair<const char*, uint64_t> kFloors[] = {
    // What clients do.
    {"acknowledged", 22'000},
    {"sends refused", 1'500},
    {"sends unknown", 40},
    {"polled", 16'000},
    {"offsets committed", 1'700},
    {"offsets read", 7'000},
    {"group offsets read", 250},
    {"group commits acknowledged", 15},
    {"records handed out", 8'000},
    {"records handed out again", 10},
    {"operations checked", 50'000},
    // What is done to processes and disks.
    {"broker crashes", 30},
    {"leader crashes", 19},
    {"controller crashes", 15},
    {"leaders cut off and crashed", 8},
    {"power cuts", 1},
    {"nodes without power", 60},
    {"processes killed", 35},
    {"clean stops", 1},
    {"pauses", 12},
    {"broker syncs failed", 1},
    {"disks filled", 5},
    {"members crashed", 8},
    {"members paused", 5},
    // What is done to the network.
    {"brokers cut from brokers", 23},
    {"nodes isolated", 13},
    {"splits", 10},
    {"leaders marooned", 2},
    {"one-way cuts", 14},
    {"nodes deafened", 2},
    {"streams broken", 12},
    // The branches that protocols take.
    {"controllers became active", 40},
    {"brokers registered again", 75},
    {"brokers fenced", 80},
    {"brokers unfenced", 130},
    {"controlled shutdowns", 1},
    {"leaders elected", 2'000},
    {"partitions without a leader", 300},
    {"partition leaders", 2'800},
    {"ISRs shrunk", 3'000},
    {"ISRs expanded", 3'000},
    {"truncations", 25},
    {"retries answered as duplicates", 250},
    {"coordinators moved", 1'500},
    {"coordinators found elsewhere", 45},
    {"partitions assigned", 14},
};

// What happens seldom, with a batch in which it does.
struct Seldom {
  const char* what;
  uint64_t batch;
  uint64_t floor;
};
constexpr Seldom kSeldom[] = {
    {"clock steps", 1, 10},          {"controller writes failed", 0, 6},
    {"followers begun anew", 6, 2},  {"members lost their partitions", 1, 3},
    {"partitions revoked", 3, 2},    {"log starts moved", 1, 50},
    {"bits rotten", 7, 4},           {"damaged replicas replaced", 7, 4},
    {"flush policy changes", 7, 10}, {"records deleted by offset", 7, 30},
    {"logs shorter after a restart", 3, 14},
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
  for (const auto& [what, batch, floor] : kSeldom) {
    if (batch != GetParam()) continue;
    EXPECT_GE(total[what], floor) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterSimulation, testing::Range<uint64_t>(0, kBatches));

// Each broke something once.
TEST(ClusterRegression, SeedsThatFoundSomething) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  for (const uint64_t seed :
       {1266988293013, 1266988294454, 1266988294688, 1266988294842, 1266988295275, 2876832128414,
        272906590559, 272906591024, 791346452623, 574249416404}) {
    EXPECT_EQ(RunSeed({.seed = seed}).violation, "") << seed;
  }
}

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
