#include "client/producer/producer_core.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/record/record_view.h"

namespace conclave {
namespace {

PartitionQueue::Options QueueOptions(const ProducerOptions& options) {
  PartitionQueue::Options queue;
  queue.delivery_timeout = options.delivery_timeout;
  queue.delivery_timeout_name = options.delivery_timeout_name;
  queue.answered = options.acks != v1::ACKS_NONE;
  queue.idempotent = options.idempotent && queue.answered;
  queue.max_in_flight = options.max_in_flight;
  queue.retry_pause = options.retry_pause;
  queue.retry_pause_max = options.retry_pause_max;
  return queue;
}

RecordAccumulator::Options AccumulatorOptions(const ProducerOptions& options) {
  return {.buffer_bytes = options.buffer_bytes,
          .batches = {.batch_bytes = options.batch_bytes,
                      .codec = options.compression,
                      .linger = options.linger,
                      .delivery_timeout = options.delivery_timeout}};
}

// Full ones under way to a broker that keep it busy: one that it works at, and the next.
constexpr size_t kBusyRequests = 2;

bool IsOfLeadership(v1::ErrorCode code) {
  switch (code) {
    case v1::NOT_LEADER_OR_FOLLOWER:
    case v1::LEADER_NOT_AVAILABLE:
    case v1::FENCED_LEADER_EPOCH:
    case v1::UNKNOWN_LEADER_EPOCH:
      return true;
    default:
      return false;
  }
}

}  // namespace

Producer::Core::Core(ProducerOptions options, Transport& transport, Executor& executor,
                     const Random& random)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("producer")),
      accumulator_(AccumulatorOptions(options_), random_, executor),
      metadata_({.bootstrap = options_.bootstrap}, transport, executor, random,
                [this] {
                  metadata_changed_ = true;
                  Wake();
                }),
      identity_(metadata_, transport, executor, random,
                [this] {
                  look_again_at_ = executor_.clock().Now();
                  Wake();
                }),
      expire_at_(executor.clock().Now() + options_.delivery_timeout) {
  CHECK_GT(options_.max_in_flight, 0u);
  CHECK(!options_.idempotent || options_.max_in_flight <= 5)
      << "an idempotent producer has at most 5 batches in flight, for brokers remember no more";
}

Producer::Core::~Core() {
  executor_.Cancel(timer_);
  executor_.Cancel(close_timer_);
}

absl::Status Producer::Core::Send(const ProducerRecord& record, DeliveryDone&& done) {
  const Clock& clock = executor_.clock();
  bool wake = false;
  const int64_t now_ms = record.timestamp_ms ? 0 : clock.WallNow().unix_millis();
  absl::Status status = accumulator_.Append(
      record, std::move(done), [&clock] { return clock.Now(); }, now_ms, wake);
  if (wake) {
    executor_.Post([weak = weak_from_this()] {
      if (const auto core = weak.lock()) core->Pump();
    });
  }
  return status;
}

void Producer::Core::Wake() {
  if (std::exchange(pump_posted_, true)) return;
  executor_.Post(lifetime_.Guard([this] {
    pump_posted_ = false;
    Pump();
  }));
}

void Producer::Core::Pump() {
  const MonotonicTime now = executor_.clock().Now();
  do {
    TakeIn();
  } while (Route(now));
  if (!active_.empty() && options_.idempotent && options_.acks != v1::ACKS_NONE) {
    identity_.Ensure();
  }
  if (now >= expire_at_) Expire(now);
  RetryMoved(now);
  if (now >= look_again_at_) MakeAllReady();
  SendAll(now);
  TellCompleted();
  CheckFlushes();
  ArmTimer();
}

// --- Records and where they go

void Producer::Core::TakeIn() {
  RecordAccumulator::News news = accumulator_.TakeNews();
  for (std::string& name : news.topics) {
    if (topics_.try_emplace(name).second) metadata_.Watch(name);
    waiting_.insert(std::move(name));
  }
  for (const LaneId lane : news.lanes) Activate(PartitionOf(lane));
}

