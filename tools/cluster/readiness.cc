#include "tools/cluster/readiness.h"

#include <functional>
#include <future>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/transport/grpc_transport.h"

namespace conclave::tools {
namespace {

constexpr Duration kPollInterval = Duration::Milliseconds(20);
constexpr Duration kAttemptTimeout = Duration::Seconds(2);

// Asks nodes one question at a time and waits for each answer.
class Prober {
 public:
  ~Prober() {
    transport_.reset();
    executor_.Stop();
  }

  template <class Request, class Response>
  absl::StatusOr<Response> Ask(const std::string& endpoint,
                               const Method<Request, Response>& method) {
    std::promise<absl::StatusOr<Response>> answer;
    CallMethod<Request, Response>(
        *transport_, endpoint, method, Request(), {.deadline = clock_.Now() + kAttemptTimeout},
        executor_, [&](absl::StatusOr<Response> r) { answer.set_value(std::move(r)); });
    return answer.get_future().get();
  }

  void Pause() {
    std::promise<void> over;
    executor_.PostAfter(kPollInterval, [&] { over.set_value(); });
    over.get_future().wait();
  }

  MonotonicTime Now() const { return clock_.Now(); }

 private:
  SystemClock clock_;
  ThreadExecutor executor_{clock_, {.name = "prober"}};
  std::unique_ptr<GrpcTransport> transport_ = std::make_unique<GrpcTransport>();
};

absl::Status Trouble(FileSystem& fs, v1::ErrorCode code, const LocalNode& node,
                     const std::string& what) {
  return MakeError(code, absl::StrCat(node.name, " ", what, ". The end of ", node.log_file, ":\n",
                                      LocalCluster::LogTail(fs, node)));
}

// What is missing, with the node it is missing from; nullopt: nothing.
struct Missing {
  const LocalNode* node;
  std::string what;
};
using Check = std::function<std::optional<Missing>(Prober&)>;

absl::Status WaitFor(FileSystem& fs, const std::vector<const LocalNode*>& nodes, const Check& check,
                     Duration timeout) {
  Prober prober;
  const MonotonicTime deadline = prober.Now() + timeout;
  for (;;) {
    for (const LocalNode* node : nodes) {
      if (StateOf(node->process) == ProcessState::kGone) {
        return Trouble(fs, v1::UNKNOWN_SERVER_ERROR, *node, "has ended");
      }
    }
    const std::optional<Missing> missing = check(prober);
    if (!missing) return absl::OkStatus();
    if (prober.Now() >= deadline) {
      return Trouble(fs, v1::REQUEST_TIMED_OUT, *missing->node, missing->what);
    }
    prober.Pause();
  }
}

const LocalNode& FirstOf(const LocalCluster& cluster, NodeRole role) {
  for (const LocalNode& node : cluster.nodes()) {
    if (node.role == role) return node;
  }
  return cluster.nodes().front();
}

// The cluster as the active controller describes it; asks each controller.
std::optional<v1::DescribeClusterResponse> AskControllers(const LocalCluster& cluster,
                                                          Prober& prober) {
  for (const std::string& endpoint : cluster.Endpoints(NodeRole::kController)) {
    auto response = prober.Ask(endpoint, admin_methods::kDescribeCluster);
    if (response.ok()) return *std::move(response);
  }
  return std::nullopt;
}

std::optional<Missing> WhatIsMissing(const LocalCluster& cluster, Prober& prober) {
  const auto description = AskControllers(cluster, prober);
  if (!description) {
    return Missing{&FirstOf(cluster, NodeRole::kController), "and the others have no leader yet"};
  }
  for (const LocalNode& node : cluster.nodes()) {
    if (node.role != NodeRole::kBroker) continue;
    bool active = false;
    for (const v1::BrokerDescription& broker : description->brokers()) {
      active |= broker.broker_id() == node.id && broker.state() == v1::BROKER_LIFECYCLE_ACTIVE &&
                broker.endpoint() == node.endpoint;
    }
    if (!active) return Missing{&node, "is not active yet"};
  }
  return std::nullopt;
}

}  // namespace

absl::Status WaitUntilClusterIsReady(FileSystem& fs, const LocalCluster& cluster,
                                     Duration timeout) {
  std::vector<const LocalNode*> nodes;
  for (const LocalNode& node : cluster.nodes()) nodes.push_back(&node);
  return WaitFor(
      fs, nodes, [&](Prober& prober) { return WhatIsMissing(cluster, prober); }, timeout);
}

absl::Status WaitUntilNodeAnswers(FileSystem& fs, const LocalNode& node, Duration timeout) {
  return WaitFor(
      fs, {&node},
      [&](Prober& prober) -> std::optional<Missing> {
        const auto answer = prober.Ask(node.endpoint, admin_methods::kDescribeQuorum);
        const v1::ErrorCode code = ErrorCodeOf(answer.status());
        if (code != v1::NETWORK_EXCEPTION && code != v1::REQUEST_TIMED_OUT) return std::nullopt;
        return Missing{&node, "does not answer"};
      },
      timeout);
}

}  // namespace conclave::tools
