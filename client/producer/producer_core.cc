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
  queue.batch_bytes = options.batch_bytes;
  queue.codec = options.compression;
  queue.linger = options.linger;
  queue.delivery_timeout = options.delivery_timeout;
  queue.delivery_timeout_name = options.delivery_timeout_name;
  queue.answered = options.acks != v1::ACKS_NONE;
  queue.idempotent = options.idempotent && queue.answered;
  queue.max_in_flight = options.max_in_flight;
  queue.retry_pause = options.retry_pause;
  queue.retry_pause_max = options.retry_pause_max;
  return queue;
}

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

RecordView ViewOf(const ProducerRecord& record) {
  RecordView view;
  view.timestamp_ms = *record.timestamp_ms;
  if (record.key) view.key = *record.key;
  if (record.value) view.value = *record.value;
  for (const auto& [key, value] : record.headers) {
    HeaderView& header = view.headers.emplace_back();
    header.key = key;
    if (value) header.value = *value;
  }
  return view;
}

}  // namespace

Producer::Core::Core(ProducerOptions options, Transport& transport, Executor& executor,
                     const Random& random, std::shared_ptr<Inbox> inbox)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("producer")),
      inbox_(std::move(inbox)),
      metadata_({.bootstrap = options_.bootstrap}, transport, executor, random, [this] { Wake(); }),
      identity_(metadata_, transport, executor, random, [this] { Wake(); }) {
  CHECK_GT(options_.max_in_flight, 0u);
  CHECK(!options_.idempotent || options_.max_in_flight <= 5)
      << "an idempotent producer has at most 5 batches in flight, for brokers remember no more";
}

Producer::Core::~Core() {
  executor_.Cancel(timer_);
  executor_.Cancel(close_timer_);
}

absl::Status Producer::Core::Accept(Inbox::Entry entry) {
  entry.sent_at = executor_.clock().Now();
  if (!entry.record.timestamp_ms) {
    entry.record.timestamp_ms = executor_.clock().WallNow().unix_millis();
  }
  bool wake = false;
  absl::Status status = inbox_->Put(std::move(entry), wake);
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
  TakeIn();
  RouteWaiting(now);
  ExpireAndRenew(now);
  RetryMoved(now);
  SendAll(now);
  TellCompleted();
  CheckFlushes();
  ArmTimer(now);
}

void Producer::Core::Count(uint64_t generation, int64_t change) {
  const auto it = counts_.try_emplace(generation).first;
  it->second += change;
  if (it->second == 0) counts_.erase(it);
}

void Producer::Core::TakeIn() {
  for (Inbox::Entry& entry : inbox_->Take()) {
    const std::string name = entry.record.topic;
    entry.generation = generation_;
    Count(generation_, 1);
    const auto [it, fresh] = topics_.try_emplace(
        name, Topic{{}, StickyPartitioner(random_.Fork(name), options_.batch_bytes)});
    if (fresh) metadata_.Watch(name);
    const MetadataCache::Topic* metadata = metadata_.Find(name);
    if (!it->second.waiting.empty() || metadata == nullptr || !metadata->status.ok()) {
      it->second.waiting.push_back(std::move(entry));
    } else {
      Route(name, it->second, *metadata, std::move(entry));
    }
  }
}

PartitionIndex Producer::Core::Choose(const std::string& name, Topic& topic,
                                      const MetadataCache::Topic& metadata,
                                      const Inbox::Entry& entry) {
  const auto count = static_cast<int32_t>(metadata.partitions.size());
  if (entry.record.partition) return *entry.record.partition;
  if (entry.record.key) return PartitionForKey(*entry.record.key, count);
  const PartitionIndex current = topic.sticky.current();
  if (current.value() >= 0 && !topic.sticky.full() && metadata_.LeaderOf({name, current})) {
    return topic.sticky.Stay(entry.bytes);
  }
  std::vector<PartitionIndex> available;
  for (int32_t i = 0; i < count; ++i) {
    if (metadata_.LeaderOf({name, PartitionIndex(i)})) available.push_back(PartitionIndex(i));
  }
  if (available.empty()) {
    for (int32_t i = 0; i < count; ++i) available.push_back(PartitionIndex(i));
  }
  return topic.sticky.Choose(available, entry.bytes);
}

