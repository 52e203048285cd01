#include "client/producer/record_accumulator.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {

absl::Status RecordAccumulator::Append(const ProducerRecord& record, DeliveryDone&& done,
                                       absl::FunctionRef<MonotonicTime()> now, int64_t now_ms,
                                       bool& wake) {
  wake = false;
  const size_t bytes = BufferBytes(record);
  std::lock_guard lock(mutex_);
  if (closed_) {
    return MakeError(v1::NOT_READY, "the producer is closed; make another to send more");
  }
  if (bytes > options_.buffer_bytes) {
    return MakeError(v1::MESSAGE_TOO_LARGE, absl::StrCat("the record takes ", bytes,
                                                         " bytes and the producer's "
                                                         "whole buffer has ",
                                                         options_.buffer_bytes));
  }
  if (used() + bytes > options_.buffer_bytes) {
    return MakeError(
        v1::OVERLOADED,
        absl::StrCat("the producer's buffer is full (", used(), " of ", options_.buffer_bytes,
                     " bytes); wait for room, and send the record again"));
  }
  SetUsed(used() + bytes);
  Topic& topic = TopicOf(record.topic);
  // Those that wait come first.
  const auto lane = topic.waiting.empty() ? Route(topic, record, bytes) : std::nullopt;
  if (lane) {
    AddTo(*lane, ViewOf(record, now_ms), bytes, std::move(done), now, generation_);
  } else {
    topic.waiting.push_back({record, std::move(done), bytes, now(), generation_});
    topic.waiting.back().record.timestamp_ms = record.timestamp_ms.value_or(now_ms);
    TellOf(topic);
  }
  const bool news = !news_.lanes.empty() || !news_.topics.empty();
  wake = news && !std::exchange(told_, true);
  return absl::OkStatus();
}

RecordAccumulator::Topic& RecordAccumulator::TopicOf(const std::string& name) {
  if (last_topic_ != nullptr && last_topic_->name == name) return *last_topic_;
  std::unique_ptr<Topic>& topic = topics_[name];
  if (topic == nullptr) {
    topic = std::make_unique<Topic>();
    topic->name = name;
    topic->batch_bytes = options_.batches.batch_bytes;
    topic->sticky.emplace(random_.Fork(name), topic->batch_bytes);
  }
  last_topic_ = topic.get();
  return *topic;
}

PartitionIndex RecordAccumulator::Choose(Topic& topic, const ProducerRecord& record, size_t bytes) {
  if (record.partition) return *record.partition;
  if (record.key) return PartitionForKey(*record.key, static_cast<int32_t>(topic.lanes.size()));
  const PartitionIndex current = topic.sticky->current();
  if (current.value() >= 0 && !topic.sticky->full() &&
      topic.has_leader[static_cast<size_t>(current.value())]) {
    return topic.sticky->Stay(bytes);
  }
  return topic.sticky->Choose(topic.available, bytes);
}

std::optional<LaneId> RecordAccumulator::Route(Topic& topic, const ProducerRecord& record,
                                               size_t bytes) {
  if (topic.lanes.empty()) return std::nullopt;
  const auto index = static_cast<size_t>(Choose(topic, record, bytes).value());
  if (index >= topic.lanes.size()) return std::nullopt;
  return topic.lanes[index];
}

void RecordAccumulator::AddTo(LaneId id, const RecordView& record, size_t bytes,
                              DeliveryDone&& done, absl::FunctionRef<MonotonicTime()> sent_at,
                              uint64_t generation) {
  Lane& lane = lanes_[id.value()];
  const bool begins =
      lane.batches.Add(record, bytes, std::move(done), sent_at, generation, OptionsOf(lane));
  if (begins && !std::exchange(lane.told, true)) news_.lanes.push_back(id);
}

void RecordAccumulator::TellOf(Topic& topic) {
  if (!std::exchange(topic.told, true)) news_.topics.push_back(topic.name);
}

RecordAccumulator::News RecordAccumulator::TakeNews() {
  std::lock_guard lock(mutex_);
  told_ = false;
  for (const LaneId lane : news_.lanes) lanes_[lane.value()].told = false;
  for (const std::string& topic : news_.topics) TopicOf(topic).told = false;
  return std::exchange(news_, {});
}

LaneId RecordAccumulator::AddLane() {
  std::lock_guard lock(mutex_);
  lanes_.push_back({BatchLane(), options_.batches.batch_bytes});
  return LaneId(static_cast<uint32_t>(lanes_.size() - 1));
}

std::vector<RecordAccumulator::Waiting> RecordAccumulator::SetPartitions(
    const std::string& name, std::vector<LaneId> lanes, std::vector<bool> has_leader) {
  CHECK(!lanes.empty() && lanes.size() == has_leader.size()) << name;
  std::lock_guard lock(mutex_);
  Topic& topic = TopicOf(name);
  // The topic was made anew with fewer.
  if (lanes.size() < topic.lanes.size()) {
    topic.sticky.emplace(random_.Fork(name), topic.batch_bytes);
  }
  topic.lanes = std::move(lanes);
  for (const LaneId lane : topic.lanes) lanes_[lane.value()].batch_bytes = topic.batch_bytes;
  topic.has_leader = std::move(has_leader);
  topic.available.clear();
  const bool any = std::count(topic.has_leader.begin(), topic.has_leader.end(), true) > 0;
  for (size_t i = 0; i < topic.lanes.size(); ++i) {
    if (topic.has_leader[i] || !any) {
      topic.available.push_back(PartitionIndex(static_cast<int32_t>(i)));
    }
  }
  std::vector<Waiting> misdirected;
  for (Waiting& one : topic.waiting) {
    const auto lane = Route(topic, one.record, one.bytes);
    if (lane) {
      AddTo(
          *lane, ViewOf(one.record, 0), one.bytes, std::move(one.done),
          [&one] { return one.sent_at; }, one.generation);
    } else {
      misdirected.push_back(std::move(one));
    }
  }
  topic.waiting.clear();
  return misdirected;
}

