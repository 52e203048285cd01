// What faults of the quorum and of clocks mean for data, in whole simulated clusters; names are
// those of docs/testing.md.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/admin/admin_client.h"
#include "common/error/error.h"
#include "conclave/v1/admin.pb.h"
#include "tests/simulation/cluster/scenario.h"

namespace conclave::cluster_sim {
namespace {

// The greatest that is drawn, and a broker's session (ControlPlane's configuration).
constexpr Duration kElectionTimeout = Duration::Seconds(1);
constexpr Duration kSession = Duration::Seconds(6);

class QuorumScenario : public Scenario {
 protected:
  // A record every so often, to whoever led last, until the executor stops.
  void KeepSending(Duration pause) {
    if (!sending_) return;
    const int leader = cluster_.LeaderOf("t", 0);
    if (leader >= 0) last_leader_ = leader;
    if (open_ < 20) {
      Send(last_leader_, "load" + std::to_string(sent_++), v1::ACKS_ALL, Duration::Seconds(5));
    }
    cluster_.executor().PostAfter(pause, [this, pause] { KeepSending(pause); });
  }

  bool sending_ = true;
  int sent_ = 0;
  int last_leader_ = kFirstBroker;
};

// R13: without a quorum for ten minutes, under load, with a follower that dies meanwhile: nobody
// decides anything, callers hear so in time, and service is back soon after the quorum.
TEST_P(QuorumScenario, R13TenMinutesWithoutAQuorum) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  KeepSending(Duration::Milliseconds(500));
  cluster_.RunFor(Duration::Seconds(2));
  const Partition before = *cluster_.StateOf("t", 0);
  const int active = plane().Active();
  ASSERT_GE(active, 0);
  for (int node = 0; node < ControlPlane::kControllers; ++node) {
    if (node != (active + 1) % ControlPlane::kControllers) plane().Crash(node);
  }
  const MonotonicTime lost_at = cluster_.scheduler().now();

  constexpr Duration kAdminTimeout = Duration::Seconds(5);
  AdminClient::Options options;
  options.bootstrap = plane().BrokerEndpoints();
  options.timeout = kAdminTimeout;
  options.attempt_timeout = Duration::Seconds(2);
  AdminClient admin(options, cluster_.transport(), cluster_.executor(), Random(3));
  for (int minute = 0; minute < 10; ++minute) {
    if (minute == 3) plane().Crash(Others(leader).front());
    if (minute == 6) plane().Start(Others(leader).front());
    v1::CreateTopicsRequest create;
    create.add_topics()->set_name("without-quorum-" + std::to_string(minute));
    std::optional<absl::Status> created;
    std::optional<absl::Status> described;
    const MonotonicTime asked_at = cluster_.scheduler().now();
    admin.CreateTopics(create, [&](absl::StatusOr<v1::CreateTopicsResponse> response) {
      created = response.ok() ? StatusFromError(response->topics(0).error()) : response.status();
    });
    admin.DescribeTopics({}, [&](const absl::StatusOr<v1::DescribeTopicsResponse>& response) {
      described = response.status();
    });
    ASSERT_TRUE(cluster_.RunUntil(kAdminTimeout * 2, [&] { return created && described; }));
    EXPECT_LE((cluster_.scheduler().now() - asked_at).milliseconds(),
              kAdminTimeout.milliseconds() + 1000);
    EXPECT_FALSE(created->ok());
    EXPECT_FALSE(described->ok()) << "what is not confirmed by a quorum is not told";
    EXPECT_TRUE(IsRetriable(*created)) << *created;
    EXPECT_TRUE(IsRetriable(*described)) << *described;
    cluster_.RunUntil(Duration::Seconds(60), [&, minute] {
      return cluster_.scheduler().now() - lost_at >= Duration::Seconds(60) * (minute + 1);
    });
    // As every node that is up has it.
    for (int node = 0; node < plane().nodes(); ++node) {
      if (!plane().IsUp(node)) continue;
      const Partition* now = plane().ImageOf(node).FindPartition(cluster_.IdOf("t", 0));
      if (now == nullptr) continue;  // It has just started.
      EXPECT_EQ(now->leader, before.leader) << node;
      EXPECT_EQ(now->leader_epoch, before.leader_epoch) << node;
      EXPECT_EQ(now->isr, before.isr) << node;
    }
  }

  for (int node = 0; node < ControlPlane::kControllers; ++node) {
    if (!plane().IsUp(node)) plane().Start(node);
  }
  const MonotonicTime back_at = cluster_.scheduler().now();
  const size_t acknowledged = acknowledged_.size();
  ASSERT_TRUE(cluster_.RunUntil(Duration::Seconds(30), [&] {
    return acknowledged_.size() > acknowledged;
  })) << cluster_.violation();
  EXPECT_LE((cluster_.scheduler().now() - back_at).milliseconds(), 30'000);
  EXPECT_EQ(cluster_.CreateTopic("u", 1, 3), "");
  sending_ = false;
  ASSERT_TRUE(cluster_.RunUntil(kTimeout, [this] { return open_ == 0; }));
  ExpectWholeAndNothingLost();
}

// R43: wall clocks step back an hour, on a controller and a broker, before leaders are killed: no
// timeout is measured by them, so everything takes as long as ever.
TEST_P(QuorumScenario, R43AClockThatStepsBackAnHourStopsNoTimeout) {
  ASSERT_EQ(cluster_.CreateTopic("t", 1, 3), "");
  const int leader = cluster_.LeaderOf("t", 0);
  SendAndWait(leader, "before");
  const int active = plane().Active();
  ASSERT_GE(active, 0);
  // Those that are killed, those that come after them, or one of each, by the seed.
  const int controller = GetParam() % 2 == 0 ? active : (active + 1) % ControlPlane::kControllers;
  const int broker = GetParam() / 2 % 2 == 0 ? leader : Others(leader).front();
  plane().StepWallClock(controller, Duration::Seconds(-3600));
  plane().StepWallClock(broker, Duration::Seconds(-3600));
  cluster_.RunFor(Duration::Seconds(2));
  ASSERT_EQ(plane().Active(), active) << "nothing has changed by that alone";
  ASSERT_EQ(cluster_.LeaderOf("t", 0), leader);
  SendAndWait(leader, "stepped");
  EXPECT_EQ(acknowledged_.back(), "stepped");

  // The controllers' leader dies, by itself.
  const MonotonicTime killed_at = cluster_.scheduler().now();
  plane().Crash(active);
  ASSERT_TRUE(cluster_.RunUntil(kElectionTimeout * 10, [&] { return plane().Active() >= 0; }));
  plane().Start(active);
  // The partition's leader freezes: no stream breaks, so its session has to time out.
  plane().Pause(leader);
  ASSERT_TRUE(cluster_.RunUntil(kSession * 3, [&] {
    const int next = cluster_.LeaderOf("t", 0);
    return next >= 0 && next != leader;
  })) << cluster_.violation();
  SendAndWait(cluster_.LeaderOf("t", 0), "after");
  EXPECT_EQ(acknowledged_.back(), "after");
  EXPECT_LE((cluster_.scheduler().now() - killed_at).milliseconds(),
            (kElectionTimeout * 10 + kSession * 3).milliseconds());
  plane().Resume(leader);
  ExpectWholeAndNothingLost();
}

INSTANTIATE_TEST_SUITE_P(Seeds, QuorumScenario, testing::Range(1, 9));

}  // namespace
}  // namespace conclave::cluster_sim
