#ifndef CONCLAVE_CLIENT_GROUP_GROUP_ADMIN_H_
#define CONCLAVE_CLIENT_GROUP_GROUP_ADMIN_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "client/base/lifetime.h"
#include "client/group/coordinator_caller.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/failover_caller.h"
#include "common/transport/transport.h"
#include "common/types/time.h"
#include "conclave/v1/admin.pb.h"
#include "conclave/v1/group.pb.h"

namespace conclave {

// Looks at consumer groups: one at its coordinator, all of them at all brokers.
//
// Requests may be made from any thread; `done` is called on the executor, once, unless that stops
// first. Destroyed on the executor, or after that has stopped. Transport and executor outlive it.
class GroupAdmin {
 public:
  struct Options {
    // host:port of brokers; at least one.
    std::vector<std::string> bootstrap;
    // How long a request is tried for, all attempts together.
    Duration timeout = Duration::Seconds(30);
    // How long one broker is given to answer.
    Duration attempt_timeout = Duration::Seconds(5);
  };

  template <class Response>
  using Done = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

  GroupAdmin(Options options, Transport& transport, Executor& executor, const Random& random);

  // GROUP_ID_NOT_FOUND: there is no such group. An error that is retriable is the last one before
  // the time was over.
  void Describe(std::string group, Done<v1::GroupDescription> done);

  // The groups of all brokers that are active, by name. An error where one of them does not answer:
  // a list that lacks some would pass for a whole one.
  void List(Done<v1::ListGroupsResponse> done);

 private:
  struct Listing;

  void TryListing(std::shared_ptr<Listing> listing);
  void ListAt(std::shared_ptr<Listing> listing, const v1::DescribeClusterResponse& cluster);
  void Listed(std::shared_ptr<Listing> listing);

  const Options options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  FailoverCaller cluster_;
  // By group.
  std::map<std::string, std::unique_ptr<CoordinatorCaller>> callers_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_GROUP_GROUP_ADMIN_H_
