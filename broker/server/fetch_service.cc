#include "broker/server/fetch_service.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/server/partition_lookup.h"
#include "broker/server/partition_reader.h"
#include "common/error/error.h"
#include "common/rpc/fetch_methods.h"

namespace conclave::broker {

using fetch_methods::FetchResponse;

namespace {

constexpr int32_t kDefaultMaxBytes = 4 << 20;
constexpr int32_t kDefaultPartitionBytes = 1 << 20;
constexpr int32_t kDefaultMaxWaitMs = 500;
constexpr int32_t kLongestWaitMs = 5 * 60 * 1000;
constexpr int kMostPartitions = 100'000;

size_t Limit(int32_t asked, int32_t by_default) {
  return static_cast<size_t>(asked <= 0 ? by_default : std::min(asked, kMostFetchBytes));
}

absl::Status CheckRequest(const v1::FetchRequest& request) {
  if (request.partitions_size() == 0) {
    return MakeError(v1::INVALID_REQUEST, "a fetch names at least one partition");
  }
  if (request.partitions_size() > kMostPartitions) {
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("a fetch names at most ", kMostPartitions, " partitions"));
  }
  return absl::OkStatus();
}

void Add(PartitionRead read, FetchResponse& response) {
  *response.message.add_partitions() = std::move(read.result);
  response.payloads.push_back(std::move(read.batches));
}

// Watches the replicas of a request's partitions, as far as they are here.
class Watches {
 public:
  Watches(ReplicaSet& replicas, ReplicaWatcher* watcher) : replicas_(replicas), watcher_(watcher) {}
  ~Watches() {
    for (const auto& [id, watch] : watches_) {
      if (Replica* replica = replicas_.Find(id)) replica->Unwatch(watch.number);
    }
  }

  // Also those that have taken the place of others, which were damaged. True if it came to watch
  // any: they may have changed before.
  bool Add(const v1::FetchRequest& request) {
    bool added = false;
    for (const v1::FetchPartition& partition : request.partitions()) {
      const auto leader =
          FindLeader(replicas_, {partition.topic(), partition.topic_id(), partition.partition()});
      if (!leader.ok()) continue;
      Watch& watch = watches_[(*leader)->id()];
      if (watch.life == (*leader)->life()) continue;
      watch = {(*leader)->life(), (*leader)->Watch(watcher_)};
      added = true;
    }
    return added;
  }

 private:
  struct Watch {
    // Of the replica; 0: of none.
    uint64_t life = 0;
    uint64_t number = 0;
  };

  ReplicaSet& replicas_;
  ReplicaWatcher* const watcher_;
  std::map<PartitionId, Watch> watches_;
};

}  // namespace

// A unary fetch that waits until there is enough, or its time is over.
class FetchService::LongPoll : public ReplicaWatcher {
 public:
  LongPoll(FetchService& service, uint64_t number, v1::FetchRequest request,
           Responder<FetchResponse> respond)
      : service_(service),
        number_(number),
        request_(std::move(request)),
        respond_(std::move(respond)),
        watches_(service.replicas_, this) {}

  ~LongPoll() override {
    if (timer_) service_.executor_.Cancel(*timer_);
  }

  // Destroys this if it has answered.
  void Start(MonotonicTime deadline) {
    if (TryAnswer(/*time_is_over=*/false)) return Done();
    watches_.Add(request_);
    const int32_t asked = request_.max_wait_ms() <= 0 ? kDefaultMaxWaitMs : request_.max_wait_ms();
    const MonotonicTime now = service_.executor_.clock().Now();
    const MonotonicTime end =
        std::min(now + Duration::Milliseconds(std::min(asked, kLongestWaitMs)), deadline);
    timer_ = service_.executor_.PostAt(end, [this] {
      timer_.reset();
      TryAnswer(/*time_is_over=*/true);
      Done();
    });
  }

  // Destroys this if it has answered.
  void OnReplicaChanged(const PartitionId&) override {
    if (TryAnswer(/*time_is_over=*/false)) Done();
  }