void RecordAccumulator::LimitBatches(const std::string& name, size_t bytes) {
  std::lock_guard lock(mutex_);
  Topic& topic = TopicOf(name);
  if (bytes >= topic.batch_bytes) return;
  topic.batch_bytes = bytes;
  for (const LaneId lane : topic.lanes) lanes_[lane.value()].batch_bytes = bytes;
}

BatchLane::Options RecordAccumulator::OptionsOf(const Lane& lane) const {
  BatchLane::Options options = options_.batches;
  options.batch_bytes = lane.batch_bytes;
  return options;
}

void RecordAccumulator::ForgetPartitions(const std::string& name) {
  std::lock_guard lock(mutex_);
  Topic& topic = TopicOf(name);
  topic.lanes.clear();
  topic.has_leader.clear();
  topic.available.clear();
}

std::optional<MonotonicTime> RecordAccumulator::OldestWaiting(const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto found = topics_.find(name);
  if (found == topics_.end() || found->second->waiting.empty()) return std::nullopt;
  return found->second->waiting.front().sent_at;
}

std::vector<RecordAccumulator::Waiting> RecordAccumulator::TakeWaiting(const std::string& name,
                                                                       MonotonicTime sent_until) {
  std::lock_guard lock(mutex_);
  std::deque<Waiting>& waiting = TopicOf(name).waiting;
  std::vector<Waiting> taken;
  while (!waiting.empty() && waiting.front().sent_at <= sent_until) {
    taken.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  return taken;
}

RecordAccumulator::Taken RecordAccumulator::Take(LaneId id, MonotonicTime now, bool no_linger) {
  std::lock_guard lock(mutex_);
  BatchLane& batches = lanes_[id.value()].batches;
  Taken taken{batches.Take(now, no_linger, OptionsOf(lanes_[id.value()])), std::nullopt};
  if (taken.batch == nullptr && !batches.empty()) {
    taken.ready_at = batches.front().created() + options_.batches.linger;
  }
  return taken;
}

bool RecordAccumulator::HasFull(LaneId id) const {
  std::lock_guard lock(mutex_);
  const Lane& lane = lanes_[id.value()];
  return lane.batches.HasFull(OptionsOf(lane));
}

std::shared_ptr<ProduceBatch> RecordAccumulator::TakeExpired(LaneId id, MonotonicTime now) {
  std::lock_guard lock(mutex_);
  return lanes_[id.value()].batches.TakeExpired(now);
}

std::optional<MonotonicTime> RecordAccumulator::Deadline(LaneId id) const {
  std::lock_guard lock(mutex_);
  const BatchLane& batches = lanes_[id.value()].batches;
  if (batches.empty()) return std::nullopt;
  return batches.front().deadline();
}

uint64_t RecordAccumulator::NextGeneration() {
  std::lock_guard lock(mutex_);
  return generation_++;
}

std::optional<uint64_t> RecordAccumulator::OldestGeneration() const {
  std::lock_guard lock(mutex_);
  std::optional<uint64_t> oldest;
  const auto consider = [&oldest](uint64_t generation) {
    oldest = std::min(oldest.value_or(generation), generation);
  };
  for (const Lane& lane : lanes_) {
    if (!lane.batches.empty()) consider(lane.batches.front().generation);
  }
  for (const auto& [name, topic] : topics_) {
    if (!topic->waiting.empty()) consider(topic->waiting.front().generation);
  }
  return oldest;
}

size_t RecordAccumulator::used() const { return used_.load(std::memory_order_relaxed); }

// --- Room

void RecordAccumulator::WhenRoom(size_t bytes, absl::AnyInvocable<void()> room) {
  std::unique_lock lock(mutex_);
  room_waiters_.push_back({std::min(bytes, options_.buffer_bytes), std::move(room)});
  auto free = TakeRoomWaiters();
  lock.unlock();
  LetGo(std::move(free));
}

void RecordAccumulator::Free(size_t bytes) {
  std::unique_lock lock(mutex_);
  SetUsed(used() - bytes);
  auto free = TakeRoomWaiters();
  lock.unlock();
  LetGo(std::move(free));
}

void RecordAccumulator::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  auto free = TakeRoomWaiters();
  lock.unlock();
  LetGo(std::move(free));
}

std::vector<absl::AnyInvocable<void()>> RecordAccumulator::TakeRoomWaiters() {
  std::vector<absl::AnyInvocable<void()>> free;
  while (!room_waiters_.empty() &&
         (closed_ || used() + room_waiters_.front().bytes <= options_.buffer_bytes)) {
    free.push_back(std::move(room_waiters_.front().room));
    room_waiters_.pop_front();
  }
  return free;
}

void RecordAccumulator::LetGo(std::vector<absl::AnyInvocable<void()>> waiters) {
  for (auto& room : waiters) executor_.Post(std::move(room));
}

}  // namespace conclave
