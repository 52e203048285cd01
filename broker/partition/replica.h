#ifndef CONCLAVE_BROKER_PARTITION_REPLICA_H_
#define CONCLAVE_BROKER_PARTITION_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/log_damage.h"
#include "broker/log/log_sync.h"
#include "broker/log/partition_file.h"
#include "broker/log/partition_log.h"
#include "broker/partition/free_space.h"
#include "broker/replication/follower_replica.h"
#include "broker/replication/leader_replica.h"
#include "common/clock/clock.h"
#include "common/config/topic_config.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"

namespace conclave::broker {

// Wants to know that a replica's high watermark has risen, or that it does not lead any more.
class ReplicaWatcher {
 public:
  virtual ~ReplicaWatcher() = default;
  // May watch and unwatch replicas; another call comes for the next change.
  virtual void OnReplicaChanged(const PartitionId& id) = 0;
};

// One partition on this broker: its log, and its part in replication, which the metadata gives it:
// leader, follower, or neither.
//
// Not thread-safe: belongs to the partitions' executor. What follows from a call is left for
// Settle: after any call but a getter, see to it that it is called (ReplicaSet::Touch).
class Replica : private replication::LeaderLog, private replication::FollowerLog {
 public:
  struct Options {
    BrokerId self;
    Duration replica_lag_time_max;
    // Tells it from an earlier replica of the same id in this process.
    uint64_t life = 0;
    // Outlives the replica.
    FreeSpace* space = nullptr;
    // Told once, from within a read, that records which were here cannot be read any more.
    std::function<void(const Replica&)> on_damage;
  };

  // `high_watermark`: from the checkpoint; it counts as one within the log. `clock` outlives this.
  Replica(PartitionIdentity identity, std::unique_ptr<PartitionLog> log, Offset high_watermark,
          Options options, const Clock& clock);
  ~Replica() override;

  PartitionId id() const { return {identity_.topic_id, identity_.partition}; }
  const PartitionIdentity& identity() const { return identity_; }
  uint64_t life() const { return options_.life; }
  // "topic-0"
  const std::string& name() const { return name_; }
  PartitionLog& log() { return *log_; }
  const PartitionLog& log() const { return *log_; }
  Offset high_watermark() const;

  // As PartitionLog's, and remembers damage that a read comes upon.
  absl::StatusOr<LogRead> Read(Offset from, size_t max_bytes, Offset limit);
  absl::StatusOr<std::optional<TimestampedOffset>> FindTimestamp(int64_t timestamp_ms,
                                                                 Offset limit);
  // What is damaged, for people; nullopt: nothing that is known. It goes where the log starts
  // behind it, or ends before it.
  std::optional<std::string> damage() const;
  // For what is damaged, it is to be replaced by a copy of the leader's log once that allows it.
  void SetBeginsAnew(bool begins_anew) { begins_anew_ = begins_anew; }
  bool begins_anew() const override { return begins_anew_; }
  bool counts_unsynced() const override { return config_.acknowledge_unsynced; }

  // --- Its part

  // nullptr: it does not lead, or does not follow.
  replication::LeaderReplica* leader() { return leader_.get(); }
  const replication::LeaderReplica* leader() const { return leader_.get(); }
  replication::FollowerReplica* follower() { return follower_.get(); }
  // Whom it follows; kNoBroker if it does not.
  BrokerId following() const { return following_; }

  // Each ends the part before, if leader or epoch are others; what waited there is released. A
  // leader in the same epoch takes in the partition's new state.
  void Lead(const replication::PartitionState& state, int min_isr,
            const std::map<BrokerId, replication::LeaderReplica::BrokerInfo>& brokers);
  void Follow(BrokerId leader, LeaderEpoch epoch);
  void StandBy();

  void SetConfig(const TopicConfig& config);
  const TopicConfig& config() const { return config_; }

  // --- As leader

  // At the log's end. `batch` passed CheckProduced, which gave `header`. OUT_OF_RESOURCES: there is
  // no room.
  absl::StatusOr<AppendResult> Append(const Buffer& batch, const BatchHeader& header);

  using CommitDone = absl::AnyInvocable<void(const absl::Status&)>;
  // `done` is called, from Settle, once the high watermark has reached `end`, or with the error
  // that it will not in this epoch. It leads.
  replication::AppendId AwaitCommit(Offset end, CommitDone done);
  // `done` is not called any more.
  void Forget(replication::AppendId append);

  // `done` is called, from Settle, once it is sure that at some moment after this call nobody led
  // in a later epoch: what was committed by then is known here. Or with why that is not known.
  void ConfirmLeadership(CommitDone done);

