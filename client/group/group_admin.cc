#include "client/group/group_admin.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/base/backoff.h"
#include "common/error/error.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/rpc/group_methods.h"

namespace conclave {

struct GroupAdmin::Listing {
  MonotonicTime deadline;
  Done<v1::ListGroupsResponse> done;
  Backoff pause{Duration::Milliseconds(50), Duration::Milliseconds(500)};
  // Of this attempt.
  int open = 0;
  absl::Status failed;
  std::map<std::string, v1::GroupListing> groups;
};

GroupAdmin::GroupAdmin(Options options, Transport& transport, Executor& executor,
                       const Random& random)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("group admin")),
      cluster_(transport, executor, options_.bootstrap,
               {.attempt_timeout = options_.attempt_timeout}) {}

void GroupAdmin::Describe(std::string group, Done<v1::GroupDescription> done) {
  const MonotonicTime deadline = executor_.clock().Now() + options_.timeout;
  executor_.Post(
      lifetime_.Guard([this, group = std::move(group), deadline, done = std::move(done)]() mutable {
        std::unique_ptr<CoordinatorCaller>& caller = callers_[group];
        if (caller == nullptr) {
          caller = std::make_unique<CoordinatorCaller>(
              CoordinatorCaller::Options{.bootstrap = options_.bootstrap,
                                         .attempt_timeout = options_.attempt_timeout},
              group, transport_, executor_, random_);
        }
        v1::DescribeGroupsRequest request;
        request.add_groups(group);
        caller->Call<v1::DescribeGroupsRequest, v1::DescribeGroupsResponse>(
            group_methods::kDescribeGroups, std::move(request), deadline,
            [](const v1::DescribeGroupsResponse& response) {
              if (response.groups_size() == 1) return StatusFromError(response.groups(0).error());
              return MakeError(v1::UNKNOWN_SERVER_ERROR,
                               absl::StrCat("the coordinator described ", response.groups_size(),
                                            " groups, and not the one it was asked for"));
            },
            [done = std::move(done)](absl::StatusOr<v1::DescribeGroupsResponse> response) mutable {
              if (!response.ok()) return done(response.status());
              done(std::move(*response->mutable_groups(0)));
            });
      }));
}

void GroupAdmin::List(Done<v1::ListGroupsResponse> done) {
  auto listing = std::make_shared<Listing>();
  listing->deadline = executor_.clock().Now() + options_.timeout;
  listing->done = std::move(done);
  executor_.Post(lifetime_.Guard(
      [this, listing = std::move(listing)]() mutable { TryListing(std::move(listing)); }));
}

void GroupAdmin::TryListing(std::shared_ptr<Listing> listing) {
  listing->failed = absl::OkStatus();
  listing->groups.clear();
  const MonotonicTime deadline = listing->deadline;
  cluster_.Call<v1::DescribeClusterRequest, v1::DescribeClusterResponse>(
      admin_methods::kDescribeCluster, {}, Repeatable::kYes, deadline,
      lifetime_.Guard([this, listing = std::move(listing)](
                          absl::StatusOr<v1::DescribeClusterResponse> cluster) mutable {
        if (!cluster.ok()) return listing->done(cluster.status());
        ListAt(std::move(listing), *cluster);
      }));
}

void GroupAdmin::ListAt(std::shared_ptr<Listing> listing,
                        const v1::DescribeClusterResponse& cluster) {
  listing->open = 1;
  const MonotonicTime until =
      std::min(listing->deadline, executor_.clock().Now() + options_.attempt_timeout);
  for (const v1::BrokerDescription& broker : cluster.brokers()) {
    // One that is fenced leads nothing, and so coordinates nothing.
    if (broker.state() == v1::BROKER_LIFECYCLE_FENCED) continue;
    ++listing->open;
    CallMethod<v1::ListGroupsRequest, v1::ListGroupsResponse>(
        transport_, broker.endpoint(), group_methods::kListGroups, {}, {.deadline = until},
        executor_,
        lifetime_.Guard([this, listing, id = broker.broker_id()](
                            const absl::StatusOr<v1::ListGroupsResponse>& response) {
          if (response.ok()) {
            for (const v1::GroupListing& group : response->groups()) {
              listing->groups[group.group()] = group;
            }
          } else {
            listing->failed = MakeError(
                ErrorCodeOf(response.status()),
                absl::StrCat("broker ", id, " does not tell which groups it coordinates: ",
                             std::string(response.status().message())));
          }
          Listed(listing);
        }));
  }
  Listed(std::move(listing));
}

void GroupAdmin::Listed(std::shared_ptr<Listing> listing) {
  if (--listing->open > 0) return;
  if (listing->failed.ok()) {
    v1::ListGroupsResponse response;
    for (auto& [name, group] : listing->groups) *response.add_groups() = std::move(group);
    return listing->done(std::move(response));
  }
  // Meanwhile another may lead what it led.
  const MonotonicTime again = executor_.clock().Now() + listing->pause.Next(random_);
  if (!IsRetriable(listing->failed) || again >= listing->deadline) {
    return listing->done(listing->failed);
  }
  executor_.PostAt(again, lifetime_.Guard([this, listing = std::move(listing)]() mutable {
    TryListing(std::move(listing));
  }));
}

}  // namespace conclave
