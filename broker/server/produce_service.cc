#include "broker/server/produce_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/partition_lookup.h"
#include "common/error/error.h"
#include "common/metadata/topic_name.h"
#include "common/record/batch_check.h"
#include "common/record/record_conversion.h"

namespace conclave::broker {

using produce_methods::ProduceRequest;

namespace {

constexpr int32_t kDefaultTimeoutMs = 30000;
// Requests of one stream that wait for replicas before no more are read from it.
constexpr int kMaxUnanswered = 256;

}  // namespace

// One request until its answer: the partitions still without a result wait for their commits.
class ProduceService::Request : public std::enable_shared_from_this<Request> {
 public:
  Request(ProduceService& service, ProduceRequest request, Answer answer)
      : service_(service),
        request_(std::move(request.message)),
        batches_(std::move(request.payloads)),
        answer_(std::move(answer)) {
    response_.set_correlation_id(request_.correlation_id());
  }

  void Run() {
    waits_.resize(static_cast<size_t>(request_.partitions_size()));
    for (const v1::ProducePartition& partition : request_.partitions()) {
      v1::ProducePartitionResult* result = response_.add_partitions();
      result->set_topic(partition.topic());
      result->set_topic_id(partition.topic_id());
      result->set_partition(partition.partition());
      result->set_base_offset(-1);
      const int index = response_.partitions_size() - 1;
      if (absl::Status status = ProduceOne(partition, index); !status.ok()) {
        *response_.mutable_partitions(index)->mutable_error() = ErrorFromStatus(status);
      }
    }
    request_.mutable_partitions()->Clear();
    batches_.clear();
    if (waiting_ == 0) return Finish();
    const int32_t timeout = request_.timeout_ms() > 0 ? request_.timeout_ms() : kDefaultTimeoutMs;
    timer_ = service_.executor_.PostAfter(
        Duration::Milliseconds(timeout),
        [self = shared_from_this(), timeout] { self->TimeOut(timeout); });
  }

 private:
  struct Wait {
    PartitionId id;
    std::optional<replication::AppendId> append;
    Offset base_offset;
  };

  absl::Status ProduceOne(const v1::ProducePartition& partition, int index) {
    v1::ProducePartitionResult& result = *response_.mutable_partitions(index);
    const auto leader = FindLeader(
        service_.replicas_, {partition.topic(), partition.topic_id(), partition.partition()});
    if (!leader.ok()) return leader.status();
    Replica& replica = **leader;
    if (IsInternalTopicName(replica.identity().topic)) {
      return MakeError(v1::INVALID_TOPIC,
                       absl::StrCat("topic \"", replica.identity().topic,
                                    "\" is written by the brokers alone; choose a name that does "
                                    "not begin with ",
                                    std::string(kInternalTopicPrefix)));
    }
    result.set_log_start_offset(replica.log().log_start().value());
    const WallTime now = service_.executor_.clock().WallNow();
    auto batch = BatchOf(partition, std::move(batches_[static_cast<size_t>(index)]), now);
    if (!batch.ok()) return batch.status();
    if (!v1::Acks_IsValid(request_.acks())) {
      return MakeError(v1::INVALID_REQUIRED_ACKS,
                       absl::StrCat("acks ", static_cast<int>(request_.acks()),
                                    " is not known; ask for all, 1 (the leader) or 0 (nobody)"));
    }
    const TopicConfig& config = replica.config();
    const auto header =
        CheckProduced(*batch, {.max_batch_bytes = static_cast<size_t>(config.max_message_bytes),
                               .now = now,
                               .timestamp_after_max = config.timestamp_after_max,
                               .timestamp_before_max = config.timestamp_before_max});
    if (!header.ok()) return header.status();
    const bool all = request_.acks() == v1::ACKS_ALL;
    const Classification known = replica.log().Classify(*header);
    if (!known.status.ok()) return known.status;
    if (known.kind == Classification::Kind::kDuplicate) {
      result.set_duplicate(true);
      Appended(replica, index, known.duplicate_of, known.duplicate_last + 1);
      return absl::OkStatus();
    }
    if (all) {
      if (absl::Status enough = replica.leader()->CheckAppendToAll(); !enough.ok()) return enough;
    }
    const auto appended = replica.Append(*batch, *header);
    // A new segment may have begun all the same.
    service_.replicas_.Touch(replica);
    if (!appended.ok()) return appended.status();
    Appended(replica, index, appended->base_offset, appended->next_offset);
    return absl::OkStatus();
  }

  static absl::StatusOr<Buffer> BatchOf(const v1::ProducePartition& partition, Buffer batch,
                                        WallTime now) {
    if (!batch.empty() && partition.records_size() > 0) {
      return MakeError(v1::INVALID_REQUEST, "a partition takes a batch or records, not both");
    }
    if (!batch.empty()) return batch;
    return BatchFromRecords(partition.records(), now);
  }

  // The batch is in the log; answered now, or once it is committed.
  void Appended(Replica& replica, int index, Offset base, Offset end) {
    if (request_.acks() == v1::ACKS_NONE) return;
    if (request_.acks() == v1::ACKS_LEADER) {
      response_.mutable_partitions(index)->set_base_offset(base.value());
      return;
    }
    ++waiting_;
    Wait& wait = waits_[static_cast<size_t>(index)];
    wait.id = replica.id();
    wait.base_offset = base;
    wait.append =
        replica.AwaitCommit(end, [self = shared_from_this(), index](const absl::Status& status) {
          self->Committed(index, status);
        });
    // What is committed already, as most repeats are, waits for the next settling all the same.
    service_.replicas_.Touch(replica);
  }

