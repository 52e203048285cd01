#include "tests/simulation/cluster/simulation.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <iostream>
#include <utility>

namespace conclave::cluster_sim {
namespace {

constexpr uint64_t kSeedsPerBatch = 50;
constexpr uint64_t kBatches = 4;

class ClusterSimulation : public testing::TestWithParam<uint64_t> {
 protected:
  ClusterSimulation() { FLAGS_minloglevel = google::GLOG_FATAL; }
};

// A simulation in which nothing happens, or nothing goes wrong, finds nothing. Of each batch; about
// half of what the batch with the least of it has.
constexpr std::pair<const char*, uint64_t> kFloors[] = {
    // What clients do.
    {"acknowledged", 44'000},
    {"sends refused", 3'000},
    {"sends unknown", 80},
    {"polled", 32'000},
    {"offsets committed", 3'400},
    {"offsets read", 14'000},
    {"group offsets read", 500},
    {"group commits acknowledged", 30},
    {"records handed out", 16'000},
    {"records handed out again", 20},
    {"operations checked", 100'000},
    // What is done to processes and disks.
    {"broker crashes", 60},
    {"leader crashes", 38},
    {"controller crashes", 30},
    {"leaders cut off and crashed", 16},
    {"power cuts", 2},
    {"nodes without power", 120},
    {"processes killed", 70},
    {"clean stops", 2},
    {"pauses", 24},
    {"broker syncs failed", 2},
    {"disks filled", 10},
    {"members crashed", 16},
    {"members paused", 10},
    // What is done to the network.
    {"brokers cut from brokers", 46},
    {"nodes isolated", 26},
    {"splits", 20},
    {"leaders marooned", 4},
    {"one-way cuts", 28},
    {"nodes deafened", 4},
    {"streams broken", 24},
    // The branches that protocols take.
    {"controllers became active", 80},
    {"brokers registered again", 150},
    {"brokers fenced", 160},
    {"brokers unfenced", 260},
    {"controlled shutdowns", 2},
    {"leaders elected", 4'000},
    {"partitions without a leader", 600},
    {"partition leaders", 5'600},
    {"ISRs shrunk", 6'000},
    {"ISRs expanded", 6'000},
    {"truncations", 50},
    {"logs shorter after a restart", 16},
    {"retries answered as duplicates", 500},
    {"coordinators moved", 3'000},
    {"coordinators found elsewhere", 90},
    {"partitions assigned", 28},
};

// What happens seldom, with a batch in which it does.
struct Seldom {
  const char* what;
  uint64_t batch;
  uint64_t floor;
};
constexpr Seldom kSeldom[] = {
    {"clock steps", 0, 10},          {"controller writes failed", 0, 6},
    {"followers begun anew", 3, 2},  {"members lost their partitions", 0, 3},
    {"partitions revoked", 1, 2},    {"log starts moved", 0, 50},
    {"bits rotten", 3, 4},           {"damaged replicas replaced", 3, 4},
    {"flush policy changes", 3, 10}, {"records deleted by offset", 3, 30},
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
        272906590559, 272906591024, 791346452623, 574249416404, 3664246471185}) {
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
