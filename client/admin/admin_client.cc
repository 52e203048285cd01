#include "client/admin/admin_client.h"

#include <glog/logging.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/admin_methods.h"
#include "common/rpc/client.h"
#include "common/types/ids.h"

namespace conclave {
namespace {

constexpr Duration kFirstPause = Duration::Milliseconds(20);
constexpr Duration kLongestPause = Duration::Milliseconds(500);

// Whether sending the request once more is as good as having sent it once.
enum class Repeatable { kNo, kYes };

}  // namespace

class AdminClient::Impl : public std::enable_shared_from_this<AdminClient::Impl> {
 public:
  Impl(Options options, Transport& transport, Executor& executor, Random random)
      : options_(std::move(options)), transport_(transport), executor_(executor), random_(random) {
    CHECK(!options_.bootstrap.empty()) << "an admin client needs an endpoint to begin with";
  }

  template <class Request, class Response>
  void Begin(const Method<Request, Response>& method, Request request, Repeatable repeatable,
             Done<Response> done) {
    auto call = std::make_shared<Pending<Request, Response>>(
        Pending<Request, Response>{method, std::move(request), repeatable,
                                   executor_.clock().Now() + options_.timeout, std::move(done)});
    executor_.Post([self = shared_from_this(), call = std::move(call)]() mutable {
      self->Attempt(std::move(call));
    });
  }

  TopicId DrawTopicId() {
    std::lock_guard lock(random_mutex_);
    const uint64_t high = random_.Next();
    return TopicId::FromRandom(high, random_.Next());
  }

 private:
  template <class Request, class Response>
  struct Pending {
    Method<Request, Response> method;
    Request request;
    Repeatable repeatable;
    MonotonicTime deadline;
    Done<Response> done;
    int attempts = 0;
    Duration pause = kFirstPause;
    absl::Status last_error = {};
  };

  template <class Request, class Response>
  void Attempt(std::shared_ptr<Pending<Request, Response>> call) {
    const std::string& endpoint = options_.bootstrap[next_ % options_.bootstrap.size()];
    const MonotonicTime now = executor_.clock().Now();
    const CallOptions options{.deadline = std::min(call->deadline, now + options_.attempt_timeout)};
    ++call->attempts;
    CallMethod<Request, Response>(
        transport_, endpoint, call->method, call->request, options, executor_,
        [self = shared_from_this(), call](absl::StatusOr<Response> response) mutable {
          self->Answered(std::move(call), std::move(response));
        });
  }

  template <class Request, class Response>
  void Answered(std::shared_ptr<Pending<Request, Response>> call,
                absl::StatusOr<Response> response) {
    if (response.ok()) return call->done(std::move(response));
    const v1::ErrorCode code = ErrorCodeOf(response.status());
    const bool may_repeat = call->repeatable == Repeatable::kYes || HasNoEffect(code) ||
                            NeverArrived(response.status());
    const MonotonicTime retry_at = executor_.clock().Now() + call->pause;
    if (!IsRetriable(code) || !may_repeat || retry_at >= call->deadline) {
      return call->done(Final(response.status(), call->attempts));
    }
    ++next_;
    call->last_error = response.status();
    call->pause = std::min(call->pause * 2, kLongestPause);
    executor_.PostAt(
        retry_at, [self = shared_from_this(), call]() mutable { self->Attempt(std::move(call)); });
  }

  // gRPC's own UNAVAILABLE before a connection stood. The request has not left this process.
  static bool NeverArrived(const absl::Status& status) {
    const absl::string_view text = status.message();
    return absl::IsUnavailable(status) &&
           (text.find("failed to connect") != absl::string_view::npos ||
            text.find("connection refused") != absl::string_view::npos);
  }

  absl::Status Final(const absl::Status& status, int attempts) const {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
    if (ErrorCodeOf(status) != v1::NETWORK_EXCEPTION &&
        ErrorCodeOf(status) != v1::REQUEST_TIMED_OUT) {
      return status;
    }
    std::string endpoints;
    for (const std::string& e : options_.bootstrap) absl::StrAppend(&endpoints, " ", e);
    return MakeError(ErrorCodeOf(status),
                     absl::StrCat("no answer after ", attempts, attempts == 1 ? " try" : " tries",
                                  " of", endpoints, "; the last: ", std::string(status.message())));
  }

  const Options options_;
  Transport& transport_;
  Executor& executor_;
  std::mutex random_mutex_;
  Random random_;
  size_t next_ = 0;  // On the executor alone.
};

AdminClient::AdminClient(Options options, Transport& transport, Executor& executor, Random random)
    : impl_(std::make_shared<Impl>(std::move(options), transport, executor, random)) {}
AdminClient::~AdminClient() = default;

void AdminClient::CreateTopics(v1::CreateTopicsRequest request,
                               Done<v1::CreateTopicsResponse> done) {
  for (v1::NewTopic& topic : *request.mutable_topics()) {
    if (topic.topic_id().empty()) topic.set_topic_id(impl_->DrawTopicId().ToBytes());
  }
  impl_->Begin(admin_methods::kCreateTopics, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DeleteTopics(v1::DeleteTopicsRequest request,
                               Done<v1::DeleteTopicsResponse> done) {
  impl_->Begin(admin_methods::kDeleteTopics, std::move(request), Repeatable::kNo, std::move(done));
}

void AdminClient::DescribeTopics(v1::DescribeTopicsRequest request,
                                 Done<v1::DescribeTopicsResponse> done) {
  impl_->Begin(admin_methods::kDescribeTopics, std::move(request), Repeatable::kYes,
               std::move(done));
}

void AdminClient::AlterConfigs(v1::AlterConfigsRequest request,
                               Done<v1::AlterConfigsResponse> done) {
  // Setting a key to a value twice is setting it once.
  impl_->Begin(admin_methods::kAlterConfigs, std::move(request), Repeatable::kYes, std::move(done));
}

void AdminClient::DescribeQuorum(v1::DescribeQuorumRequest request,
                                 Done<v1::DescribeQuorumResponse> done) {
  impl_->Begin(admin_methods::kDescribeQuorum, std::move(request), Repeatable::kYes,
               std::move(done));
}

void AdminClient::DescribeCluster(v1::DescribeClusterRequest request,
                                  Done<v1::DescribeClusterResponse> done) {
  impl_->Begin(admin_methods::kDescribeCluster, std::move(request), Repeatable::kYes,
               std::move(done));
}

}  // namespace conclave
