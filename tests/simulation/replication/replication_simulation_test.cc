// Seeds of the replication simulation: the real leader and follower keep every promise; each fault
// made on purpose is noticed by the invariant that is there for it.
#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>

#include "tests/simulation/replication/world.h"

namespace conclave::replication_simulation {
namespace {

TEST(ReplicationSimulationTest, NothingAcknowledgedIsLost) {
  Result sum;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Result result = RunSeed(seed, Fault::kNone);
    ASSERT_FALSE(result.violation) << "seed " << seed << ": " << result.violation->invariant << ": "
                                   << result.violation->detail;
    sum.events += result.events;
    sum.acknowledged += result.acknowledged;
    sum.elections += result.elections;
    sum.truncations += result.truncations;
    sum.lost_unsynced += result.lost_unsynced;
    sum.shrinks += result.shrinks;
    sum.expands += result.expands;
  }
  std::cout << sum.events << " events, " << sum.acknowledged << " records acknowledged, "
            << sum.elections << " elections, " << sum.truncations << " truncations, "
            << sum.lost_unsynced << " crashes that lost records, " << sum.shrinks << " shrinks, "
            << sum.expands << " expansions of the ISR\n";
  // A run that never truncates proves nothing about truncation.
  EXPECT_GT(sum.acknowledged, 50'000u);
  EXPECT_GT(sum.elections, 2'000u);
  EXPECT_GT(sum.truncations, 200u);
  EXPECT_GT(sum.lost_unsynced, 1'000u);
  EXPECT_GT(sum.shrinks, 2'000u);
  EXPECT_GT(sum.expands, 2'000u);
}

TEST(ReplicationSimulationTest, TheSameSeedIsTheSameRun) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Result first = RunSeed(seed, Fault::kNone);
    const Result second = RunSeed(seed, Fault::kNone);
    EXPECT_EQ(first.trace_hash, second.trace_hash);
    EXPECT_EQ(first.acknowledged, second.acknowledged);
  }
}

struct Canary {
  const char* name;
  Fault fault;
  std::set<std::string> caught_by;
};

class CanaryTest : public ::testing::TestWithParam<Canary> {};

TEST_P(CanaryTest, IsCaughtByTheInvariantThatShould) {
  int caught = 0;
  uint64_t first = 0;
  std::set<std::string> by;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Result result = RunSeed(seed, GetParam().fault);
    if (!result.violation) continue;
    by.insert(result.violation->invariant);
    if (GetParam().caught_by.count(result.violation->invariant) == 0) continue;
    ++caught;
    if (first == 0) first = seed;
  }
  std::cout << GetParam().name << ": caught in " << caught << " of 200 seeds, first " << first
            << "; invariants that noticed:";
  for (const std::string& invariant : by) std::cout << " [" << invariant << "]";
  std::cout << "\n";
  EXPECT_GE(caught, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Canaries, CanaryTest,
    ::testing::Values(
        Canary{"EpochIgnored", Fault::kEpochIgnored, {kIdenticalBelowMark}},
        Canary{"TruncateToHighWatermark", Fault::kTruncateToHighWatermark, {kLeaderCompleteness}},
        Canary{"ReelectionWithoutNewEpoch", Fault::kReelectionWithoutNewEpoch, {kOneReignAnEpoch}},
        Canary{"UnsyncedFollowerCounts", Fault::kUnsyncedFollowerCounts, {kLeaderCompleteness}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace conclave::replication_simulation
