#include "client/consumer/consumer.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {

Consumer::Consumer(ConsumerOptions options, Transport& transport, Executor& executor,
                   const Random& random)
    : options_(std::move(options)),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("consumer")),
      metadata_({.bootstrap = options_.bootstrap}, transport, executor, random, [this] { Wake(); }),
      lookup_(metadata_, transport, executor, random) {}

Consumer::~Consumer() {
  executor_.Cancel(timer_);
  if (poll_) executor_.Cancel(poll_->timer);
}

// --- What users call

void Consumer::Assign(const std::vector<Assignment>& partitions) {
  std::map<TopicPartition, Partition> assigned;
  for (const Assignment& assignment : partitions) {
    const auto before = partitions_.find(assignment.partition);
    Partition& partition = assigned[assignment.partition];
    if (before != partitions_.end()) {
      partition = std::move(before->second);
    } else {
      partition.start = assignment.start;
      partition.generation = ++last_generation_;
    }
    metadata_.Watch(assignment.partition.topic);
  }
  std::set<std::string> topics;
  for (const auto& [name, partition] : assigned) topics.insert(name.topic);
  for (const auto& [name, partition] : partitions_) {
    if (topics.count(name.topic) == 0) metadata_.Unwatch(name.topic);
  }
  partitions_ = std::move(assigned);
  Wake();
}

void Consumer::Poll(size_t max_records, MonotonicTime deadline,
                    absl::AnyInvocable<void(PollResult)> done) {
  CHECK_GT(max_records, 0u);
  if (poll_) {
    return done(
        MakeError(v1::INVALID_REQUEST, "a Poll is under way; call it again when that one is done"));
  }
  poll_.emplace(PendingPoll{max_records, deadline, std::move(done), TimerId()});
  if (deadline != MonotonicTime::Never()) {
    poll_->timer = executor_.PostAt(deadline, lifetime_.Guard([this] { Wake(); }));
  }
  Wake();
}

bool Consumer::Seek(const TopicPartition& name, StartAt start) {
  Partition* partition = Find(name);
  if (partition == nullptr) return false;
  const bool paused = partition->paused;
  *partition = Partition();
  partition->start = start;
  partition->paused = paused;
  partition->generation = ++last_generation_;
  Wake();
  return true;
}

std::optional<Offset> Consumer::Position(const TopicPartition& name) const {
  const Partition* partition = Find(name);
  if (partition == nullptr || partition->state != Partition::State::kFetching) return std::nullopt;
  return partition->buffer.position();
}

LeaderEpoch Consumer::PositionEpoch(const TopicPartition& name) const {
  const Partition* partition = Find(name);
  return partition == nullptr ? LeaderEpoch(-1) : partition->epoch.value_or(LeaderEpoch(-1));
}

std::optional<Offset> Consumer::HighWatermark(const TopicPartition& name) const {
  const Partition* partition = Find(name);
  return partition == nullptr ? std::nullopt : partition->high_watermark;
}

bool Consumer::Pause(const TopicPartition& name) {
  Partition* partition = Find(name);
  if (partition == nullptr) return false;
  partition->paused = true;
  Wake();
  return true;
}

bool Consumer::Resume(const TopicPartition& name) {
  Partition* partition = Find(name);
  if (partition == nullptr) return false;
  partition->paused = false;
  Wake();
  return true;
}

void Consumer::ListOffsets(OffsetQuery query, MonotonicTime deadline, OffsetLookup::Done done) {
  lookup_.Ask(std::move(query), deadline, std::move(done));
}

void Consumer::Partitions(const std::string& topic, MonotonicTime deadline, PartitionsDone done) {
  asked_partitions_.push_back({topic, executor_.clock().Now(), deadline, std::move(done)});
  Wake();
}

// --- The round

void Consumer::Wake() {
  if (std::exchange(serve_posted_, true)) return;
  executor_.Post(lifetime_.Guard([this] {
    serve_posted_ = false;
    Serve();
  }));
}

void Consumer::Serve() {
  lookup_.Wake();
  CheckTopics();
  LookUp();
  Stream();
  ArmTimer();
  ServePartitions();
  ServePoll();
}