void Producer::Core::Route(const std::string& name, Topic& topic,
                           const MetadataCache::Topic& metadata, Inbox::Entry entry) {
  const PartitionIndex index = Choose(name, topic, metadata, entry);
  if (static_cast<size_t>(index.value()) >= metadata.partitions.size()) {
    // One that was added since would be known next time.
    metadata_.Refresh();
    return FailEntry(
        std::move(entry), index,
        MakeError(v1::INVALID_PARTITIONS,
                  absl::StrCat("topic \"", name, "\" has ", metadata.partitions.size(),
                               " partitions, counted from 0, and no partition ", index.value())));
  }
  const TopicPartition partition{name, index};
  const uint64_t generation = QueueOf(partition).Add(
      ViewOf(entry.record), entry.bytes, std::move(entry.done), entry.sent_at, entry.generation);
  if (generation != entry.generation) {
    Count(entry.generation, -1);
    Count(generation, 1);
  }
  active_.insert(partition);
}

void Producer::Core::FailEntry(Inbox::Entry entry, PartitionIndex partition,
                               const absl::Status& why) {
  auto batch = std::make_shared<ProduceBatch>(Compression::kNone, entry.sent_at, entry.sent_at);
  batch->Add(ViewOf(entry.record), entry.bytes, std::move(entry.done));
  batch->generation = entry.generation;
  batch->result = why;
  completed_.push_back({{entry.record.topic, partition}, std::move(batch)});
}

void Producer::Core::FailWaiting(Topic& topic, const absl::Status& why) {
  for (Inbox::Entry& entry : topic.waiting) FailEntry(std::move(entry), PartitionIndex(-1), why);
  topic.waiting.clear();
}

void Producer::Core::RouteWaiting(MonotonicTime now) {
  for (auto& [name, topic] : topics_) {
    if (topic.waiting.empty()) continue;
    const MetadataCache::Topic* metadata = metadata_.Find(name);
    if (metadata != nullptr && metadata->status.ok()) {
      while (!topic.waiting.empty()) {
        Inbox::Entry entry = std::move(topic.waiting.front());
        topic.waiting.pop_front();
        Route(name, topic, *metadata, std::move(entry));
      }
      continue;
    }
    if (metadata != nullptr) {
      const bool final = !IsRetriable(metadata->status) ||
                         (metadata->unknown_since &&
                          now >= *metadata->unknown_since + options_.unknown_topic_timeout);
      // An answer from before the first record says nothing about the topic of now.
      const bool fresh = !IsRetriable(metadata->status) ||
                         now >= topic.waiting.front().sent_at + options_.unknown_topic_timeout;
      if (final && fresh) {
        FailWaiting(topic, metadata->status);
        continue;
      }
      metadata_.Refresh();
    }
    while (!topic.waiting.empty() &&
           topic.waiting.front().sent_at + options_.delivery_timeout <= now) {
      const absl::Status& last = metadata_.last_failure();
      FailEntry(std::move(topic.waiting.front()), PartitionIndex(-1),
                MakeError(v1::LEADER_NOT_AVAILABLE,
                          absl::StrCat("no broker told of topic \"", name, "\" within ",
                                       options_.delivery_timeout.milliseconds(), " ms (",
                                       options_.delivery_timeout_name, "): ",
                                       last.ok() ? "none knows it" : std::string(last.message()))));
      topic.waiting.pop_front();
    }
  }
}

PartitionQueue& Producer::Core::QueueOf(const TopicPartition& partition) {
  const auto found = queues_.find(partition);
  if (found != queues_.end()) return found->second;
  return queues_
      .try_emplace(partition, partition, QueueOptions(options_), random_.Fork(ToString(partition)))
      .first->second;
}

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

void Producer::Core::Collect(PartitionQueue& queue) {
  for (auto& batch : queue.TakeCompleted()) {
    completed_.push_back({queue.partition(), std::move(batch)});
  }
  if (queue.empty()) active_.erase(queue.partition());
}

void Producer::Core::ExpireAndRenew(MonotonicTime now) {
  if (!active_.empty() && options_.idempotent && options_.acks != v1::ACKS_NONE) {
    identity_.Ensure();
  }
  for (auto it = active_.begin(); it != active_.end();) {
    const TopicPartition partition = *it++;  // Collect may take it out.
    PartitionQueue& queue = QueueOf(partition);
    queue.Expire(now, Obstacle(partition));
    if (queue.NeedsNewIdentity(identity_.current())) identity_.Replace(identity_.current());
    Collect(queue);
  }
}

