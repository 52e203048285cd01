#ifndef CONCLAVE_TOOLS_CLI_ADMIN_SESSION_H_
#define CONCLAVE_TOOLS_CLI_ADMIN_SESSION_H_

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/admin/admin_client.h"
#include "client/group/group_admin.h"
#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/transport/grpc_transport.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

// Where a command finds the cluster: --bootstrap, else CONCLAVE_BOOTSTRAP, else the nodes of the
// local cluster in ./.conclave that run. INVALID_REQUEST: none is named (the error says how).
// INVALID_CONFIG: what is named is no address. NETWORK_EXCEPTION: the local one is stopped.
// INCONSISTENT_CLUSTER_ID: another cluster answers in its place.
absl::StatusOr<std::vector<std::string>> FindBootstrap(const Globals& globals);
// Returns the exit code for an error of FindBootstrap.
int ReportNoBootstrap(const absl::Status& status);

// Admin clients with all they need, for a command that waits for each answer.
class AdminSession {
 public:
  AdminSession(std::vector<std::string> bootstrap, Duration timeout);
  ~AdminSession();

  template <class Request, class Response>
  absl::StatusOr<Response> Call(void (AdminClient::*method)(Request, AdminClient::Done<Response>),
                                Request request) {
    std::promise<absl::StatusOr<Response>> answer;
    ((*client_).*method)(std::move(request), [&answer](absl::StatusOr<Response> response) {
      answer.set_value(std::move(response));
    });
    return answer.get_future().get();
  }

  absl::StatusOr<v1::GroupDescription> DescribeGroup(const std::string& group);
  absl::StatusOr<v1::ListGroupsResponse> ListGroups();

 private:
  SystemClock clock_;
  ThreadExecutor executor_;
  std::unique_ptr<GrpcTransport> transport_;
  std::unique_ptr<AdminClient> client_;
  std::unique_ptr<GroupAdmin> groups_;
};

// Runs `use` with a session, or reports that there is none.
template <class Use>
int WithSession(const Globals& globals, Use use) {
  auto bootstrap = FindBootstrap(globals);
  if (!bootstrap.ok()) return ReportNoBootstrap(bootstrap.status());
  AdminSession session(*std::move(bootstrap), Duration::Seconds(globals.timeout_seconds));
  return use(session);
}

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_ADMIN_SESSION_H_
