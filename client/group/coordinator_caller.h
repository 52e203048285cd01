#ifndef CONCLAVE_CLIENT_GROUP_COORDINATOR_CALLER_H_
#define CONCLAVE_CLIENT_GROUP_COORDINATOR_CALLER_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/metadata/metadata_cache.h"
#include "common/error/error.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/client.h"
#include "common/rpc/method.h"
#include "common/transport/transport.h"
#include "common/types/time.h"
#include "conclave/v1/group.pb.h"

namespace conclave {

// Finds the coordinator of one group, which any broker names, and makes calls there. Where it has
// moved, is loading or cannot be reached, it is looked for again; a refusal that names it
// (NOT_COORDINATOR with a hint) is followed.
//
// Everything runs on the executor, on which it is also destroyed (or after that has stopped), not
// from within its callbacks. Transport and executor outlive it.
class CoordinatorCaller {
 public:
  template <class Response>
  using Done = absl::AnyInvocable<void(absl::StatusOr<Response>)>;
  // A response that says of itself that it is to be asked for again: a retriable error.
  template <class Response>
  using Check = absl::AnyInvocable<absl::Status(const Response&)>;

  struct Options {
    // host:port of brokers; at least one. The others are learnt.
    std::vector<std::string> bootstrap;
    // How long one broker is given to answer.
    Duration attempt_timeout = Duration::Seconds(5);
  };

  CoordinatorCaller(Options options, std::string group, Transport& transport, Executor& executor,
                    const Random& random);
  ~CoordinatorCaller();

  const std::string& group() const { return group_; }

  // Where the coordinator is, host:port; at once if it is known. An error is final, or the last one
  // before the deadline, which is kept to about a second.
  void Find(MonotonicTime deadline, Done<std::string> done);
  // What came of speaking to `endpoint` as the coordinator. The caller makes a pause.
  void Failed(const std::string& endpoint, const absl::Status& status);

  // Asks the coordinator until it answers, or with an error that is final, or until the deadline.
  // The request may take effect more than once. `check` may be null.
  template <class Request, class Response>
  void Call(const Method<Request, Response>& method, Request request, MonotonicTime deadline,
            Check<Response> check, Done<Response> done) {
    Attempt(std::make_shared<Pending<Request, Response>>(Pending<Request, Response>{
        method, std::move(request), deadline, std::move(check), std::move(done)}));
  }

 private:
  template <class Request, class Response>
  struct Pending {
    Method<Request, Response> method;
    Request request;
    MonotonicTime deadline;
    Check<Response> check;
    Done<Response> done;
    Backoff pause{Duration::Milliseconds(20), Duration::Milliseconds(500)};
  };
  struct Waiting {
    MonotonicTime deadline;
    Done<std::string> done;
  };

  template <class Request, class Response>
  void Attempt(std::shared_ptr<Pending<Request, Response>> call) {
    Find(call->deadline, lifetime_.Guard([this, call](absl::StatusOr<std::string> endpoint) {
      if (!endpoint.ok()) return call->done(endpoint.status());
      const MonotonicTime until =
          std::min(call->deadline, executor_.clock().Now() + options_.attempt_timeout);
      CallMethod<Request, Response>(
          transport_, *endpoint, call->method, call->request, {.deadline = until}, executor_,
          lifetime_.Guard([this, call, to = *endpoint](absl::StatusOr<Response> response) {
            Answered(call, to, std::move(response));
          }));
    }));
  }

  template <class Request, class Response>
  void Answered(std::shared_ptr<Pending<Request, Response>> call, const std::string& endpoint,
                absl::StatusOr<Response> response) {
    absl::Status status = response.status();
    if (status.ok() && call->check) status = call->check(*response);
    if (status.ok()) return call->done(std::move(response));
    Failed(endpoint, status);
    const MonotonicTime again = executor_.clock().Now() + call->pause.Next(random_);
    if (!IsRetriable(status) || again >= call->deadline) return call->done(std::move(status));
    executor_.PostAt(again, lifetime_.Guard([this, call] { Attempt(call); }));
  }

  void Ask();
  void Found(const std::string& asked, absl::StatusOr<v1::FindCoordinatorResponse> response);

  const Options options_;
  const std::string group_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  MetadataCache metadata_;
  // Empty: not known.
  std::string coordinator_;
  std::vector<Waiting> waiting_;
  bool asking_ = false;
  TimerId timer_;
  Backoff pause_{Duration::Milliseconds(20), Duration::Milliseconds(500)};
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_GROUP_COORDINATOR_CALLER_H_