 private:
  bool TryAnswer(bool time_is_over) {
    FetchResponse response;
    // Whether there is enough is seen without decoding: that is done once, for the answer.
    const bool enough = Gather(/*decode=*/false, response);
    if (!enough && !time_is_over) return false;
    if (request_.decode()) {
      response = {};
      Gather(/*decode=*/true, response);
    }
    respond_(std::move(response));
    return true;
  }

  // True: it is enough to be answered now.
  bool Gather(bool decode, FetchResponse& response) {
    size_t room = Limit(request_.max_bytes(), kDefaultMaxBytes);
    size_t bytes = 0;
    size_t unpacked = 0;
    bool failed = false;
    for (const v1::FetchPartition& partition : request_.partitions()) {
      // One batch at least a fetch, however large: not one of each partition.
      if (room == 0) break;
      const size_t limit = std::min(room, Limit(partition.max_bytes(), kDefaultPartitionBytes));
      PartitionRead read =
          ReadPartition(service_.replicas_, partition, Offset(partition.offset()), limit, decode);
      bytes += read.bytes;
      unpacked += read.unpacked_bytes;
      room -= unpacked < kMostDecodedBytes ? std::min(room, read.bytes) : room;
      failed = failed || read.failed;
      Add(std::move(read), response);
    }
    const auto wanted = static_cast<size_t>(std::max(request_.min_bytes(), 1));
    return bytes >= wanted || room == 0 || failed;
  }

  void Done() { service_.polls_.erase(number_); }

  FetchService& service_;
  const uint64_t number_;
  const v1::FetchRequest request_;
  Responder<FetchResponse> respond_;
  Watches watches_;
  std::optional<TimerId> timer_;
};

// A client's stream: what comes is pushed while the stream takes it.
class FetchService::Push : public MessageHandler<v1::FetchRequest>, public ReplicaWatcher {
 public:
  using Stream = TypedServerStream<v1::FetchRequest, FetchResponse>;

  Push(FetchService& service, uint64_t number, std::unique_ptr<Stream> stream)
      : service_(service),
        number_(number),
        stream_(std::move(stream)),
        watches_(service.replicas_, this) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::FetchRequest request) override {
    if (began_) return End(MakeError(v1::INVALID_REQUEST, "a fetch stream takes one request"));
    if (absl::Status good = CheckRequest(request); !good.ok()) return End(good);
    began_ = true;
    request_ = std::move(request);
    for (const v1::FetchPartition& partition : request_.partitions()) {
      positions_.push_back(Offset(partition.offset()));
    }
    watches_.Add(request_);
    // The first message tells of every partition, data or not.
    Pump(/*all=*/true);
  }

  void OnDrained() override { Pump(/*all=*/false); }
  void OnReplicaChanged(const PartitionId&) override { Pump(/*all=*/false); }

  // Destroys this.
  void OnClosed(absl::Status) override { service_.pushes_.erase(number_); }

 private:
  void Pump(bool all) {
    while (began_ && !ended_ && stream_->pending_bytes() == 0) {
      FetchResponse response;
      const absl::Status gathered = Gather(std::exchange(all, false), response);
      if (response.message.partitions_size() > 0) stream_->Send(response);
      if (!gathered.ok()) return End(gathered);
      if (response.message.partitions_size() == 0 && !watches_.Add(request_)) return;
    }
  }

  // Goes round the partitions, so that none is starved. An error is in the response, too.
  absl::Status Gather(bool all, FetchResponse& response) {
    size_t room = Limit(request_.max_bytes(), kDefaultMaxBytes);
    size_t unpacked = 0;
    const size_t count = positions_.size();
    absl::Status failed;
    for (size_t i = 0; i < count && (room > 0 || all); ++i) {
      const size_t at = (first_ + i) % count;
      const v1::FetchPartition& partition = request_.partitions(static_cast<int>(at));
      const size_t limit = std::min(room, Limit(partition.max_bytes(), kDefaultPartitionBytes));
      PartitionRead read =
          ReadPartition(service_.replicas_, partition, positions_[at], limit, request_.decode());
      if (read.bytes == 0 && !read.failed && !all) continue;
      positions_[at] = Offset(read.result.next_offset());
      unpacked += read.unpacked_bytes;
      room -= unpacked < kMostDecodedBytes ? std::min(room, read.bytes) : room;
      // What is malformed inside a batch concerns those records alone.
      const bool passed_over = read.failed && read.bytes > 0;
      if (read.failed && !passed_over && failed.ok()) {
        failed = StatusFromError(read.result.error());
      }
      Add(std::move(read), response);
      if (room == 0 && limit > 0) first_ = (at + 1) % count;
    }
    return failed;
  }

  void End(const absl::Status& why) {
    if (std::exchange(ended_, true)) return;
    stream_->Finish(why);
  }

  FetchService& service_;
  const uint64_t number_;
  const std::unique_ptr<Stream> stream_;
  Watches watches_;
  v1::FetchRequest request_;
  std::vector<Offset> positions_;
  size_t first_ = 0;
  bool began_ = false;
  bool ended_ = false;
};

