// Runs the whole-cluster simulation with a fault of the code that was made on purpose and linked in
// the right code's place: the invariant that is there for it has to notice.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "tests/simulation/cluster/simulation.h"

namespace conclave::cluster_sim {
namespace {

// The right code passes these (tests/simulation/cluster:simulation_test).
constexpr uint64_t kSeeds = 200;

// From the command line: the fault's name, and a part of what the invariant says that should
// notice.
std::string g_canary;
std::string g_caught_by;

TEST(Canary, IsCaughtByTheInvariantThatShould) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  uint64_t others = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RunResult result = RunSeed({.seed = seed});
    if (result.violation.empty()) continue;
    if (result.violation.find(g_caught_by) != std::string::npos) {
      std::cout << g_canary << " is caught by seed " << seed << ", after " << others
                << " that something else noticed: " << result.violation << std::endl;
      return;
    }
    std::cout << "seed " << seed << ": " << result.violation << std::endl;
    ++others;
  }
  FAIL() << g_canary << " is not caught by \"" << g_caught_by << "\" in " << kSeeds << " seeds; "
         << others << " noticed something else";
}

}  // namespace

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  CHECK_EQ(argc, 3) << "usage: canary_test NAME CAUGHT_BY";
  g_canary = argv[1];
  g_caught_by = argv[2];
  return RUN_ALL_TESTS();
}

}  // namespace conclave::cluster_sim

int main(int argc, char** argv) { return conclave::cluster_sim::Main(argc, argv); }