bool Producer::Core::Route(MonotonicTime now) {
  const bool changed = std::exchange(metadata_changed_, false);
  bool routed = false;
  for (const auto& [name, lanes] : topics_) {
    const bool waits = waiting_.contains(name);
    if (!changed && !waits) continue;
    const MetadataCache::Topic* metadata = metadata_.Find(name);
    if (metadata != nullptr && metadata->status.ok() && !metadata->partitions.empty()) {
      RouteTo(name, *metadata);
      waiting_.erase(name);
      routed = true;
    } else {
      accumulator_.ForgetPartitions(name);
      if (waits) ServeUnknown(name, metadata, now);
    }
  }
  if (changed) Relead();
  return routed;
}

void Producer::Core::RouteTo(const std::string& name, const MetadataCache::Topic& metadata) {
  const size_t count = metadata.partitions.size();
  std::vector<LaneId>& lanes = topics_[name];
  while (lanes.size() < count) {
    TopicPartition partition{name, PartitionIndex(static_cast<int32_t>(lanes.size()))};
    const Random random = random_.Fork(ToString(partition));
    lanes.push_back(accumulator_.AddLane());
    partitions_.push_back(std::make_unique<Partition>(lanes.back(), std::move(partition),
                                                      QueueOptions(options_), random));
  }
  std::vector<bool> has_leader(count);
  for (size_t i = 0; i < count; ++i) {
    has_leader[i] = metadata_.LeaderOf({name, PartitionIndex(static_cast<int32_t>(i))}).has_value();
  }
  auto misdirected = accumulator_.SetPartitions(
      name, {lanes.begin(), lanes.begin() + static_cast<std::ptrdiff_t>(count)},
      std::move(has_leader));
  // One that was added since would be known next time.
  if (!misdirected.empty()) metadata_.Refresh();
  for (RecordAccumulator::Waiting& one : misdirected) {
    const PartitionIndex index = one.record.partition.value_or(PartitionIndex(-1));
    FailRecord(
        std::move(one), index,
        MakeError(v1::INVALID_PARTITIONS,
                  absl::StrCat("topic \"", name, "\" has ", count,
                               " partitions, counted from 0, and no partition ", index.value())));
  }
}

void Producer::Core::ServeUnknown(const std::string& name, const MetadataCache::Topic* metadata,
                                  MonotonicTime now) {
  const auto oldest = accumulator_.OldestWaiting(name);
  if (!oldest) {
    waiting_.erase(name);
    return;
  }
  // Without an error, but without partitions, it is no topic yet.
  if (metadata != nullptr && metadata->status.ok()) {
    metadata_.Refresh();
  } else if (metadata != nullptr) {
    const bool passes = IsRetriable(metadata->status);
    const bool final =
        !passes || (metadata->unknown_since &&
                    now >= *metadata->unknown_since + options_.unknown_topic_timeout);
    // An answer from before the first record says nothing about the topic of now.
    const bool fresh = !passes || now >= *oldest + options_.unknown_topic_timeout;
    if (final && fresh) {
      return FailWaiting(name, MonotonicTime::Never(), metadata->status);
    }
    metadata_.Refresh();
  }
  if (*oldest + options_.delivery_timeout <= now) {
    const absl::Status& last = metadata_.last_failure();
    FailWaiting(name, now - options_.delivery_timeout,
                MakeError(v1::LEADER_NOT_AVAILABLE,
                          absl::StrCat("no broker told of topic \"", name, "\" within ",
                                       options_.delivery_timeout.milliseconds(), " ms (",
                                       options_.delivery_timeout_name, "): ",
                                       last.ok() ? "none knows it" : std::string(last.message()))));
  }
}

void Producer::Core::FailWaiting(const std::string& name, MonotonicTime sent_until,
                                 const absl::Status& why) {
  for (RecordAccumulator::Waiting& one : accumulator_.TakeWaiting(name, sent_until)) {
    FailRecord(std::move(one), PartitionIndex(-1), why);
  }
}

void Producer::Core::FailRecord(RecordAccumulator::Waiting waiting, PartitionIndex partition,
                                const absl::Status& why) {
  auto batch = std::make_shared<ProduceBatch>(Compression::kNone, waiting.sent_at, waiting.sent_at);
  batch->Add(ViewOf(waiting.record, 0), waiting.bytes, std::move(waiting.done));
  batch->result = why;
  completed_.push_back({{waiting.record.topic, partition}, std::move(batch)});
}

