#ifndef CONCLAVE_COMMON_RPC_FAILOVER_CALLER_H_
#define CONCLAVE_COMMON_RPC_FAILOVER_CALLER_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/method.h"
#include "common/transport/transport.h"

namespace conclave {

// Which of several endpoints to ask next. Answers that name the right one (NOT_CONTROLLER and the
// like, with a hint) are followed; an endpoint that fails gives way to the next. Not thread-safe.
class EndpointChooser {
 public:
  // At least one.
  explicit EndpointChooser(std::vector<std::string> endpoints);

  const std::string& current() const { return current_; }
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  // What came of asking `endpoint`, which may be current() no more.
  void Failed(const std::string& endpoint, const absl::Status& status);

 private:
  const std::vector<std::string> endpoints_;
  size_t next_ = 0;
  std::string current_;
};

// Whether sending a request once more is as good as having sent it once.
enum class Repeatable { kNo, kYes };

// Whether the request surely did not leave this process, for no connection stood.
bool NeverArrived(const absl::Status& status);

// Whether the error is of the node or the way to it, and passes. What is said of the request itself
// is an answer, though some of that passes, too: a topic that is missing may be made yet.
bool MayGoBetterElsewhere(const absl::Status& status);

// Makes unary calls to whichever of several endpoints will answer, until a deadline. A call is
// repeated, after a growing pause, where it may go better elsewhere and either the request is
// Repeatable or the attempt certainly had no effect. Everything happens on the executor; transport
// and executor outlive the calls.
class FailoverCaller {
 public:
  struct Options {
    // How long one endpoint is given to answer, of the whole time.
    Duration attempt_timeout = Duration::Seconds(10);
  };

  FailoverCaller(Transport& transport, Executor& executor, std::vector<std::string> endpoints,
                 Options options)
      : shared_(std::make_shared<Shared>(Shared{transport, executor, std::move(options),
                                                EndpointChooser(std::move(endpoints))})) {}

  template <class Response>
  using Done = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

  // May be called from any thread. `done` is called once, unless the executor stops first.
  template <class Request, class Response>
  void Call(const Method<Request, Response>& method, Request request, Repeatable repeatable,
            MonotonicTime deadline, Done<Response> done) {
    auto call = std::make_shared<Pending<Request, Response>>(Pending<Request, Response>{
        method, std::move(request), repeatable, deadline, std::move(done)});
    shared_->executor.Post([shared = shared_, call = std::move(call)]() mutable {
      Attempt(std::move(shared), std::move(call));
    });
  }

 private:
  struct Shared {
    Transport& transport;
    Executor& executor;
    const Options options;
    EndpointChooser chooser;
  };

  template <class Request, class Response>
  struct Pending {
    Method<Request, Response> method;
    Request request;
    Repeatable repeatable;
    MonotonicTime deadline;
    Done<Response> done;
    int attempts = 0;
    // What a node said last, beside those that said nothing.
    absl::Status answer = {};
    Duration pause = Duration::Milliseconds(20);
  };

  template <class Request, class Response>
  static void Attempt(std::shared_ptr<Shared> shared,
                      std::shared_ptr<Pending<Request, Response>> call) {
    const MonotonicTime now = shared->executor.clock().Now();
    const CallOptions options{.deadline =
                                  std::min(call->deadline, now + shared->options.attempt_timeout)};
    ++call->attempts;
    const std::string endpoint = shared->chooser.current();
    CallMethod<Request, Response>(
        shared->transport, endpoint, call->method, call->request, options, shared->executor,
        [shared, call, endpoint](absl::StatusOr<Response> response) mutable {
          Answered(std::move(shared), std::move(call), endpoint, std::move(response));
        });
  }

  template <class Request, class Response>
  static void Answered(std::shared_ptr<Shared> shared,
                       std::shared_ptr<Pending<Request, Response>> call,
                       const std::string& endpoint, absl::StatusOr<Response> response) {
    if (response.ok()) return call->done(std::move(response));
    const absl::Status& status = response.status();
    const bool elsewhere = MayGoBetterElsewhere(status);
    if (elsewhere) shared->chooser.Failed(endpoint, status);
    if (!IsSilence(status)) call->answer = status;
    const bool may_repeat = call->repeatable == Repeatable::kYes ||
                            HasNoEffect(ErrorCodeOf(status)) || NeverArrived(status);
    const MonotonicTime retry_at = shared->executor.clock().Now() + call->pause;
    if (!elsewhere || !may_repeat || retry_at >= call->deadline) {
      return call->done(GivenUp(status, call->answer, call->attempts, shared->chooser.endpoints()));
    }
    call->pause = std::min(call->pause * 2, Duration::Milliseconds(500));
    shared->executor.PostAt(
        retry_at, [shared, call]() mutable { Attempt(std::move(shared), std::move(call)); });
  }

  // Whether nobody has said anything.
  static bool IsSilence(const absl::Status& status);
  // The last error, with where it was tried and what was said before if nobody answered in the end.
  static absl::Status GivenUp(const absl::Status& status, const absl::Status& answer, int attempts,
                              const std::vector<std::string>& endpoints);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RPC_FAILOVER_CALLER_H_
