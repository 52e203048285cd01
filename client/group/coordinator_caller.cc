#include "client/group/coordinator_caller.h"

#include <glog/logging.h>

#include "common/rpc/group_methods.h"

namespace conclave {

CoordinatorCaller::CoordinatorCaller(Options options, std::string group, Transport& transport,
                                     Executor& executor, const Random& random)
    : options_(std::move(options)),
      group_(std::move(group)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("coordinator caller")),
      metadata_({.bootstrap = options_.bootstrap}, transport, executor, random_, [] {}) {
  // Brokers that are not in the bootstrap list are asked too, should those be gone.
  metadata_.Refresh();
}

CoordinatorCaller::~CoordinatorCaller() { executor_.Cancel(timer_); }

void CoordinatorCaller::Find(MonotonicTime deadline, Done<std::string> done) {
  if (!coordinator_.empty()) return done(coordinator_);
  waiting_.push_back({deadline, std::move(done)});
  if (!std::exchange(asking_, true)) Ask();
}

void CoordinatorCaller::Ask() {
  v1::FindCoordinatorRequest request;
  request.set_group(group_);
  MonotonicTime last;
  for (const Waiting& waiting : waiting_) last = std::max(last, waiting.deadline);
  const std::string endpoint = metadata_.endpoint();
  CallMethod<v1::FindCoordinatorRequest, v1::FindCoordinatorResponse>(
      transport_, endpoint, group_methods::kFindCoordinator, request,
      {.deadline = std::min(last, executor_.clock().Now() + options_.attempt_timeout)}, executor_,
      lifetime_.Guard([this, endpoint](absl::StatusOr<v1::FindCoordinatorResponse> response) {
        Found(endpoint, std::move(response));
      }));
}

void CoordinatorCaller::Found(const std::string& asked,
                              absl::StatusOr<v1::FindCoordinatorResponse> response) {
  const bool final = response.ok() || !IsRetriable(response.status());
  if (response.ok()) {
    coordinator_ = response->endpoint();
    VLOG(1) << "group " << group_ << " is coordinated by broker " << response->broker_id() << " at "
            << coordinator_;
  } else {
    VLOG(1) << "the coordinator of group " << group_ << ", asked of " << asked << ": "
            << Describe(response.status());
    // Another broker may know more.
    metadata_.Failed(asked);
    metadata_.Refresh();
  }
  const MonotonicTime again = executor_.clock().Now() + pause_.Next(random_);
  std::vector<Waiting> over;
  std::vector<Waiting> waiting;
  for (Waiting& one : std::exchange(waiting_, {})) {
    (final || one.deadline <= again ? over : waiting).push_back(std::move(one));
  }
  waiting_ = std::move(waiting);
  asking_ = !waiting_.empty();
  if (asking_) {
    timer_ = executor_.PostAt(again, lifetime_.Guard([this] { Ask(); }));
  } else {
    pause_.Reset();
  }
  for (Waiting& one : over) {
    if (response.ok()) {
      one.done(response->endpoint());
    } else {
      one.done(response.status());
    }
  }
}

void CoordinatorCaller::Failed(const std::string& endpoint, const absl::Status& status) {
  if (endpoint != coordinator_) return;
  switch (ErrorCodeOf(status)) {
    case v1::COORDINATOR_LOAD_IN_PROGRESS:
    case v1::OVERLOADED:
      return;  // It is the one.
    case v1::NOT_COORDINATOR:
      coordinator_ = ErrorFromStatus(status).hint().endpoint();
      return;
    default:
      if (IsRetriable(status) || !HasNoEffect(ErrorCodeOf(status))) coordinator_.clear();
  }
}

}  // namespace conclave
