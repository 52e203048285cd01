#include "common/rpc/failover_caller.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace conclave {

EndpointChooser::EndpointChooser(std::vector<std::string> endpoints)
    : endpoints_(std::move(endpoints)) {
  CHECK(!endpoints_.empty()) << "an endpoint is needed to begin with";
  current_ = endpoints_[0];
}

void EndpointChooser::Failed(const std::string& endpoint, const absl::Status& status) {
  // Another call has moved on from it already.
  if (endpoint != current_) return;
  const std::string hint = ErrorFromStatus(status).hint().endpoint();
  if (!hint.empty() && hint != endpoint) {
    current_ = hint;
    return;
  }
  next_ = (next_ + 1) % endpoints_.size();
  current_ = endpoints_[next_];
}

bool NeverArrived(const absl::Status& status) {
  const std::string text(status.message());
  return absl::IsUnavailable(status) && (text.find("failed to connect") != std::string::npos ||
                                         text.find("onnection refused") != std::string::npos);
}

bool MayGoBetterElsewhere(const absl::Status& status) {
  return IsRetriable(status) && ErrorCodeOf(status) != v1::UNKNOWN_TOPIC_OR_PARTITION;
}

bool FailoverCaller::IsSilence(const absl::Status& status) {
  const v1::ErrorCode code = ErrorCodeOf(status);
  return code == v1::NETWORK_EXCEPTION || code == v1::REQUEST_TIMED_OUT;
}

absl::Status FailoverCaller::GivenUp(const absl::Status& status, const absl::Status& answer,
                                     int attempts, const std::vector<std::string>& endpoints) {
  if (!IsSilence(status)) return status;
  return MakeError(
      ErrorCodeOf(status),
      absl::StrCat("no answer after ", attempts, attempts == 1 ? " try" : " tries", " (",
                   absl::StrJoin(endpoints, ", "), "); the last: ", std::string(status.message()),
                   answer.ok() ? "" : absl::StrCat("; before it: ", Describe(answer))));
}

}  // namespace conclave