Producer::Core::Partition& Producer::Core::PartitionOf(const TopicPartition& name) {
  return PartitionOf(topics_.at(name.topic).at(static_cast<size_t>(name.partition.value())));
}

void Producer::Core::Relead() {
  ready_.clear();
  for (const auto& partition : partitions_) {
    partition->ready = false;
    partition->leader = metadata_.LeaderOf(partition->name());
    const MetadataCache::Topic* metadata = metadata_.Find(partition->name().topic);
    if (metadata != nullptr) partition->topic_id = metadata->id;
  }
  MakeAllReady();
}

// --- What may be sent

void Producer::Core::Activate(Partition& partition) {
  active_.insert(partition.lane);
  MakeReady(partition);
}

void Producer::Core::MakeReady(Partition& partition) {
  if (partition.ready) return;
  if (IsIdle(partition)) {
    active_.erase(partition.lane);
    return;
  }
  if (!partition.leader) return metadata_.Refresh();
  partition.ready = true;
  ready_[partition.leader->broker].push_back(&partition);
}

void Producer::Core::MakeAllReady() {
  look_again_at_ = MonotonicTime::Never();
  // MakeReady may take one out.
  for (auto it = active_.begin(); it != active_.end();) MakeReady(PartitionOf(*it++));
}

bool Producer::Core::IsIdle(const Partition& partition) const {
  return partition.queue.empty() && !accumulator_.Deadline(partition.lane);
}

void Producer::Core::Rest(Partition& partition, MonotonicTime now,
                          std::optional<MonotonicTime> ready_at) {
  PartitionQueue& queue = partition.queue;
  if (queue.NeedsNewIdentity(identity_.current())) identity_.Replace(identity_.current());
  if (IsIdle(partition)) {
    active_.erase(partition.lane);
    return;
  }
  if (ready_at && *ready_at > now) look_again_at_ = std::min(look_again_at_, *ready_at);
  if (queue.retry_at() > now) look_again_at_ = std::min(look_again_at_, queue.retry_at());
}

void Producer::Core::SendAll(MonotonicTime now) {
  if (close_done_ && closing_ > 0) return;
  for (auto& [broker, ready] : ready_) {
    while (SendRequest(ready, now)) {
    }
  }
}

bool Producer::Core::SendRequest(std::deque<Partition*>& ready, MonotonicTime now) {
  if (ready.empty()) return false;
  ProduceConnection& connection = ConnectionTo(*ready.front()->leader);
  if (!connection.HasRoom()) return false;
  // More would only make it wait longer there: here, what is not full still gains from waiting, for
  // every batch costs a broker and its followers about the same, however little it holds.
  const bool full_only =
      connection.bytes_in_flight() >= kBusyRequests * options_.request_bytes && !hurry();
  std::vector<ProduceConnection::Item> items;
  size_t bytes = 0;
  // Each partition once, so that all get their share.
  for (size_t left = ready.size(); left > 0 && bytes < options_.request_bytes; --left) {
    Partition& partition = *ready.front();
    if (full_only && !accumulator_.HasFull(partition.lane)) break;
    ready.pop_front();
    std::optional<MonotonicTime> ready_at;
    auto batch = partition.queue.Next(now, identity_.current(), [&] {
      RecordAccumulator::Taken taken = accumulator_.Take(partition.lane, now, hurry());
      ready_at = taken.ready_at;
      return std::move(taken.batch);
    });
    Collect(partition);
    if (batch == nullptr) {
      partition.ready = false;
      Rest(partition, now, ready_at);
      continue;
    }
    bytes += batch->encoded_bytes();
    items.push_back({partition.name(), partition.topic_id, std::move(batch)});
    ready.push_back(&partition);
  }
  if (items.empty()) return false;
  connection.Send(std::move(items));
  return true;
}

// --- What becomes of it

absl::Status Producer::Core::Obstacle(const TopicPartition& partition) const {
  const MetadataCache::Topic* topic = metadata_.Find(partition.topic);
  if (topic != nullptr && !topic->status.ok()) return topic->status;
  if (!metadata_.LeaderOf(partition)) {
    return MakeError(v1::LEADER_NOT_AVAILABLE, "the partition has no leader");
  }
  if (options_.idempotent && !identity_.current().valid() && !identity_.last_failure().ok()) {
    return MakeError(v1::NOT_READY, absl::StrCat("no broker gave a producer id: ",
                                                 std::string(identity_.last_failure().message())));
  }
  return metadata_.last_failure();
}

