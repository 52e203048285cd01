#include "client/testing/fake_broker.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/fetch_methods.h"
#include "common/rpc/metadata_methods.h"
#include "common/rpc/produce_methods.h"

namespace conclave::client_testing {
namespace {

// Bytes on their way to a consumer before the stream waits for it to read.
constexpr size_t kFetchWindow = size_t{64} << 10;

}  // namespace

class FakeBroker::ProduceStream : public MessageHandler<v1::ProduceRequest> {
 public:
  ProduceStream(FakeBroker& broker, std::unique_ptr<ProduceEnd> stream)
      : broker_(broker), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::ProduceRequest request) override {
    FakeWorld& world = broker_.world_;
    ++world.produce_requests;
    v1::ProduceResponse response = broker_.Handle(request);
    world.Wake();
    if (request.acks() == v1::ACKS_NONE) return;
    if (world.drop_answers > 0) {
      if (--world.drop_answers == 0) {
        stream_->Finish(absl::UnavailableError("the fake broker breaks the stream"));
      }
      return;
    }
    answers_.push_back(std::move(response));
    world.greatest_in_flight =
        std::max(world.greatest_in_flight, static_cast<int>(answers_.size()));
    if (world.hold_answers) return;
    if (world.answer_delay > Duration()) {
      broker_.executor_.PostAfter(world.answer_delay,
                                  [broker = &broker_] { broker->AnswerHeld(); });
      return;
    }
    Answer();
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnClosed(absl::Status) override {
    broker_.produce_streams_.remove_if([this](const auto& stream) { return stream.get() == this; });
  }

  void Answer() {
    for (const v1::ProduceResponse& answer : answers_) stream_->Send(answer);
    answers_.clear();
  }

 private:
  FakeBroker& broker_;
  const std::unique_ptr<ProduceEnd> stream_;
  std::deque<v1::ProduceResponse> answers_;
};

class FakeBroker::FetchStream : public MessageHandler<v1::FetchRequest> {
 public:
  FetchStream(FakeBroker& broker, std::unique_ptr<FetchEnd> stream)
      : broker_(broker), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::FetchRequest request) override {
    request_ = std::move(request);
    Pump();
  }
  void OnDrained() override { Pump(); }
  void OnClosed(absl::Status) override {
    broker_.fetch_streams_.remove_if([this](const auto& stream) { return stream.get() == this; });
  }

  void Pump() {
    if (over_) return;
    bool sent = true;
    while (sent && stream_->pending_bytes() < kFetchWindow) {
      sent = false;
      v1::FetchResponse response;
      for (v1::FetchPartition& asked : *request_.mutable_partitions()) {
        if (!Read(asked, response)) continue;
        sent = true;
      }
      if (sent) stream_->Send(response);
      if (over_) return stream_->Finish(StatusFromError(response.partitions().rbegin()->error()));
    }
  }

 private:
  // True if something was added to the response.
  bool Read(v1::FetchPartition& asked, v1::FetchResponse& response) {
    if (over_) return false;
    v1::FetchPartitionResult result;
    result.set_topic(asked.topic());
    result.set_topic_id(asked.topic_id());
    result.set_partition(asked.partition());
    std::optional<int32_t> epoch;
    if (asked.has_leader_epoch()) epoch = asked.leader_epoch();
    FakePartition* partition = broker_.Led(asked.topic(), asked.topic_id(), asked.partition(),
                                           epoch, *result.mutable_error());
    if (partition != nullptr && (asked.offset() < partition->log_start().value() ||
                                 asked.offset() > partition->end().value())) {
      result.mutable_error()->set_code(v1::OFFSET_OUT_OF_RANGE);
      result.mutable_error()->set_message("out of the fake log");
    }
    const auto damaged = broker_.world_.damaged_from.find(broker_.id_);
    const bool is_damaged = damaged != broker_.world_.damaged_from.end();
    if (partition != nullptr && is_damaged && asked.offset() >= damaged->second.value()) {
      result.mutable_error()->set_code(v1::STORAGE_ERROR);
      result.mutable_error()->set_message("the fake disk is damaged");
    }
    if (result.error().code() != v1::NONE) {
      over_ = true;
      *response.add_partitions() = std::move(result);
      return true;
    }
    size_t limit = asked.max_bytes() > 0 ? static_cast<size_t>(asked.max_bytes()) : 1 << 20;
    if (is_damaged) limit = 1;  // A batch at a time, up to the damage.
    Offset next;
    std::string bytes = partition->Read(Offset(asked.offset()), limit, next);
    const bool first = seen_.insert(asked.topic() + "-" + std::to_string(asked.partition())).second;
    // The first message tells the bounds even where there is nothing to read.
    if (bytes.empty() && !first) return false;
    if (!bytes.empty() && broker_.world_.corrupt_fetches > 0) {
      --broker_.world_.corrupt_fetches;
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
    }
    result.set_high_watermark(partition->high_watermark().value());
    result.set_log_start_offset(partition->log_start().value());
    result.set_batches(std::move(bytes));
    result.set_next_offset(next.value());
    asked.set_offset(next.value());
    *response.add_partitions() = std::move(result);
    return true;
  }

