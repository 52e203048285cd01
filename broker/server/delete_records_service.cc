#include "broker/server/delete_records_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/partition_lookup.h"
#include "common/error/error.h"
#include "common/metadata/image.h"
#include "common/metadata/topic_name.h"
#include "common/rpc/admin_methods.h"
#include "common/types/time.h"

namespace conclave::broker {
namespace {

constexpr int32_t kDefaultTimeoutMs = 30'000;
constexpr int32_t kLongestTimeoutMs = 5 * 60 * 1000;
constexpr int kMostPartitions = 100'000;
// The client hears what went wrong before its own deadline cuts it off.
constexpr Duration kMargin = Duration::Milliseconds(50);
constexpr int64_t kHighWatermark = -1;

absl::Status CheckTopic(const MetadataImage& image, const Replica& replica) {
  const std::string& name = replica.identity().topic;
  if (IsInternalTopicName(name)) {
    return MakeError(v1::INVALID_TOPIC,
                     absl::StrCat("topic \"", name,
                                  "\" is the cluster's own: the brokers remove what they need no "
                                  "longer; nothing was deleted"));
  }
  const Topic* topic = image.FindTopic(replica.id().topic);
  const auto policy = topic->configs.find("cleanup.policy");
  if (policy != topic->configs.end() && policy->second == "compact") {
    return MakeError(
        v1::POLICY_VIOLATION,
        absl::StrCat("topic \"", name,
                     "\" is compacted (cleanup.policy=compact): its records are not deleted by "
                     "offset. Send null as the value of a key to delete that key, or let "
                     "cleanup.policy include delete"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Offset> TargetOf(const Replica& replica, int64_t asked) {
  const Offset high_watermark = replica.high_watermark();
  if (asked == kHighWatermark) {
    if (replica.leader()->IsHighWatermarkCurrent()) return high_watermark;
    return MakeError(v1::OFFSET_NOT_AVAILABLE,
                     absl::StrCat(replica.name(),
                                  ": the leader has just been elected and does not know yet what "
                                  "is committed; try again"));
  }
  if (asked >= 0 && Offset(asked) <= high_watermark) return Offset(asked);
  return MakeError(
      v1::OFFSET_OUT_OF_RANGE,
      absl::StrCat(replica.name(), ": records before offset ", asked,
                   " cannot be deleted: the high watermark is ", high_watermark.value(),
                   ", and the log begins at ", replica.log().log_start().value(),
                   "; name an offset up to the high watermark, or -1 for that one"));
}

}  // namespace

// Lives until it has answered.
class DeleteRecordsService::Request : public std::enable_shared_from_this<Request> {
 public:
  Request(DeleteRecordsService& service, v1::DeleteRecordsRequest request,
          Responder<v1::DeleteRecordsResponse> respond)
      : service_(service), request_(std::move(request)), respond_(std::move(respond)) {}

  void Run(MonotonicTime deadline) {
    waits_.resize(static_cast<size_t>(request_.partitions_size()));
    for (int i = 0; i < request_.partitions_size(); ++i) {
      const v1::DeleteRecordsPartition& asked = request_.partitions(i);
      v1::DeleteRecordsResult& result = *response_.add_partitions();
      result.set_topic(asked.topic());
      result.set_topic_id(asked.topic_id());
      result.set_partition(asked.partition());
      result.set_log_start_offset(-1);
      if (absl::Status begun = Begin(asked, i); !begun.ok()) {
        *result.mutable_error() = ErrorFromStatus(begun);
      }
    }
    if (waiting_ == 0) return Finish();
    const int32_t asked = request_.timeout_ms();
    timeout_ms_ = asked <= 0 ? kDefaultTimeoutMs : std::min(asked, kLongestTimeoutMs);
    const MonotonicTime now = service_.executor_.clock().Now();
    timer_ = service_.executor_.PostAt(
        std::min(now + Duration::Milliseconds(timeout_ms_), deadline - kMargin),
        [self = shared_from_this()] { self->TimeOut(); });
  }

 private:
  struct Wait {
    PartitionId id;
    Offset before;
    std::optional<Replica::RemovalId> removal;
  };

  absl::Status Begin(const v1::DeleteRecordsPartition& asked, int index) {
    const auto leader =
        FindLeader(service_.replicas_, {asked.topic(), asked.topic_id(), asked.partition()});
    if (!leader.ok()) return leader.status();
    Replica& replica = **leader;
    absl::Status good = CheckEpoch(
        replica, asked.has_leader_epoch() ? std::optional(asked.leader_epoch()) : std::nullopt);
    if (good.ok()) good = CheckTopic(service_.replicas_.image(), replica);
    if (!good.ok()) return good;
    const auto before = TargetOf(replica, asked.before_offset());
    if (!before.ok()) return before.status();
    ++waiting_;
    Wait& wait = waits_[static_cast<size_t>(index)];
    wait.id = replica.id();
    wait.before = *before;
    wait.removal = replica.RemoveRecords(
        *before, [self = shared_from_this(), index](const absl::Status& status) {
          self->Removed(index, status);
        });
    service_.replicas_.Touch(replica);
    return absl::OkStatus();
  }

  void Removed(int index, const absl::Status& status) {
    Wait& wait = waits_[static_cast<size_t>(index)];
    // Its time ran out after it was released and before it was told so.
    if (!wait.removal) return;
    wait.removal.reset();
    v1::DeleteRecordsResult& result = *response_.mutable_partitions(index);
    const Replica* replica = service_.replicas_.Find(wait.id);
    if (replica != nullptr) result.set_log_start_offset(replica->log().log_start().value());
    if (!status.ok()) *result.mutable_error() = ErrorFromStatus(status);
    if (--waiting_ == 0) Finish();
  }

  void TimeOut() {
    timer_.reset();
    for (size_t i = 0; i < waits_.size(); ++i) {
      Wait& wait = waits_[i];
      if (!wait.removal) continue;
      Replica* replica = service_.replicas_.Find(wait.id);
      if (replica != nullptr) replica->ForgetRemoval(*wait.removal);
      wait.removal.reset();
      v1::DeleteRecordsResult& result = *response_.mutable_partitions(static_cast<int>(i));
      if (replica != nullptr) result.set_log_start_offset(replica->log().log_start().value());
      *result.mutable_error() = ErrorFromStatus(TimedOut(replica, wait.before));
    }
    waiting_ = 0;
    Finish();
  }

  // Says who has not moved.
  absl::Status TimedOut(Replica* replica, Offset before) const {
    std::string why = "the partition is not on this broker any more";
    if (replica != nullptr && replica->leader() != nullptr) {
      if (replica->log().log_start() < before) {
        why = "its own log begins lower still: what is below is not synced yet";
      } else if (!replica->leader()->CheckAppendToAll().ok()) {
        why = absl::StrCat("the log begins at ", replica->log().log_start().value(),
                           " here, and the in-sync replicas are fewer than min.insync.replicas: "
                           "one that is out of sync may bring the records back when it leads");
      } else {
        why = absl::StrCat("the log begins at ", replica->log().log_start().value(),
                           " here, and in-sync replicas have not said so of theirs:");
        for (const BrokerId broker : replica->leader()->BehindLogStart(before)) {
          absl::StrAppend(&why, " broker ", broker.value());
        }
      }
    }
    return MakeError(v1::REQUEST_TIMED_OUT,
                     absl::StrCat("records before offset ", before.value(),
                                  " are not known to be deleted everywhere after ", timeout_ms_,
                                  " ms: ", why, ". Ask again, to wait on"));
  }

  void Finish() {
    if (timer_) service_.executor_.Cancel(*timer_);
    timer_.reset();
    respond_(std::move(response_));
  }

  DeleteRecordsService& service_;
  const v1::DeleteRecordsRequest request_;
  Responder<v1::DeleteRecordsResponse> respond_;
  v1::DeleteRecordsResponse response_;
  std::vector<Wait> waits_;
  int waiting_ = 0;
  int32_t timeout_ms_ = 0;
  std::optional<TimerId> timer_;
};

void DeleteRecordsService::AddMethods(MethodTable& table) {
  table.Unary<v1::DeleteRecordsRequest, v1::DeleteRecordsResponse>(
      admin_methods::kDeleteRecords, executor_,
      [this](v1::DeleteRecordsRequest request, CallContext context,
             Responder<v1::DeleteRecordsResponse> respond) {
        if (request.partitions_size() == 0 || request.partitions_size() > kMostPartitions) {
          return respond(MakeError(
              v1::INVALID_REQUEST,
              absl::StrCat("a deletion of records names 1 to ", kMostPartitions, " partitions")));
        }
        std::make_shared<Request>(*this, std::move(request), std::move(respond))
            ->Run(context.deadline);
      });
}

}  // namespace conclave::broker