void Producer::Core::SendAll(MonotonicTime now) {
  if (close_done_ && closing_ > 0) return;
  while (SendRound(now)) {
  }
}

bool Producer::Core::SendRound(MonotonicTime now) {
  std::map<BrokerId, std::vector<ProduceConnection::Item>> requests;
  std::map<BrokerId, size_t> bytes;
  std::vector<TopicPartition> order(active_.lower_bound(turn_), active_.end());
  order.insert(order.end(), active_.begin(), active_.lower_bound(turn_));
  bool turned = false;
  for (const TopicPartition& partition : order) {
    const auto leader = metadata_.LeaderOf(partition);
    if (!leader) {
      metadata_.Refresh();
      continue;
    }
    size_t& size = bytes[leader->broker];
    if (!ConnectionTo(*leader).HasRoom() || size >= options_.request_bytes) {
      // It comes first when there is room again.
      if (!std::exchange(turned, true)) turn_ = partition;
      continue;
    }
    PartitionQueue& queue = QueueOf(partition);
    auto batch = queue.Next(now, identity_.current(), hurry());
    Collect(queue);
    if (batch == nullptr) continue;
    size += batch->encoded_bytes();
    requests[leader->broker].push_back(
        {partition, metadata_.Find(partition.topic)->id, std::move(batch)});
  }
  for (auto& [broker, items] : requests) connections_[broker]->Send(std::move(items));
  return !requests.empty();
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
    failed_.erase(item.partition);
    PartitionQueue& queue = QueueOf(item.partition);
    item.batch->duplicate = result.duplicate();
    queue.Succeeded(*item.batch, Offset(result.base_offset()));
    Collect(queue);
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
  bool moved = metadata_.Learn(item.partition, ErrorFromStatus(status).hint());
  if (!moved) {
    // Another partition's refusal, or a refresh, may have told it before.
    const auto leader = metadata_.LeaderOf(item.partition);
    moved = leader && leader->endpoint != from.endpoint();
    if (may_have_moved) failed_.try_emplace(item.partition, leader);
    if (IsRetriable(status)) metadata_.Refresh();
  }
  PartitionQueue& queue = QueueOf(item.partition);
  queue.Failed(*item.batch, status, unknown, moved, executor_.clock().Now());
  Collect(queue);
  Wake();
}

void Producer::Core::RetryMoved(MonotonicTime now) {
  std::erase_if(failed_, [&](const auto& failed) {
    const auto& [partition, before] = failed;
    if (!active_.contains(partition)) return true;  // Nothing waits any more.
    const auto leader = metadata_.LeaderOf(partition);
    if (!leader || (before && before->epoch == leader->epoch)) return false;
    QueueOf(partition).LeaderMoved(now);
    return true;
  });
  if (!failed_.empty()) metadata_.Refresh();
}

void Producer::Core::TellCompleted() {
  const auto completed = std::exchange(completed_, {});
  for (const Completed& one : completed) {
    ProduceBatch& batch = *one.batch;
    const int32_t count = batch.count();
    Count(batch.generation, -count);
    inbox_->Free(batch.buffer_bytes());
    batch.Complete(one.partition, *batch.result, batch.base_offset);
  }
}

void Producer::Core::Flush(absl::AnyInvocable<void()> done) {
  TakeIn();
  flushes_.push_back({generation_++, std::move(done)});
  Wake();
}

void Producer::Core::CheckFlushes() {
  while (!flushes_.empty() &&
         (counts_.empty() || counts_.begin()->first > flushes_.front().generation)) {
    auto done = std::move(flushes_.front().done);
    flushes_.pop_front();
    done();
  }
}

void Producer::Core::Close(Duration timeout, absl::AnyInvocable<void()> done) {
  CHECK(!closed_) << "Close is called once";
  closed_ = true;
  inbox_->Close();
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
  for (auto& [name, topic] : topics_) FailWaiting(topic, why);
  for (auto& [partition, queue] : queues_) {
    queue.Abort(why);
    Collect(queue);
  }
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

void Producer::Core::ArmTimer(MonotonicTime now) {
  MonotonicTime at = MonotonicTime::Never();
  for (const TopicPartition& partition : active_) {
    const auto wake = QueueOf(partition).WakeAt(now);
    if (wake) at = std::min(at, *wake);
  }
  for (const auto& [name, topic] : topics_) {
    if (topic.waiting.empty()) continue;
    at = std::min(at, topic.waiting.front().sent_at + options_.delivery_timeout);
  }
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