  FakeBroker& broker_;
  const std::unique_ptr<FetchEnd> stream_;
  v1::FetchRequest request_;
  std::set<std::string> seen_;
  bool over_ = false;
};

FakeBroker::FakeBroker(FakeWorld& world, int id, Transport& transport, Executor& executor,
                       const std::string& listen)
    : world_(world), id_(id), executor_(executor) {
  MethodTable methods;
  methods.Unary<v1::GetMetadataRequest, v1::GetMetadataResponse>(
      metadata_methods::kGetMetadata, executor,
      [this](v1::GetMetadataRequest request, CallContext,
             Responder<v1::GetMetadataResponse> answer) {
        ++world_.metadata_requests;
        answer(world_.Metadata(request));
      });
  methods.Unary<v1::InitProducerIdRequest, v1::InitProducerIdResponse>(
      produce_methods::kInitProducerId, executor,
      [this](v1::InitProducerIdRequest request, CallContext,
             Responder<v1::InitProducerIdResponse> answer) {
        ++world_.inits;
        if (world_.refuse_producer_ids) {
          return answer(MakeError(v1::NOT_READY, "no producer ids at present"));
        }
        v1::InitProducerIdResponse response;
        if (request.has_producer_id()) {
          response.set_producer_id(request.producer_id());
          response.set_producer_epoch(request.producer_epoch() + 1);
        } else {
          response.set_producer_id(world_.next_producer_id++);
        }
        answer(std::move(response));
      });
  methods.Unary<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(
      fetch_methods::kListOffsets, executor,
      [this](v1::ListOffsetsRequest request, CallContext,
             Responder<v1::ListOffsetsResponse> answer) {
        v1::ListOffsetsResponse response;
        for (const auto& asked : request.partitions()) *response.add_partitions() = Lookup(asked);
        answer(std::move(response));
      });
  methods.Unary<v1::OffsetsForLeaderEpochRequest, v1::OffsetsForLeaderEpochResponse>(
      fetch_methods::kOffsetsForLeaderEpoch, executor,
      [this](const v1::OffsetsForLeaderEpochRequest& request, CallContext,
             Responder<v1::OffsetsForLeaderEpochResponse> answer) {
        if (world_.drop_epoch_answers > 0) {
          --world_.drop_epoch_answers;
          return answer(MakeError(v1::NETWORK_EXCEPTION, "the fake connection broke"));
        }
        v1::OffsetsForLeaderEpochResponse response;
        for (const auto& asked : request.partitions()) {
          *response.add_partitions() = LookupEpoch(asked);
        }
        answer(std::move(response));
      });
  methods.Stream<v1::ProduceRequest, v1::ProduceResponse>(
      produce_methods::kProduceStream, executor, [this](std::unique_ptr<ProduceEnd> stream) {
        produce_streams_.push_back(std::make_unique<ProduceStream>(*this, std::move(stream)));
        produce_streams_.back()->Start();
      });
  methods.Stream<v1::FetchRequest, v1::FetchResponse>(
      fetch_methods::kFetchStream, executor, [this](std::unique_ptr<FetchEnd> stream) {
        ++world_.fetch_streams;
        fetch_streams_.push_back(std::make_unique<FetchStream>(*this, std::move(stream)));
        fetch_streams_.back()->Start();
      });
  if (world.add_methods) world.add_methods(id, methods, executor);
  auto server = transport.Listen(listen, methods.Take());
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  world_.brokers[id] = this;
  world_.endpoints[id] = server_->endpoint();
}

FakeBroker::~FakeBroker() { world_.brokers.erase(id_); }

void FakeBroker::AnswerHeld() {
  for (const auto& stream : produce_streams_) stream->Answer();
}

void FakeBroker::Wake() {
  std::vector<FetchStream*> streams;
  for (const auto& stream : fetch_streams_) streams.push_back(stream.get());
  for (FetchStream* stream : streams) stream->Pump();
}