FetchService::FetchService(ReplicaSet& replicas, Executor& executor)
    : replicas_(replicas), executor_(executor) {}

FetchService::~FetchService() = default;

// Those that ask for a time may each unpack a batch: one a task, so that the executor does other
// things in between.
struct FetchService::Listing {
  v1::ListOffsetsRequest request;
  Responder<v1::ListOffsetsResponse> respond;
  v1::ListOffsetsResponse response;
};

void FetchService::ListOffsets(std::shared_ptr<Listing> listing) {
  while (listing->response.partitions_size() < listing->request.partitions_size()) {
    const v1::ListOffsetsPartition& asked =
        listing->request.partitions(listing->response.partitions_size());
    ListOffset(asked, *listing->response.add_partitions());
    if (asked.spec() != v1::OFFSET_SPEC_TIMESTAMP) continue;
    return executor_.Post([this, listing = std::move(listing)] { ListOffsets(listing); });
  }
  listing->respond(std::move(listing->response));
}

void FetchService::ListOffset(const v1::ListOffsetsPartition& asked,
                              v1::ListOffsetsResult& result) {
  result.set_topic(asked.topic());
  result.set_topic_id(asked.topic_id());
  result.set_partition(asked.partition());
  result.set_offset(-1);
  result.set_timestamp_ms(-1);
  const auto leader = FindLeader(replicas_, {asked.topic(), asked.topic_id(), asked.partition()});
  absl::Status status = leader.status();
  if (leader.ok()) {
    status = CheckEpoch(
        **leader, asked.has_leader_epoch() ? std::optional(asked.leader_epoch()) : std::nullopt);
  }
  if (status.ok()) status = LookUp(**leader, asked, result);
  if (!status.ok()) *result.mutable_error() = ErrorFromStatus(status);
}

absl::Status FetchService::LookUp(Replica& replica, const v1::ListOffsetsPartition& asked,
                                  v1::ListOffsetsResult& result) {
  const replication::LeaderReplica& leader = *replica.leader();
  result.set_leader_epoch(leader.leader_epoch().value());
  result.set_log_start_offset(replica.log().log_start().value());
  result.set_high_watermark(leader.high_watermark().value());
  result.set_log_end_offset(replica.log().log_end().value());
  if (asked.spec() == v1::OFFSET_SPEC_EARLIEST) {
    result.set_offset(replica.log().log_start().value());
    return absl::OkStatus();
  }
  if (!leader.IsHighWatermarkCurrent()) {
    return MakeError(v1::OFFSET_NOT_AVAILABLE,
                     absl::StrCat(replica.name(),
                                  ": the leader has just been elected and does not "
                                  "know yet what is committed; try again"));
  }
  if (asked.spec() == v1::OFFSET_SPEC_LATEST) {
    result.set_offset(leader.high_watermark().value());
    return absl::OkStatus();
  }
  if (asked.spec() != v1::OFFSET_SPEC_TIMESTAMP) {
    return MakeError(v1::INVALID_REQUEST, absl::StrCat("no such offset spec: ", asked.spec()));
  }
  const auto found = replica.FindTimestamp(asked.timestamp_ms(), leader.high_watermark());
  if (!found.ok()) return found.status();
  if (*found) {
    result.set_offset((*found)->offset.value());
    result.set_timestamp_ms((*found)->timestamp_ms);
  }
  return absl::OkStatus();
}