void Producer::Core::Collect(Partition& partition) {
  for (auto& batch : partition.queue.TakeCompleted()) {
    completed_.push_back({partition.name(), std::move(batch)});
  }
}

void Producer::Core::Expire(MonotonicTime now) {
  expire_at_ = now + options_.delivery_timeout;
  const auto consider = [this](std::optional<MonotonicTime> at) {
    if (at) expire_at_ = std::min(expire_at_, *at);
  };
  for (auto it = active_.begin(); it != active_.end();) {
    const LaneId lane = *it++;
    Partition& partition = PartitionOf(lane);
    const absl::Status obstacle = Obstacle(partition.name());
    partition.queue.Expire(now, obstacle);
    while (auto unsent = accumulator_.TakeExpired(lane, now)) {
      partition.queue.ExpireUnsent(std::move(unsent), obstacle);
    }
    Collect(partition);
    MakeReady(partition);
    consider(partition.queue.Deadline());
    consider(accumulator_.Deadline(lane));
  }
  for (const std::string& name : waiting_) {
    const auto oldest = accumulator_.OldestWaiting(name);
    if (oldest) consider(*oldest + options_.delivery_timeout);
  }
}

ProduceConnection& Producer::Core::ConnectionTo(const MetadataCache::Leader& leader) {
  std::unique_ptr<ProduceConnection>& connection = connections_[leader.broker];
  // One with requests under way is kept until it breaks or they are answered.
  if (connection == nullptr || (connection->endpoint() != leader.endpoint && connection->idle())) {
    connection = std::make_unique<ProduceConnection>(
        ProduceConnection::Options{leader.endpoint, options_.acks, options_.request_timeout,
                                   options_.max_in_flight},
        transport_, executor_, random_.Fork(leader.endpoint),
        static_cast<ProduceConnection::Owner&>(*this));
  }
  return *connection;
}

void Producer::Core::OnAnswer(const ProduceConnection& from, const ProduceConnection::Item& item,
                              const v1::ProducePartitionResult& result) {
  const v1::ErrorCode code = result.error().code();
  if (code == v1::NONE || code == v1::DUPLICATE_SEQUENCE_NUMBER) {
    last_failure_ = absl::OkStatus();
    Partition& partition = PartitionOf(item.partition);
    failed_.erase(partition.lane);
    item.batch->duplicate = result.duplicate();
    partition.queue.Succeeded(*item.batch, Offset(result.base_offset()));
    Collect(partition);
    MakeReady(partition);
    return;
  }
  Failed(from, item, StatusFromError(result.error()), !HasNoEffect(code), IsOfLeadership(code));
}

void Producer::Core::OnLost(const ProduceConnection& from, const ProduceConnection::Item& item,
                            const absl::Status& status, bool unknown) {
  Failed(from, item, status, unknown, /*may_have_moved=*/true);
}

void Producer::Core::Failed(const ProduceConnection& from, const ProduceConnection::Item& item,
                            const absl::Status& status, bool unknown, bool may_have_moved) {
  last_failure_ = status;
  Partition& partition = PartitionOf(item.partition);
  bool moved = metadata_.Learn(item.partition, ErrorFromStatus(status).hint());
  if (!moved) {
    // Another partition's refusal, or a refresh, may have told it before.
    const auto leader = metadata_.LeaderOf(item.partition);
    moved = leader && leader->endpoint != from.endpoint();
    if (may_have_moved) failed_.try_emplace(partition.lane, leader);
    if (IsRetriable(status)) metadata_.Refresh();
  }
  // It is sent again in halves; those to come need not be refused first.
  if (ErrorCodeOf(status) == v1::MESSAGE_TOO_LARGE && item.batch->count() > 1) {
    accumulator_.LimitBatches(item.partition.topic, item.batch->uncompressed_bytes() / 2);
  }
  partition.queue.Failed(*item.batch, status, unknown, moved, executor_.clock().Now());
  Collect(partition);
  MakeReady(partition);
  Wake();
}