FakePartition* FakeBroker::Led(const std::string& topic, const std::string& topic_id, int partition,
                               std::optional<int32_t> epoch, v1::Error& error) {
  FakePartition* found = world_.Find({topic, PartitionIndex(partition)});
  const auto fail = [&](v1::ErrorCode code, const std::string& message) -> FakePartition* {
    error.set_code(code);
    error.set_message(message);
    return nullptr;
  };
  if (found == nullptr) return fail(v1::UNKNOWN_TOPIC_OR_PARTITION, "no such partition: " + topic);
  if (!topic_id.empty() && topic_id != world_.topics[topic].id.ToBytes()) {
    return fail(v1::UNKNOWN_TOPIC_ID, "the topic has another id: " + topic);
  }
  if (found->leader != BrokerId(id_)) {
    error = world_.NotLeader(*found);
    return nullptr;
  }
  if (epoch && *epoch < found->leader_epoch.value()) return fail(v1::FENCED_LEADER_EPOCH, "old");
  if (epoch && *epoch > found->leader_epoch.value()) return fail(v1::UNKNOWN_LEADER_EPOCH, "new");
  return found;
}

v1::ProduceResponse FakeBroker::Handle(const v1::ProduceRequest& request) {
  v1::ProduceResponse response;
  response.set_correlation_id(request.correlation_id());
  for (const v1::ProducePartition& asked : request.partitions()) {
    v1::ProducePartitionResult& result = *response.add_partitions();
    result.set_topic(asked.topic());
    result.set_topic_id(asked.topic_id());
    result.set_partition(asked.partition());
    result.set_base_offset(-1);
    const TopicPartition name{asked.topic(), PartitionIndex(asked.partition())};
    FakePartition* partition = Led(asked.topic(), asked.topic_id(), asked.partition(), std::nullopt,
                                   *result.mutable_error());
    const Buffer batch{std::string(asked.batch())};
    const auto header = ParseBatchHeader(batch, 0);
    CHECK(header) << "the client sent no batch";
    world_.arrived.push_back(*header);
    if (partition == nullptr) continue;
    if (world_.before_append) {
      *result.mutable_error() = world_.before_append(name, *header);
      if (result.error().code() != v1::NONE) continue;
    }
    partition->Append(batch, result);
    if (result.error().code() == v1::NONE && world_.after_append) {
      *result.mutable_error() = world_.after_append(name, *header);
      if (result.error().code() != v1::NONE) result.set_base_offset(-1);
    }
    result.set_log_start_offset(partition->log_start().value());
  }
  return response;
}

v1::EpochEnd FakeBroker::LookupEpoch(const v1::EpochQuery& asked) {
  ++world_.epoch_queries;
  v1::EpochEnd result;
  result.set_topic(asked.topic());
  result.set_topic_id(asked.topic_id());
  result.set_partition(asked.partition());
  std::optional<int32_t> epoch;
  if (asked.has_current_leader_epoch()) epoch = asked.current_leader_epoch();
  const FakePartition* partition =
      Led(asked.topic(), asked.topic_id(), asked.partition(), epoch, *result.mutable_error());
  if (partition == nullptr) return result;
  const auto [found, end] = partition->EndOfEpoch(LeaderEpoch(asked.leader_epoch()));
  result.set_leader_epoch(found.value());
  result.set_end_offset(end.value());
  return result;
}

v1::ListOffsetsResult FakeBroker::Lookup(const v1::ListOffsetsPartition& asked) {
  v1::ListOffsetsResult result;
  result.set_topic(asked.topic());
  result.set_topic_id(asked.topic_id());
  result.set_partition(asked.partition());
  result.set_offset(-1);
  result.set_timestamp_ms(-1);
  std::optional<int32_t> epoch;
  if (asked.has_leader_epoch()) epoch = asked.leader_epoch();
  const FakePartition* partition =
      Led(asked.topic(), asked.topic_id(), asked.partition(), epoch, *result.mutable_error());
  if (partition == nullptr) return result;
  if (asked.spec() == v1::OFFSET_SPEC_LATEST && world_.offset_not_available > 0) {
    --world_.offset_not_available;
    result.mutable_error()->set_code(v1::OFFSET_NOT_AVAILABLE);
    return result;
  }
  if (asked.spec() == v1::OFFSET_SPEC_EARLIEST) result.set_offset(partition->log_start().value());
  if (asked.spec() == v1::OFFSET_SPEC_LATEST)
    result.set_offset(partition->high_watermark().value());
  if (asked.spec() == v1::OFFSET_SPEC_TIMESTAMP) {
    const auto [offset, timestamp] = partition->Find(asked.timestamp_ms());
    result.set_offset(offset.value());
    result.set_timestamp_ms(timestamp);
  }
  result.set_leader_epoch(partition->leader_epoch.value());
  result.set_log_start_offset(partition->log_start().value());
  result.set_high_watermark(partition->high_watermark().value());
  result.set_log_end_offset(partition->end().value());
  return result;
}

}  // namespace conclave::client_testing
