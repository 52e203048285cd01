// Faults of the quorum, one by one, as clients see them; names are those of docs/testing.md. The
// same rules are held against the core alone in raft/core.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "client/admin/admin_client.h"
#include "common/error/error.h"
#include "common/random/random.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "conclave/v1/admin.pb.h"
#include "tests/simulation/controllers/control_plane.h"

namespace conclave::control_sim {
namespace {

// The greatest that is drawn (ControlPlane's configuration).
constexpr Duration kElectionTimeout = Duration::Seconds(1);

class QuorumScenario : public testing::TestWithParam<uint64_t> {
 protected:
  QuorumScenario()
      : plane_(Random(GetParam()), {.text = getenv("TRACE") != nullptr ? &std::cerr : nullptr}),
        clock_(plane_.scheduler()),
        executor_(plane_.scheduler(), clock_),
        transport_(plane_.network().Join("client")) {
    FLAGS_minloglevel = google::GLOG_FATAL;
    AdminClient::Options options;
    options.bootstrap = plane_.BrokerEndpoints();
    options.timeout = Duration::Seconds(30);
    options.attempt_timeout = Duration::Seconds(3);
    admin_ = std::make_unique<AdminClient>(options, *transport_, executor_, Random(GetParam()));
  }
  ~QuorumScenario() override {
    executor_.Stop();
    EXPECT_EQ(plane_.violation(), "");
  }

  bool RunUntil(Duration limit, const std::function<bool()>& done) {
    const MonotonicTime end = plane_.scheduler().now() + limit;
    while (plane_.violation().empty() && !done()) {
      if (plane_.scheduler().now() >= end) return false;
      plane_.RunFor(Duration::Milliseconds(5));
    }
    return plane_.violation().empty();
  }
  void WaitUntilWhole() {
    ASSERT_TRUE(RunUntil(Duration::Seconds(30), [this] { return plane_.WhyNotWhole().empty(); }))
        << plane_.WhyNotWhole();
  }
  // Starts to; `created` is set when there is an answer.
  void Create(const std::string& name, std::optional<absl::Status>& created) {
    v1::CreateTopicsRequest request;
    request.add_topics()->set_name(name);
    admin_->CreateTopics(request, [&created](absl::StatusOr<v1::CreateTopicsResponse> response) {
      created = response.ok() ? StatusFromError(response->topics(0).error()) : response.status();
    });
  }

  ControlPlane plane_;
  SimClock clock_;
  SimExecutor executor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<AdminClient> admin_;
};

// R5 (etcd-io/raft#266): nothing reaches the leader, and what it sends still reaches all: they hear
// heartbeats of one who hears nobody. It gives up by itself, and another serves.
TEST_P(QuorumScenario, R5ALeaderThatHearsNobodyIsReplaced) {
  WaitUntilWhole();
  const int deaf = plane_.Active();
  for (int node = 0; node < plane_.nodes(); ++node) {
    if (node != deaf) plane_.wire().Cut(ControlPlane::NameOf(node), ControlPlane::NameOf(deaf));
  }
  plane_.wire().Cut("client", ControlPlane::NameOf(deaf));
  const MonotonicTime cut_at = plane_.scheduler().now();
  std::optional<absl::Status> created;
  Create("x", created);
  ASSERT_TRUE(RunUntil(Duration::Seconds(30), [&] { return created.has_value(); }));
  EXPECT_TRUE(created->ok()) << *created;
  EXPECT_LE((plane_.scheduler().now() - cut_at).milliseconds(),
            (kElectionTimeout * 10).milliseconds());
  EXPECT_NE(plane_.Active(), deaf);
  plane_.wire().HealAll();
  WaitUntilWhole();
  EXPECT_NE(plane_.ImageOf(deaf).FindTopic(std::string_view("x")), nullptr);
}

// R6 (consul#54): a leader that stood still while another was elected and changed things, and finds
// a request in its socket when it goes on, does not answer it from what it knew.
TEST_P(QuorumScenario, R6ALeaderThatStoodStillAnswersNothingStale) {
  WaitUntilWhole();
  const int still = plane_.Active();
  plane_.Pause(still);
  std::optional<absl::StatusOr<v1::DescribeTopicsResponse>> described;
  v1::DescribeTopicsRequest request;
  request.add_names("x");
  CallMethod<v1::DescribeTopicsRequest, v1::DescribeTopicsResponse>(
      *transport_, ControlPlane::EndpointTextOf(still), admin_methods::kDescribeTopics, request,
      {.deadline = plane_.scheduler().now() + Duration::Seconds(60)}, executor_,
      [&](absl::StatusOr<v1::DescribeTopicsResponse> response) {
        described = std::move(response);
      });
  const MonotonicTime paused_at = plane_.scheduler().now();
  std::optional<absl::Status> created;
  Create("x", created);
  ASSERT_TRUE(RunUntil(Duration::Seconds(30), [&] { return created.has_value(); }));
  ASSERT_TRUE(created->ok()) << *created;
  RunUntil(kElectionTimeout * 10,
           [&] { return plane_.scheduler().now() - paused_at >= kElectionTimeout * 10; });
  EXPECT_FALSE(described.has_value());
  // Its sessions do not break by themselves: brokers have to notice, before the next one's patience
  // ends.
  const int next = (still + 1) % ControlPlane::kControllers;
  for (int node = ControlPlane::kControllers; node < plane_.nodes(); ++node) {
    EXPECT_FALSE(plane_.ImageOf(next).FindBroker(BrokerId(node))->fenced) << node;
  }
  plane_.Resume(still);
  ASSERT_TRUE(RunUntil(Duration::Seconds(60), [&] { return described.has_value(); }));
  if (described->ok()) {
    ASSERT_EQ((*described)->topics_size(), 1);
    EXPECT_EQ((*described)->topics(0).error().code(), v1::NONE)
        << (*described)->topics(0).error().message();
    EXPECT_EQ((*described)->topics(0).partitions_size(), 1);
  } else {
    EXPECT_EQ(ErrorCodeOf(described->status()), v1::NOT_CONTROLLER) << described->status();
  }
  WaitUntilWhole();
}

INSTANTIATE_TEST_SUITE_P(Seeds, QuorumScenario, testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace conclave::control_sim
