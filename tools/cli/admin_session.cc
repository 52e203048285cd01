#include "tools/cli/admin_session.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/config/endpoint.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/random/entropy.h"
#include "tools/cluster/local_cluster.h"

namespace conclave::tools {

absl::StatusOr<std::vector<std::string>> FindBootstrap(const Globals& globals) {
  std::string text = globals.bootstrap;
  if (text.empty()) {
    if (const char* variable = std::getenv("CONCLAVE_BOOTSTRAP")) text = variable;
  }
  if (text.empty()) {
    PosixFileSystem fs;
    const auto local = LocalCluster::Load(fs, ".conclave");
    if (local.ok()) text = local->Bootstrap();
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
