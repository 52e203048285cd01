#ifndef CONCLAVE_CLIENT_CONSUMER_CONSUMER_H_
#define CONCLAVE_CLIENT_CONSUMER_CONSUMER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "client/consumer/fetch_buffer.h"
#include "client/consumer/fetch_connection.h"
#include "client/consumer/offset_lookup.h"
#include "client/metadata/metadata_cache.h"
#include "common/buffer/buffer.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/record/record_view.h"
#include "common/rpc/fetch_methods.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave {

// Where to begin where there is no position, or it is out of the log's range (auto.offset.reset;
// by_duration is KIP-1106).
enum class ResetPolicy { kEarliest, kLatest, kNone, kByDuration };

// Where a partition's consumption begins.
struct StartAt {
  enum class Kind {
    kPolicy,     // No position is known: the reset policy decides.
    kOffset,     // At `offset`.
    kEarliest,   // At the first record there is.
    kLatest,     // At the high watermark: what comes from now on.
    kTimestamp,  // At the first record not older than `timestamp_ms`; latest if there is none.
  };
  Kind kind = Kind::kPolicy;
  Offset offset;
  // Milliseconds since 1970.
  int64_t timestamp_ms = 0;
  // With kOffset: as PositionEpoch gave it for that position; -1: not known, and not checked.
  LeaderEpoch epoch{-1};

  static StartAt Policy() { return {}; }
  static StartAt At(Offset offset, LeaderEpoch epoch = LeaderEpoch(-1)) {
    return {Kind::kOffset, offset, 0, epoch};
  }
  static StartAt Earliest() { return Of(Kind::kEarliest, 0); }
  static StartAt Latest() { return Of(Kind::kLatest, 0); }
  static StartAt Timestamp(int64_t ms) { return Of(Kind::kTimestamp, ms); }

 private:
  static StartAt Of(Kind kind, int64_t ms) { return {kind, Offset(), ms, LeaderEpoch(-1)}; }
};

// What a consumer tells beside records.
struct ConsumerEvent {
  enum class Kind {
    // The position was set by the reset policy: from `from` (-1: there was none) to `to`.
    kReset,
    // Records below the position are no longer in the log, for an election outside of the in-sync
    // replicas cut it: from the position `from` it went back to `to`, up to which the log is as it
    // was. What comes there now is other records.
    kTruncated,
    // Offsets [from, to) have no record: the topic is compacted.
    kHole,
    // A batch is malformed inside, as its producer sent it, and was passed over.
    kMalformed,
    // Fetching fails, or the topic is missing, and is tried again.
    kTrouble,
  };
  Kind kind;
  TopicPartition partition;
  Offset from{-1};
  Offset to{-1};
  // Why.
  absl::Status status;
};

struct ConsumerOptions {
  // host:port of brokers; at least one. The others are learnt.
  std::vector<std::string> bootstrap;
  ResetPolicy reset = ResetPolicy::kLatest;
  // For kByDuration: begin with records so old.
  Duration reset_duration;
  // Of record data in one message (fetch.max.bytes), and of one partition in it
  // (max.partition.fetch.bytes). One whole batch comes all the same.
  size_t fetch_bytes = size_t{4} << 20;
  size_t partition_fetch_bytes = size_t{1} << 20;
  // Fetched ahead of Poll from one broker; the message that reaches it is the last until half of
  // it is taken. Paused partitions do not count.
  size_t prefetch_bytes = size_t{8} << 20;
  // How long a topic may be unknown to the cluster before Partitions fails, and before one that was
  // known counts as deleted.
  Duration unknown_topic_timeout = Duration::Seconds(5);
  // How long a partition is tried again after a refusal that is not retriable, as of a leader whose
  // disk is damaged: leadership may move to a replica that is whole. Then Poll tells it.
  Duration final_error_timeout = Duration::Seconds(30);
  // Called on the executor. Resets and trouble are logged too.
  std::function<void(const ConsumerEvent&)> on_event;
};

// Records of one partition, in order, without repeats; together they go on where the last ones
// ended. The views are valid as long as this is.
struct PartitionRecords {
  TopicPartition partition;
  std::vector<RecordView> records;
  // The consumer's position after them.
  Offset next;
  std::vector<std::shared_ptr<const BatchReader>> keep;
};