// A position is one of a topic's id; under another id there is none.
void Consumer::CheckTopics() {
  std::vector<ConsumerEvent> events;
  for (auto& [name, partition] : partitions_) {
    const MetadataCache::Topic* topic = metadata_.Find(name.topic);
    // What failed rests, whatever becomes of its topic.
    if (topic == nullptr || partition.state == Partition::State::kFailed) continue;
    if (!topic->status.ok()) {
      if (CheckDeleted(name, partition, *topic)) continue;
      if (std::exchange(partition.told_missing, true)) continue;
      LOG(WARNING) << ToString(name) << " is waited for: " << Describe(topic->status);
      events.push_back(
          {ConsumerEvent::Kind::kTrouble, name, Offset(-1), Offset(-1), topic->status});
      continue;
    }
    partition.told_missing = false;
    if (partition.topic_id == topic->id) continue;
    const bool anew = !partition.topic_id.IsNone();
    partition.topic_id = topic->id;
    if (!anew) continue;
    if (partition.state != Partition::State::kFetching) {
      // What was looked up is of the topic before.
      partition.state = Partition::State::kNeedsPosition;
      partition.generation = ++last_generation_;
      continue;
    }
    Reset(name, partition,
          MakeError(v1::UNKNOWN_TOPIC_ID,
                    absl::StrCat("topic \"", name.topic,
                                 "\" was deleted and made anew; its offsets begin again")));
  }
  for (ConsumerEvent& event : events) Tell(std::move(event));
}

bool Consumer::CheckDeleted(const TopicPartition& name, Partition& partition,
                            const MetadataCache::Topic& topic) {
  // One that never was may still come; and what was fetched is handed out first.
  if (partition.topic_id.IsNone() || !topic.unknown_since || !partition.buffer.empty())
    return false;
  if (executor_.clock().Now() < *topic.unknown_since + options_.unknown_topic_timeout) return false;
  Fail(name, partition,
       MakeError(
           v1::UNKNOWN_TOPIC_OR_PARTITION,
           absl::StrCat(ToString(name), ": topic \"", name.topic, "\", of the id ",
                        partition.topic_id.ToString(),
                        ", was deleted: the cluster knows it no more. Assign other partitions, "
                        "or seek to where to begin once it is made anew")));
  return true;
}

// --- Positions

void Consumer::LookUp() {
  const MonotonicTime now = executor_.clock().Now();
  for (auto& [name, partition] : partitions_) {
    if (partition.state == Partition::State::kNeedsPosition && partition.not_before <= now) {
      LookUp(name, partition);
    }
  }
}

void Consumer::LookUp(const TopicPartition& name, Partition& partition) {
  OffsetQuery query{name, v1::OFFSET_SPEC_EARLIEST, 0};
  StartAt start = partition.start;
  if (start.kind == StartAt::Kind::kOffset && !partition.resetting) {
    return Place(partition, start.offset, start.epoch);
  }
  if (start.kind == StartAt::Kind::kPolicy || partition.resetting) {
    partition.resetting = true;
    switch (options_.reset) {
      case ResetPolicy::kEarliest:
        start = StartAt::Earliest();
        break;
      case ResetPolicy::kLatest:
        start = StartAt::Latest();
        break;
      case ResetPolicy::kByDuration:
        start = StartAt::Timestamp(std::max<int64_t>(
            0, executor_.clock().WallNow().unix_millis() - options_.reset_duration.milliseconds()));
        break;
      case ResetPolicy::kNone:
        // The bounds tell whether the position is out of them.
        start = StartAt::Earliest();
        break;
    }
  }
  if (start.kind == StartAt::Kind::kLatest) query.spec = v1::OFFSET_SPEC_LATEST;
  if (start.kind == StartAt::Kind::kTimestamp) {
    query.spec = v1::OFFSET_SPEC_TIMESTAMP;
    query.timestamp_ms = start.timestamp_ms;
  }
  partition.state = Partition::State::kLookingUp;
  lookup_.Ask(std::move(query), MonotonicTime::Never(),
              lifetime_.Guard([this, name = name, generation = partition.generation](
                                  absl::StatusOr<OffsetAnswer> answer) {
                LookedUp(name, generation, std::move(answer));
              }));
}