void Producer::Core::RetryMoved(MonotonicTime now) {
  std::erase_if(failed_, [&](const auto& failed) {
    const auto& [lane, before] = failed;
    if (!active_.contains(lane)) return true;  // Nothing waits any more.
    Partition& partition = PartitionOf(lane);
    const auto& leader = partition.leader;
    if (!leader || (before && before->epoch == leader->epoch)) return false;
    partition.queue.LeaderMoved(now);
    MakeReady(partition);
    return true;
  });
  if (!failed_.empty()) metadata_.Refresh();
}

void Producer::Core::TellCompleted() {
  const auto completed = std::exchange(completed_, {});
  for (const Completed& one : completed) {
    ProduceBatch& batch = *one.batch;
    accumulator_.Free(batch.buffer_bytes());
    batch.Complete(one.partition, *batch.result, batch.base_offset);
  }
}

void Producer::Core::Flush(absl::AnyInvocable<void()> done) {
  flushes_.push_back({accumulator_.NextGeneration(), std::move(done)});
  look_again_at_ = executor_.clock().Now();
  Wake();
}

uint64_t Producer::Core::OldestGeneration() const {
  uint64_t oldest = accumulator_.OldestGeneration().value_or(UINT64_MAX);
  for (const LaneId lane : active_) {
    const auto sent = partitions_[lane.value()]->queue.OldestGeneration();
    if (sent) oldest = std::min(oldest, *sent);
  }
  return oldest;
}

void Producer::Core::CheckFlushes() {
  while (!flushes_.empty() && OldestGeneration() > flushes_.front().generation) {
    auto done = std::move(flushes_.front().done);
    flushes_.pop_front();
    done();
  }
}

void Producer::Core::Close(Duration timeout, absl::AnyInvocable<void()> done) {
  CHECK(!closed_) << "Close is called once";
  closed_ = true;
  accumulator_.Close();
  close_done_ = std::move(done);
  close_timer_ = executor_.PostAfter(timeout, lifetime_.Guard([this] { Abort(); }));
  Flush([this] { CloseConnections(); });
}

void Producer::Core::Abort() {
  std::string message = "the producer was closed before the records were done";
  if (!last_failure_.ok()) {
    absl::StrAppend(&message, "; the last failure: ", Describe(last_failure_));
  } else if (!metadata_.last_failure().ok()) {
    absl::StrAppend(&message, "; the last failure: ", Describe(metadata_.last_failure()));
  }
  const absl::Status why = MakeError(v1::NOT_READY, std::move(message));
  connections_.clear();
  for (const auto& [name, lanes] : topics_) FailWaiting(name, MonotonicTime::Never(), why);
  for (const auto& partition : partitions_) {
    partition->queue.Abort(why);
    Collect(*partition);
    while (auto unsent = accumulator_.Take(partition->lane, MonotonicTime(), true).batch) {
      unsent->result = why;
      completed_.push_back({partition->name(), std::move(unsent)});
    }
    partition->ready = false;
  }
  active_.clear();
  ready_.clear();
  TellCompleted();
  CheckFlushes();
  if (close_done_) {
    auto done = std::move(close_done_);
    close_done_ = nullptr;
    done();
  }
}

void Producer::Core::CloseConnections() {
  if (!close_done_) return;
  closing_ = 1;
  const auto closed = [this] {
    if (--closing_ > 0 || !close_done_) return;
    executor_.Cancel(close_timer_);
    auto done = std::move(close_done_);
    close_done_ = nullptr;
    done();
  };
  for (auto& [broker, connection] : connections_) {
    ++closing_;
    connection->Finish(closed);
  }
  // Not within the round that may have brought us here.
  executor_.Post(lifetime_.Guard(closed));
}

void Producer::Core::ArmTimer() {
  if (active_.empty() && waiting_.empty()) return;
  const MonotonicTime at = std::min(look_again_at_, expire_at_);
  // One that rings early only looks again.
  if (at >= timer_at_) return;
  executor_.Cancel(timer_);
  timer_at_ = at;
  timer_ = executor_.PostAt(at, lifetime_.Guard([this] {
    timer_at_ = MonotonicTime::Never();
    Pump();
  }));
}

}  // namespace conclave
