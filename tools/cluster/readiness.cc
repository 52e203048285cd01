#include "tools/cluster/readiness.h"

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/rpc/metadata_methods.h"
#include "common/transport/grpc_transport.h"
#include "common/types/ids.h"

namespace conclave::tools {
namespace {

constexpr Duration kPollInterval = Duration::Milliseconds(20);
constexpr Duration kAttemptTimeout = Duration::Seconds(2);

// Asks nodes and waits for their answers.
class Prober {
 public:
  ~Prober() {
    transport_.reset();
    executor_.Stop();
  }

  template <class Request, class Response>
  std::future<absl::StatusOr<Response>> Begin(const std::string& endpoint,
                                              const Method<Request, Response>& method) {
    auto answer = std::make_shared<std::promise<absl::StatusOr<Response>>>();
    CallMethod<Request, Response>(
        *transport_, endpoint, method, Request(), {.deadline = clock_.Now() + kAttemptTimeout},
        executor_, [answer](absl::StatusOr<Response> r) { answer->set_value(std::move(r)); });
    return answer->get_future();
  }

  template <class Request, class Response>
  absl::StatusOr<Response> Ask(const std::string& endpoint,
                               const Method<Request, Response>& method) {
    return Begin(endpoint, method).get();
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

// What is missing, with the node it is missing from; nullopt: nothing.
struct Missing {
  const LocalNode* node;
  std::string what;
  v1::ErrorCode code = v1::REQUEST_TIMED_OUT;
};
using Check = std::function<std::optional<Missing>(Prober&)>;

absl::Status CheckProcesses(FileSystem& fs, const std::vector<const LocalNode*>& nodes) {
  for (const LocalNode* node : nodes) {
    if (StateOf(node->process) != ProcessState::kGone) continue;
    return MakeError(v1::NOT_READY,
                     absl::StrCat(node->name, " has ended: ", LocalCluster::LastWords(fs, *node),
                                  " (all that it said is in ", node->log_file, ")"));
  }
  return absl::OkStatus();
}

absl::Status WaitFor(FileSystem& fs, const std::vector<const LocalNode*>& nodes, const Check& check,
                     Duration timeout) {
  Prober prober;
  const MonotonicTime deadline = prober.Now() + timeout;
  for (;;) {
    const std::optional<Missing> missing = check(prober);
    // Last: whoever answered is of no use when the process has ended since.
    if (absl::Status alive = CheckProcesses(fs, nodes); !alive.ok()) return alive;
    if (!missing) return absl::OkStatus();
    if (prober.Now() >= deadline) {
      return MakeError(missing->code, absl::StrCat(missing->node->name, " ", missing->what,
                                                   ". The end of ", missing->node->log_file, ":\n",
                                                   LocalCluster::LogTail(fs, *missing->node)));
    }
    prober.Pause();
  }
}

std::string ClusterIdText(const std::string& bytes) {
  const auto id = ClusterId::FromBytes(bytes);
  return id ? id->ToString() : "";
}

std::string NotOurs(const LocalCluster& cluster, const LocalNode& node, const std::string& bytes) {
  return absl::StrCat("is not what answers at ", node.endpoint, ": that is a node of cluster ",
                      ClusterIdText(bytes), ", and the cluster in ", cluster.dir(), " is ",
                      cluster.cluster_id());
}

// The cluster as the active controller describes it, from the first controller that answers.
std::optional<Missing> AskControllers(const LocalCluster& cluster, Prober& prober,
                                      v1::DescribeClusterResponse& description) {
  const LocalNode* first = nullptr;
  for (const LocalNode& node : cluster.nodes()) {
    if (node.role != NodeRole::kController) continue;
    if (first == nullptr) first = &node;
    auto response = prober.Ask(node.endpoint, admin_methods::kDescribeCluster);
    if (!response.ok()) continue;
    if (ClusterIdText(response->cluster_id()) != cluster.cluster_id()) {
      return Missing{&node, NotOurs(cluster, node, response->cluster_id()),
                     v1::INCONSISTENT_CLUSTER_ID};
    }
    description = *std::move(response);
    return std::nullopt;
  }
  return Missing{first, "and the others have no leader yet"};
}

std::optional<Missing> WhatIsMissing(const LocalCluster& cluster,
                                     const std::vector<const LocalNode*>& nodes, Prober& prober) {
  v1::DescribeClusterResponse description;
  if (auto missing = AskControllers(cluster, prober, description)) return missing;
  for (const LocalNode* node : nodes) {
    if (node->role != NodeRole::kBroker) continue;
    bool active = false;
    for (const v1::BrokerDescription& broker : description.brokers()) {
      active |= broker.broker_id() == node->id && broker.state() == v1::BROKER_LIFECYCLE_ACTIVE &&
                broker.endpoint() == node->endpoint;
    }
    if (!active) return Missing{node, "is not active yet"};
  }
  return std::nullopt;
}

std::optional<Missing> DoesNotAnswer(const LocalNode& node, Prober& prober) {
  const auto answer = prober.Ask(node.endpoint, admin_methods::kDescribeQuorum);
  const v1::ErrorCode code = ErrorCodeOf(answer.status());
  if (code != v1::NETWORK_EXCEPTION && code != v1::REQUEST_TIMED_OUT) return std::nullopt;
  return Missing{&node, "does not answer"};
}

bool QuorumRuns(const LocalCluster& cluster) {
  size_t running = 0;
  for (const LocalNode* node : cluster.Running()) running += node->role == NodeRole::kController;
  return 2 * running > cluster.Endpoints(NodeRole::kController).size();
}

}  // namespace

absl::Status WaitUntilClusterIsReady(FileSystem& fs, const LocalCluster& cluster,
                                     Duration timeout) {
  std::vector<const LocalNode*> nodes;
  for (const LocalNode& node : cluster.nodes()) nodes.push_back(&node);
  return WaitFor(
      fs, nodes, [&](Prober& prober) { return WhatIsMissing(cluster, nodes, prober); }, timeout);
}

absl::Status WaitUntilNodesTakePart(FileSystem& fs, const LocalCluster& cluster,
                                    const std::vector<LocalNode*>& nodes, Duration timeout) {
  std::vector<const LocalNode*> all(nodes.begin(), nodes.end());
  std::vector<const LocalNode*> brokers;
  for (const LocalNode* node : all) {
    if (node->role == NodeRole::kBroker) brokers.push_back(node);
  }
  return WaitFor(
      fs, all,
      [&](Prober& prober) -> std::optional<Missing> {
        // Several controllers take part once there is a leader; a single one, whose disk may be a
        // new one, shows by itself that it answers.
        if (QuorumRuns(cluster) && (!brokers.empty() || all.size() > 1)) {
          if (auto missing = WhatIsMissing(cluster, brokers, prober)) return missing;
        }
        for (const LocalNode* node : all) {
          if (auto missing = DoesNotAnswer(*node, prober)) return missing;
        }
        return std::nullopt;
      },
      timeout);
}

absl::Status CheckClusterId(const LocalCluster& cluster,
                            const std::vector<const LocalNode*>& nodes) {
  Prober prober;
  std::vector<std::pair<const LocalNode*, std::future<absl::StatusOr<v1::GetMetadataResponse>>>>
      brokers;
  std::vector<std::pair<const LocalNode*, std::future<absl::StatusOr<v1::DescribeQuorumResponse>>>>
      controllers;
  for (const LocalNode* node : nodes) {
    // Each is asked what it can tell by itself.
    if (node->role == NodeRole::kBroker) {
      brokers.emplace_back(node, prober.Begin(node->endpoint, metadata_methods::kGetMetadata));
    } else {
      controllers.emplace_back(node, prober.Begin(node->endpoint, admin_methods::kDescribeQuorum));
    }
  }
  absl::Status status;
  const auto check = [&](auto& asked) {
    for (auto& [node, answer] : asked) {
      const auto response = answer.get();
      if (!response.ok() || ClusterIdText(response->cluster_id()) == cluster.cluster_id()) continue;
      status =
          MakeError(v1::INCONSISTENT_CLUSTER_ID,
                    absl::StrCat(node->name, " ", NotOurs(cluster, *node, response->cluster_id()),
                                 "; nothing was done. Name the cluster you mean with "
                                 "--bootstrap, or start the local one anew"));
    }
  };
  check(brokers);
  check(controllers);
  return status;
}

}  // namespace conclave::tools