void Consumer::LookedUp(const TopicPartition& name, uint64_t generation,
                        absl::StatusOr<OffsetAnswer> answer) {
  Partition* partition = Find(name);
  if (partition == nullptr || partition->generation != generation) return;
  if (!answer.ok()) return Fail(name, *partition, answer.status());
  partition->high_watermark = answer->high_watermark;
  Offset position = answer->offset.value() >= 0 ? answer->offset : answer->high_watermark;
  const LeaderEpoch epoch = answer->leader_epoch;
  if (!partition->resetting) return Place(*partition, position, epoch);
  const Offset from = partition->reset_from;
  const bool out_of_range = ErrorCodeOf(partition->reset_reason) == v1::OFFSET_OUT_OF_RANGE;
  if (out_of_range && from >= answer->log_start && from <= answer->log_end) {
    // The broker that refused it was behind; the leader has it.
    partition->resetting = false;
    return Place(*partition, from, epoch);
  }
  const std::string bounds = absl::StrCat("the log holds offsets ", answer->log_start.value(),
                                          " to ", answer->log_end.value(), " (exclusive)");
  if (options_.reset == ResetPolicy::kNone) {
    const std::string what =
        from.value() < 0 ? "there is no position"
                         : absl::StrCat("position ", from.value(), " cannot be kept (",
                                        std::string(partition->reset_reason.message()), ")");
    return Fail(name, *partition,
                MakeError(v1::OFFSET_OUT_OF_RANGE, absl::StrCat(ToString(name), ": ", what,
                                                                ", and the reset policy is none; ",
                                                                bounds, "; say where to go on")));
  }
  partition->resetting = false;
  ConsumerEvent event{ConsumerEvent::Kind::kReset, name, from, position, partition->reset_reason};
  const std::string what = absl::StrCat(
      "position of ", ToString(name), " is set by the reset policy, from ",
      from.value() < 0 ? "none" : ToString(from), " to ", position.value(), "; ", bounds);
  if (from.value() < 0) {
    LOG(INFO) << what;
  } else {
    LOG(WARNING) << what << ". Why: " << Describe(event.status);
  }
  Place(*partition, position, epoch);
  Tell(std::move(event));
}

// The policy will set a new position, once the bounds are known.
void Consumer::Reset(const TopicPartition& name, Partition& partition, const absl::Status& why) {
  VLOG(1) << ToString(name) << " has no position any more: " << Describe(why);
  partition.reset_from =
      partition.state == Partition::State::kFetching ? partition.buffer.position() : Offset(-1);
  partition.reset_reason = why;
  partition.resetting = true;
  partition.state = Partition::State::kNeedsPosition;
  partition.buffer.Reset(Offset(0));
  partition.epoch.reset();
  partition.checking = false;
  partition.generation = ++last_generation_;
}

void Consumer::Place(Partition& partition, Offset position, LeaderEpoch epoch) {
  partition.buffer.Reset(position);
  partition.epoch = epoch < LeaderEpoch(0) ? std::nullopt : std::optional(epoch);
  partition.checking = false;
  partition.state = Partition::State::kFetching;
  partition.generation = ++last_generation_;
  Wake();
}

void Consumer::Fail(const TopicPartition& name, Partition& partition, absl::Status why) {
  LOG(INFO) << ToString(name) << " cannot be read on: " << Describe(why);
  partition.state = Partition::State::kFailed;
  partition.failure = std::move(why);
  partition.generation = ++last_generation_;
  Wake();
}

void Consumer::Tell(ConsumerEvent event) {
  if (options_.on_event) options_.on_event(event);
}

Consumer::Partition* Consumer::Find(const TopicPartition& name) {
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? nullptr : &found->second;
}

const Consumer::Partition* Consumer::Find(const TopicPartition& name) const {
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? nullptr : &found->second;
}

// --- Handing out

void Consumer::ServePoll() {
  if (!poll_) return;
  PollResult result = std::vector<PartitionRecords>();
  bool done = poll_->deadline <= executor_.clock().Now();
  for (auto& [name, partition] : partitions_) {
    if (!partition.failure) continue;
    result = *std::exchange(partition.failure, std::nullopt);
    done = true;
    break;
  }
  if (result.ok()) {
    result = TakeRecords(poll_->max_records);
    done = done || !result->empty();
  }
  if (!done) return;
  executor_.Cancel(poll_->timer);
  auto tell = std::move(poll_->done);
  poll_.reset();
  tell(std::move(result));
}