  void Committed(int index, const absl::Status& status) {
    // Its time ran out after it was released and before it was told so.
    if (answer_ == nullptr) return;
    Wait& wait = waits_[static_cast<size_t>(index)];
    wait.append.reset();
    v1::ProducePartitionResult& result = *response_.mutable_partitions(index);
    if (status.ok()) {
      result.set_base_offset(wait.base_offset.value());
    } else {
      *result.mutable_error() = ErrorFromStatus(status);
    }
    if (--waiting_ == 0) Finish();
  }

  void TimeOut(int32_t timeout_ms) {
    timer_.reset();
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (!waits_[i].append) continue;
      if (Replica* replica = service_.replicas_.Find(waits_[i].id)) {
        replica->Forget(*waits_[i].append);
      }
      waits_[i].append.reset();
      *response_.mutable_partitions(static_cast<int>(i))->mutable_error() =
          ErrorFromStatus(MakeError(
              v1::REQUEST_TIMED_OUT,
              absl::StrCat("the records are in the leader's log, but were not on enough in-sync "
                           "replicas within ",
                           timeout_ms,
                           " ms; they may be committed yet. An idempotent producer may send them "
                           "again")));
    }
    waiting_ = 0;
    Finish();
  }

  void Finish() {
    if (timer_) service_.executor_.Cancel(*timer_);
    timer_.reset();
    std::exchange(answer_, nullptr)(std::move(response_));
  }

  ProduceService& service_;
  v1::ProduceRequest request_;
  // Of its partitions, until they are in the log.
  std::vector<Buffer> batches_;
  Answer answer_;
  v1::ProduceResponse response_;
  std::vector<Wait> waits_;
  int waiting_ = 0;
  std::optional<TimerId> timer_;
};

// A client's stream of requests.
class ProduceService::Link : public MessageHandler<ProduceRequest>,
                             public std::enable_shared_from_this<Link> {
 public:
  using Stream = TypedServerStream<ProduceRequest, v1::ProduceResponse>;

  Link(ProduceService& service, uint64_t number, std::unique_ptr<Stream> stream)
      : service_(service), number_(number), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(ProduceRequest request) override {
    const bool silent = request.message.acks() == v1::ACKS_NONE;
    if (++unanswered_ == kMaxUnanswered) stream_->SetReading(false);
    service_.Produce(std::move(request),
                     [link = weak_from_this(), silent](const v1::ProduceResponse& response) {
                       if (const auto alive = link.lock()) alive->Answered(response, silent);
                     });
  }

  void OnHalfClose() override {
    half_closed_ = true;
    if (unanswered_ == 0) stream_->Finish(absl::OkStatus());
  }

  // Destroys this.
  void OnClosed(absl::Status) override {
    closed_ = true;
    service_.links_.erase(number_);
  }

 private:
  void Answered(const v1::ProduceResponse& response, bool silent) {
    if (closed_) return;
    if (unanswered_-- == kMaxUnanswered) stream_->SetReading(true);
    if (!silent) stream_->Send(response);
    if (half_closed_ && unanswered_ == 0) stream_->Finish(absl::OkStatus());
  }

  ProduceService& service_;
  const uint64_t number_;
  const std::unique_ptr<Stream> stream_;
  int unanswered_ = 0;
  bool half_closed_ = false;
  bool closed_ = false;
};

ProduceService::ProduceService(ReplicaSet& replicas, ProducerIds& producer_ids, Executor& executor)
    : replicas_(replicas), producer_ids_(producer_ids), executor_(executor) {}

ProduceService::~ProduceService() = default;

void ProduceService::Produce(ProduceRequest request, Answer answer) {
  std::make_shared<Request>(*this, std::move(request), std::move(answer))->Run();
}

void ProduceService::AddMethods(MethodTable& table) {
  table.Unary<ProduceRequest, v1::ProduceResponse>(
      produce_methods::kProduceWithPayloads, executor_,
      [this](ProduceRequest request, CallContext, Responder<v1::ProduceResponse> respond) {
        auto shared = std::make_shared<Responder<v1::ProduceResponse>>(std::move(respond));
        Produce(std::move(request),
                [shared](v1::ProduceResponse response) { (*shared)(std::move(response)); });
      });
  table.Stream<ProduceRequest, v1::ProduceResponse>(
      produce_methods::kProduceStreamWithPayloads, executor_,
      [this](std::unique_ptr<Link::Stream> stream) {
        const uint64_t number = ++last_link_;
        auto link = std::make_shared<Link>(*this, number, std::move(stream));
        links_.emplace(number, link);
        link->Start();
      });
  table.Unary<v1::InitProducerIdRequest, v1::InitProducerIdResponse>(
      produce_methods::kInitProducerId, executor_,
      [this](v1::InitProducerIdRequest request, CallContext,
             Responder<v1::InitProducerIdResponse> respond) {
        producer_ids_.Init(request, std::move(respond));
      });
}

}  // namespace conclave::broker
