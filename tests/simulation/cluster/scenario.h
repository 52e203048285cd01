#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_SCENARIO_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_SCENARIO_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "tests/simulation/cluster/cluster.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

inline constexpr Duration kTimeout = Duration::Seconds(30);
inline constexpr int kFirstBroker = ControlPlane::kControllers;

// One fault of a kind in a whole simulated cluster; the parameter is the seed. After it the
// invariants have held.
class Scenario : public testing::TestWithParam<int> {
 protected:
  Scenario()
      : cluster_(static_cast<uint64_t>(GetParam()),
                 {.text = getenv("TRACE") != nullptr ? &std::cerr : nullptr}) {}

  ~Scenario() override { EXPECT_EQ(cluster_.violation(), ""); }

  ControlPlane& plane() { return cluster_.plane(); }
  std::vector<int> Others(int broker) {
    std::vector<int> others;
    for (int node = kFirstBroker; node < plane().nodes(); ++node) {
      if (node != broker) others.push_back(node);
    }
    return others;
  }

  // Sends `count` values one after the other to whoever leads then; `acknowledged_` takes those
  // that were.
  void Send(int broker, const std::string& value, v1::Acks acks = v1::ACKS_ALL,
            Duration timeout = kTimeout) {
    ++open_;
    cluster_.Produce(broker, "t", 0, {value}, acks, timeout,
                     [this, value](const absl::Status& status, const auto&) {
                       --open_;
                       if (status.ok()) acknowledged_.push_back(value);
                       errors_.push_back(ErrorCodeOf(status));
                     });
  }
  void SendAndWait(int broker, const std::string& value) {
    Send(broker, value);
    ASSERT_TRUE(cluster_.RunUntil(kTimeout * 2, [this] { return open_ == 0; }));
  }

  // A write succeeds, every replica is in sync, and what was acknowledged is there once.
  void ExpectWholeAndNothingLost() {
    ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(60), [this] { return cluster_.IsWhole("t"); }))
        << cluster_.violation() << plane().WhyNotWhole();
    SendAndWait(cluster_.LeaderOf("t", 0), "last");
    ASSERT_FALSE(acknowledged_.empty());
    EXPECT_EQ(acknowledged_.back(), "last");
    const auto all = cluster_.ReadAll("t", 0);
    for (const std::string& value : acknowledged_) {
      EXPECT_EQ(std::count(all.begin(), all.end(), value), 1) << value;
    }
  }

  Cluster cluster_;
  int open_ = 0;
  std::vector<std::string> acknowledged_;
  std::vector<v1::ErrorCode> errors_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_SCENARIO_H_