// Reads partitions that it is assigned by its user; for a member of a group, GroupConsumer assigns
// what the group gives it.
//
// One stream to each broker carries the partitions that it leads; it is opened anew, at the
// position, when assignment or leaders change or it breaks. A change of leader, or any error but
// one, never moves a position. The reset policy is applied where there is no position, where the
// topic was made anew under its name, and where a broker answers OFFSET_OUT_OF_RANGE and the
// partition's bounds confirm it; each time an event tells so.
//
// After a change of leader the new one is asked, before anything is fetched from it, whether its
// log is that of the old one up to the position (KIP-320). Where it is not, the position goes back
// to where the logs part, and an event tells so; with the policy kNone the partition fails with
// LOG_TRUNCATED.
//
// Everything runs on the executor: all methods are called there, callbacks come there, and there it
// is destroyed, not from within its callbacks (or after the executor has stopped). Transport and
// executor outlive it.
//
//   Consumer consumer(options, transport, executor, random);
//   consumer.Assign({{{"t", PartitionIndex(0)}, StartAt::Earliest()}});
//   consumer.Poll(500, clock.Now() + Duration::Seconds(1), [](Consumer::PollResult result) {
//     for (const PartitionRecords& part : *result) Use(part);  // And Poll again.
//   });
class Consumer : private FetchConnection::Owner {
 public:
  struct Assignment {
    TopicPartition partition;
    StartAt start;
  };

  Consumer(ConsumerOptions options, Transport& transport, Executor& executor, const Random& random);
  ~Consumer() override;

  // The partitions to read, all of them. One that was assigned before keeps its position, what is
  // fetched of it, and whether it is paused; its `start` is not looked at. Others begin there.
  void Assign(const std::vector<Assignment>& partitions);

  // Up to `max_records` of them as soon as there are any; none when `deadline` passes before. One
  // call at a time. An error: a partition cannot go on without its user (policy kNone, which makes
  // OFFSET_OUT_OF_RANGE and LOG_TRUNCATED errors; a refusal
  // that is no use repeating, for final_error_timeout; UNKNOWN_TOPIC_OR_PARTITION: its topic was
  // deleted); it is told once, after what was fetched before, and the partition rests until Seek or
  // Assign without it. INVALID_REQUEST: another Poll is under way.
  using PollResult = absl::StatusOr<std::vector<PartitionRecords>>;
  void Poll(size_t max_records, MonotonicTime deadline, absl::AnyInvocable<void(PollResult)> done);

  // The partition goes on elsewhere; what was fetched is dropped. False: it is not assigned.
  bool Seek(const TopicPartition& partition, StartAt start);
  // The offset of the next record that Poll gives. None: not assigned, or not known yet.
  std::optional<Offset> Position(const TopicPartition& partition) const;
  // The leader epoch in whose log the position is known to be, for who stores positions (see
  // StartAt::epoch); -1: not known.
  LeaderEpoch PositionEpoch(const TopicPartition& partition) const;
  // The greatest that a broker has told; none before.
  std::optional<Offset> HighWatermark(const TopicPartition& partition) const;

  // Paused, a partition is not fetched, and Poll passes it over. False: it is not assigned.
  bool Pause(const TopicPartition& partition);
  bool Resume(const TopicPartition& partition);

  // Bounds, or the offset of a time, of any partition. An error is the last one before the
  // deadline.
  void ListOffsets(OffsetQuery query, MonotonicTime deadline, OffsetLookup::Done done);

  // The partitions of a topic. UNKNOWN_TOPIC_OR_PARTITION: the cluster has said for a while that
  // there is none. UNSUPPORTED_VERSION: the bootstrap addresses are no brokers'.
  using PartitionsDone = absl::AnyInvocable<void(absl::StatusOr<std::vector<PartitionIndex>>)>;
  void Partitions(const std::string& topic, MonotonicTime deadline, PartitionsDone done);

