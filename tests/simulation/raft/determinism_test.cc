#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/simulation/raft/simulation.h"

namespace conclave::raft::sim {
namespace {

TEST(RaftSimulationDeterminism, TheSameSeedTwiceGivesTheSameTrace) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RunResult first = RunSeed({.seed = seed});
    // Writing the trace out changes nothing of it.
    std::ostringstream text;
    const RunResult second = RunSeed({.seed = seed, .trace = &text});
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.counters.events, second.counters.events) << "seed " << seed;
    EXPECT_FALSE(text.str().empty());
    hashes.insert(first.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 20u) << "different seeds run differently";
}

}  // namespace
}  // namespace conclave::raft::sim