v1::OffsetsForLeaderEpochResponse FetchService::OffsetsForLeaderEpoch(
    const v1::OffsetsForLeaderEpochRequest& request) {
  v1::OffsetsForLeaderEpochResponse response;
  for (const v1::EpochQuery& asked : request.partitions()) {
    v1::EpochEnd& result = *response.add_partitions();
    result.set_topic(asked.topic());
    result.set_topic_id(asked.topic_id());
    result.set_partition(asked.partition());
    result.set_leader_epoch(-1);
    result.set_end_offset(-1);
    const auto leader = FindLeader(replicas_, {asked.topic(), asked.topic_id(), asked.partition()});
    absl::Status good = leader.status();
    if (good.ok()) {
      good = CheckEpoch(**leader, asked.has_current_leader_epoch()
                                      ? std::optional(asked.current_leader_epoch())
                                      : std::nullopt);
    }
    if (!good.ok()) {
      *result.mutable_error() = ErrorFromStatus(good);
      continue;
    }
    const EpochEnd end = (*leader)->log().EndOfEpoch(LeaderEpoch(asked.leader_epoch()));
    result.set_leader_epoch(end.epoch.value());
    result.set_end_offset(end.end.value());
  }
  return response;
}

void FetchService::AddMethods(MethodTable& table) {
  table.Unary<v1::FetchRequest, FetchResponse>(
      fetch_methods::kFetchWithPayloads, executor_,
      [this](v1::FetchRequest request, CallContext context, Responder<FetchResponse> respond) {
        if (absl::Status good = CheckRequest(request); !good.ok()) return respond(good);
        const uint64_t number = ++last_number_;
        auto poll =
            std::make_unique<LongPoll>(*this, number, std::move(request), std::move(respond));
        LongPoll* raw = poll.get();
        polls_.emplace(number, std::move(poll));
        raw->Start(context.deadline);
      });
  table.Stream<v1::FetchRequest, FetchResponse>(fetch_methods::kFetchStreamWithPayloads, executor_,
                                                [this](std::unique_ptr<Push::Stream> stream) {
                                                  const uint64_t number = ++last_number_;
                                                  auto push = std::make_unique<Push>(
                                                      *this, number, std::move(stream));
                                                  Push* raw = push.get();
                                                  pushes_.emplace(number, std::move(push));
                                                  raw->Start();
                                                });
  table.Unary<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(
      fetch_methods::kListOffsets, executor_,
      [this](v1::ListOffsetsRequest request, CallContext,
             Responder<v1::ListOffsetsResponse> respond) {
        if (request.partitions_size() > kMostPartitions) {
          return respond(
              MakeError(v1::INVALID_REQUEST, absl::StrCat("a request for offsets names at most ",
                                                          kMostPartitions, " partitions")));
        }
        ListOffsets(std::make_shared<Listing>(Listing{std::move(request), std::move(respond), {}}));
      });
  table.Unary<v1::OffsetsForLeaderEpochRequest, v1::OffsetsForLeaderEpochResponse>(
      fetch_methods::kOffsetsForLeaderEpoch, executor_,
      [this](const v1::OffsetsForLeaderEpochRequest& request, CallContext,
             Responder<v1::OffsetsForLeaderEpochResponse> respond) {
        respond(OffsetsForLeaderEpoch(request));
      });
}

}  // namespace conclave::broker