  // --- Where the log begins

  // As leader: the log begins at `before`, unless it does so later already, as soon as what is
  // below is durable here; records are served no more from then on. `done` is called, from Settle,
  // once the ISR has its minimum and every member has said the same of its own log; or with the
  // error that it does not lead any more, when that may come yet. `before` is at most the high
  // watermark.
  using RemovalId = uint64_t;
  RemovalId RemoveRecords(Offset before, CommitDone done);
  // `done` is not called any more. What was begun goes on.
  void ForgetRemoval(RemovalId removal) { removals_.erase(removal); }

  // --- Syncs (broker/log/README.md)

  // Under flush.policy=replicated not before flush.ms have passed since the last one began, unless
  // records are to be removed that are not synced; and not
  // for a second after one that could not be tried, for want of a descriptor.
  bool WantsSync() const;
  // It does, or will once time has passed.
  bool AwaitsSync() const;
  // After an error of either the log has failed, if its failure() says so; else it wants a sync
  // again later.
  absl::StatusOr<LogSync> BeginSync();
  absl::Status FinishSync(const LogSync& sync, const absl::Status& result);

  // --- Retention

  // Removes what the topic's settings do not keep any more, of what is committed. True if something
  // went. It leads: followers remove what their leader has removed.
  absl::StatusOr<bool> ApplyRetention();

  // --- Outcomes

  // For who settles it: it is to be settled now, and was not before.
  bool NoteTouched() { return !std::exchange(touched_, true); }
  // It was to be settled, and is not any more.
  bool TakeTouched() { return std::exchange(touched_, false); }

  uint64_t Watch(ReplicaWatcher* watcher);
  void Unwatch(uint64_t watch) { watchers_.erase(watch); }
  // Tells waiting appends and watchers what has come of them.
  void Settle();

 private:
  // LeaderLog and FollowerLog.
  replication::EpochEnd EndOfEpoch(LeaderEpoch epoch) const override;
  replication::LogPosition position() const override;
  LeaderEpoch last_epoch() const override { return log_->last_epoch(); }
  Offset log_start() const override { return log_->log_start(); }
  Offset first_batch() const override { return log_->first_batch(); }
  absl::Status TruncateTo(Offset end) override;
  absl::Status ResetTo(Offset offset, const v1::RememberedProducers& producers) override;
  absl::Status RemoveBefore(Offset offset) override;
  absl::Status Append(const Buffer& batches) override;

  absl::Status AfterCut(absl::Status cut);
  void Resign();
  void PostponeSync(const absl::Status& why);
  void CollectReleased();
  replication::FlushPolicy WantedFlushPolicy() const;
  void NoteDamage(const absl::Status& status);
  // As far as the log's start is to move and does not begin there yet.
  absl::Status MoveLogStart();
  void CollectRemovals();

  const PartitionIdentity identity_;
  const std::string name_;
  const std::unique_ptr<PartitionLog> log_;
  const Options options_;
  const Clock& clock_;
  TopicConfig config_;

  std::optional<LogDamage> damage_;
  bool begins_anew_ = false;
  Offset high_watermark_;  // While it has no part.
  std::unique_ptr<replication::LeaderReplica> leader_;
  std::unique_ptr<replication::FollowerReplica> follower_;
  BrokerId following_ = kNoBroker;
  replication::Session last_session_;

  // Raised by each truncation. Until a sync that began after it is done, nothing counts as durable.
  uint64_t cuts_ = 0;
  uint64_t cuts_at_sync_ = 0;
  uint64_t cuts_synced_ = 0;
  MonotonicTime last_sync_began_;
  MonotonicTime no_sync_before_;

  uint64_t last_append_ = 0;
  std::map<replication::AppendId, CommitDone> waiting_;
  // By round.
  std::map<replication::Round, CommitDone> confirmations_;
  // What the log is to begin at, by the leader's word or a removal; as much of it as is durable
  // has effect at once.
  Offset wanted_log_start_;
  struct Removal {
    Offset before;
    CommitDone done;
  };
  RemovalId last_removal_ = 0;
  std::map<RemovalId, Removal> removals_;
  std::vector<std::pair<CommitDone, absl::Status>> due_;

  // Numbers of replicas that follow each other under one id differ: one may be asked to forget a
  // watch of the one before.
  uint64_t last_watch_;
  std::map<uint64_t, ReplicaWatcher*> watchers_;
  bool touched_ = false;
  bool changed_ = false;
  Offset shown_high_watermark_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_REPLICA_H_