std::vector<PartitionRecords> Consumer::TakeRecords(size_t max_records) {
  std::vector<PartitionRecords> all;
  std::vector<TopicPartition> order;
  for (auto it = partitions_.lower_bound(turn_); it != partitions_.end(); ++it) {
    order.push_back(it->first);
  }
  for (auto it = partitions_.begin(); it != partitions_.lower_bound(turn_); ++it) {
    order.push_back(it->first);
  }
  std::vector<ConsumerEvent> events;
  for (const TopicPartition& name : order) {
    Partition& partition = *Find(name);
    const FetchBuffer& buffer = partition.buffer;
    const bool more = !buffer.empty() || buffer.fetch_offset() != buffer.position();
    if (partition.state != Partition::State::kFetching || partition.paused || !more) continue;
    if (max_records == 0) {
      turn_ = name;
      break;
    }
    FetchBuffer::Taken taken;
    partition.buffer.Take(max_records, taken);
    for (const auto& [from, to] : taken.holes) {
      events.push_back({ConsumerEvent::Kind::kHole, name, from, to, absl::OkStatus()});
    }
    for (absl::Status& status : taken.malformed) {
      LOG(WARNING) << ToString(name) << ": " << Describe(status);
      events.push_back({ConsumerEvent::Kind::kMalformed, name, Offset(-1), Offset(-1), status});
    }
    if (taken.records.empty()) continue;
    max_records -= taken.records.size();
    all.push_back(
        {name, std::move(taken.records), partition.buffer.position(), std::move(taken.keep)});
  }
  for (const auto& [endpoint, connection] : connections_) Throttle(*connection);
  for (ConsumerEvent& event : events) Tell(std::move(event));
  return all;
}

void Consumer::ServePartitions() {
  const MonotonicTime now = executor_.clock().Now();
  for (auto it = asked_partitions_.begin(); it != asked_partitions_.end();) {
    metadata_.Watch(it->topic);
    const MetadataCache::Topic* topic = metadata_.Find(it->topic);
    absl::StatusOr<std::vector<PartitionIndex>> answer = std::vector<PartitionIndex>();
    if (topic != nullptr && topic->status.ok()) {
      for (size_t i = 0; i < topic->partitions.size(); ++i) {
        answer->push_back(PartitionIndex(static_cast<int32_t>(i)));
      }
    } else if (topic != nullptr && (!IsRetriable(topic->status) ||
                                    now >= it->asked_at + options_.unknown_topic_timeout)) {
      answer = topic->status;
    } else if (metadata_.nobody_serves()) {
      // Asking again would bring the same.
      answer = metadata_.last_failure();
    } else if (now >= it->deadline) {
      const absl::Status& last = metadata_.last_failure();
      answer = MakeError(v1::REQUEST_TIMED_OUT,
                         absl::StrCat("no broker told the partitions of \"", it->topic,
                                      "\" in time: ", std::string(last.message())));
    } else {
      metadata_.Refresh();
      ++it;
      continue;
    }
    auto done = std::move(it->done);
    it = asked_partitions_.erase(it);
    done(std::move(answer));
  }
}

void Consumer::ArmTimer() {
  const MonotonicTime now = executor_.clock().Now();
  MonotonicTime at = MonotonicTime::Never();
  for (const auto& [name, partition] : partitions_) {
    if (partition.not_before > now) at = std::min(at, partition.not_before);
    const MetadataCache::Topic* topic = metadata_.Find(name.topic);
    if (topic == nullptr || !topic->unknown_since) continue;
    const MonotonicTime deleted = *topic->unknown_since + options_.unknown_topic_timeout;
    if (deleted > now) at = std::min(at, deleted);
  }
  for (const PendingPartitions& asked : asked_partitions_) at = std::min(at, asked.deadline);
  executor_.Cancel(timer_);
  if (at == MonotonicTime::Never()) return;
  timer_ = executor_.PostAt(at, lifetime_.Guard([this] { Wake(); }));
}

}  // namespace conclave