 private:
  struct Partition {
    enum class State { kNeedsPosition, kLookingUp, kFetching, kFailed };
    State state = State::kNeedsPosition;
    StartAt start;
    FetchBuffer buffer;
    bool paused = false;
    // Whose log the position is one of; none before the topic was seen.
    TopicId topic_id;
    // It was told that the cluster has no such topic.
    bool told_missing = false;
    // Rises when the position is set, so that what was asked before is known as such.
    uint64_t generation = 0;
    // The leader of this epoch has answered at the position, so its log had it; none: not known.
    // Not the epoch of the last record: that ends before the position where compaction took what
    // came between.
    std::optional<LeaderEpoch> epoch;
    // A leader is being asked whether the position is in its log.
    bool checking = false;
    // The reset policy is at work; the position before, -1 for none, and why.
    bool resetting = false;
    Offset reset_from{-1};
    absl::Status reset_reason;
    MonotonicTime not_before;
    Backoff pause{Duration::Milliseconds(20), Duration::Seconds(1)};
    std::optional<Offset> high_watermark;
    // Since when nothing but refusals that are not retriable were answered.
    std::optional<MonotonicTime> refused_since;
    // kFailed; told by the next Poll, once.
    std::optional<absl::Status> failure;
  };
  struct PendingPoll {
    size_t max_records;
    MonotonicTime deadline;
    absl::AnyInvocable<void(PollResult)> done;
    TimerId timer;
  };
  struct PendingPartitions {
    std::string topic;
    MonotonicTime asked_at;
    MonotonicTime deadline;
    PartitionsDone done;
  };

  // FetchConnection::Owner
  void OnFetched(FetchConnection& from, fetch_methods::FetchResponse response) override;
  void OnEnded(FetchConnection& from, const absl::Status& status) override;
  void OnMayOpen() override { Wake(); }

  // Serve, soon.
  void Wake();
  void Serve();
  void CheckTopics();
  // True: the partition failed, for its topic was deleted.
  bool CheckDeleted(const TopicPartition& name, Partition& partition,
                    const MetadataCache::Topic& topic);
  void LookUp();
  void LookUp(const TopicPartition& name, Partition& partition);
  void LookedUp(const TopicPartition& name, uint64_t generation,
                absl::StatusOr<OffsetAnswer> answer);
  void Reset(const TopicPartition& name, Partition& partition, const absl::Status& why);
  void Place(Partition& partition, Offset position, LeaderEpoch epoch);
  void Fail(const TopicPartition& name, Partition& partition, absl::Status why);
  void Stream();
  // By address: what to ask the leader there, and for which generations.
  struct Check {
    v1::OffsetsForLeaderEpochRequest request;
    FetchConnection::Members members;
  };
  void AddCheck(const TopicPartition& name, Partition& partition, LeaderEpoch leader, Check& check);
  void SendCheck(const std::string& endpoint, Check check);
  void Checked(const FetchConnection::Members& members,
               const absl::StatusOr<v1::OffsetsForLeaderEpochResponse>& answer);
  void TakeIn(const TopicPartition& name, Partition& partition, LeaderEpoch leader,
              const v1::EpochEnd& end);
  void Truncated(const TopicPartition& name, Partition& partition, LeaderEpoch leader, Offset end);
  void OpenStream(FetchConnection& connection, const FetchConnection::Members& members);
  void TakeIn(FetchConnection& from, const v1::FetchPartitionResult& result, const Buffer& batches);
  void Refused(const TopicPartition& name, Partition& partition, const absl::Status& status);
  void Throttle(FetchConnection& connection);
  void ServePoll();
  std::vector<PartitionRecords> TakeRecords(size_t max_records);
  void ServePartitions();
  void ArmTimer();
  void Tell(ConsumerEvent event);
  Partition* Find(const TopicPartition& partition);
  const Partition* Find(const TopicPartition& partition) const;

  const ConsumerOptions options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  MetadataCache metadata_;
  OffsetLookup lookup_;
  std::map<TopicPartition, Partition> partitions_;
  // By address.
  std::map<std::string, std::unique_ptr<FetchConnection>> connections_;
  // Poll begins here, so that none is always last.
  TopicPartition turn_;
  std::optional<PendingPoll> poll_;
  std::list<PendingPartitions> asked_partitions_;
  uint64_t last_generation_ = 0;
  bool serve_posted_ = false;
  TimerId timer_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_CONSUMER_CONSUMER_H_
