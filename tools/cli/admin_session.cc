#include "tools/cli/admin_session.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/config/endpoint.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/random/entropy.h"
#include "tools/cluster/local_cluster.h"
#include "tools/cluster/readiness.h"

namespace conclave::tools {
namespace {

constexpr char kLocalDir[] = ".conclave";

// Of the nodes that run, once they are known to be the local cluster's. Empty: there is none.
absl::StatusOr<std::string> FindLocalBootstrap() {
  PosixFileSystem fs;
  const auto cluster = LocalCluster::Load(fs, kLocalDir);
  if (absl::IsNotFound(cluster.status())) return "";
  if (!cluster.ok()) return cluster.status();
  const std::vector<const LocalNode*> running = cluster->Running();
  if (running.empty()) {
    return MakeError(v1::NETWORK_EXCEPTION,
                     absl::StrCat("the local cluster in ./", kLocalDir,
                                  " is stopped; start it with 'conclave cluster start', or name "
                                  "another cluster with --bootstrap"));
  }
  // Another process may have a port of a node that has only just begun.
  if (absl::Status ours = CheckClusterId(*cluster, running); !ours.ok()) return ours;
  std::string text;
  for (const NodeRole role : {NodeRole::kBroker, NodeRole::kController}) {
    for (const LocalNode* node : running) {
      if (node->role == role) absl::StrAppend(&text, text.empty() ? "" : ",", node->endpoint);
    }
    // Brokers serve data too, so controllers are asked only where there are none.
    if (!text.empty()) break;
  }
  return text;
}

}  // namespace

int ReportNoBootstrap(const absl::Status& status) {
  const int code = Report(status);
  switch (ErrorCodeOf(status)) {
    case v1::INVALID_REQUEST:
    case v1::INVALID_CONFIG:
      return kWrongUsage;
    default:
      return code;
  }
}

absl::StatusOr<std::vector<std::string>> FindBootstrap(const Globals& globals) {
  std::string text = globals.bootstrap;
  if (text.empty()) {
    if (const char* variable = std::getenv("CONCLAVE_BOOTSTRAP")) text = variable;
  }
  if (text.empty()) {
    auto local = FindLocalBootstrap();
    if (!local.ok()) return local.status();
    text = *std::move(local);
  }
  if (text.empty()) {
    return MakeError(
        v1::INVALID_REQUEST,
        "which cluster? Name one of its nodes with --bootstrap host:port, or in "
        "CONCLAVE_BOOTSTRAP; 'conclave cluster start' makes a local one in ./.conclave");
  }
  const auto endpoints = ParseEndpointList(text);
  if (!endpoints.ok()) return endpoints.status();
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : *endpoints) texts.push_back(ToString(endpoint));
  return texts;
}

AdminSession::AdminSession(std::vector<std::string> bootstrap, Duration timeout)
    : executor_(clock_, {.name = "admin"}), transport_(std::make_unique<GrpcTransport>()) {
  client_ = std::make_unique<AdminClient>(
      AdminClient::Options{.bootstrap = bootstrap, .timeout = timeout}, *transport_, executor_,
      Random(EntropySeed()));
  groups_ = std::make_unique<GroupAdmin>(
      GroupAdmin::Options{.bootstrap = std::move(bootstrap), .timeout = timeout}, *transport_,
      executor_, Random(EntropySeed()));
}

absl::StatusOr<v1::GroupDescription> AdminSession::DescribeGroup(const std::string& group) {
  std::promise<absl::StatusOr<v1::GroupDescription>> answer;
  groups_->Describe(group, [&answer](absl::StatusOr<v1::GroupDescription> response) {
    answer.set_value(std::move(response));
  });
  return answer.get_future().get();
}

absl::StatusOr<v1::ListGroupsResponse> AdminSession::ListGroups() {
  std::promise<absl::StatusOr<v1::ListGroupsResponse>> answer;
  groups_->List([&answer](absl::StatusOr<v1::ListGroupsResponse> response) {
    answer.set_value(std::move(response));
  });
  return answer.get_future().get();
}

AdminSession::~AdminSession() {
  // Executors outlive the transport, which waits for gRPC to let go.
  transport_.reset();
  executor_.Stop();
}

}  // namespace conclave::tools
