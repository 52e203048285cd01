#ifndef CONCLAVE_BROKER_PARTITION_REPLICA_SET_H_
#define CONCLAVE_BROKER_PARTITION_REPLICA_SET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/log_damage.h"
#include "broker/log/log_tail.h"
#include "broker/partition/data_directory.h"
#include "broker/partition/follower_streams.h"
#include "broker/partition/free_space.h"
#include "broker/partition/isr_changes.h"
#include "broker/partition/leader_streams.h"
#include "broker/partition/partition_table.h"
#include "broker/partition/replica.h"
#include "broker/partition/replica_report.h"
#include "broker/partition/sync_runner.h"
#include "common/executor/executor.h"
#include "common/fs/file_system.h"
#include "common/metadata/image.h"
#include "common/rpc/failover_caller.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"

namespace conclave::broker {

// All partitions of one broker: opens their logs, gives each its part as the metadata says, syncs
// them by group commit, and runs the replication streams and the ISR changes.
//
// Not thread-safe: everything happens on `executor`, the one writer of all partitions. What one
// task of the executor did is settled by a later one, so that what came meanwhile is settled with
// it: natural batching. Destroyed after the executor has stopped; what is passed by reference
// outlives it.
class ReplicaSet {
 public:
  struct Options {
    ClusterId cluster_id;
    BrokerId self;
    Duration replica_lag_time_max;
    // host:port of the controllers.
    std::vector<std::string> controllers;
    // How long the log of a deleted topic is kept aside.
    Duration file_delete_delay = Duration::Seconds(60);
    Duration retention_check_interval = Duration::Seconds(60);
    // Of room on the disk, under which records are refused.
    uint64_t free_bytes_min = 0;
    // Of what was appended last, kept in memory for followers and consumers that keep up.
    size_t tail_bytes = size_t{32} << 20;
  };
  struct Environment {
    Transport& transport;
    Executor& executor;
    // For what blocks for long and concerns no single log: checkpoints, removing files.
    Executor& background;
    FileSystem& fs;
    SyncRunner& syncs;
    // The process has to end: a disk that failed. On `executor`.
    std::function<void(const absl::Status&)> on_fatal;
    // What the controller is to be told from now on, with every heartbeat; before `done` of Recover
    // with what that came upon. On `executor`.
    std::function<void(const ReplicaReport&)> on_report;
  };

  ReplicaSet(Options options, Environment environment, std::unique_ptr<DataDirectory> directory);
  ~ReplicaSet();

  void AddMethods(MethodTable& table);

  // Instead of Recover: nothing was opened, so a stop that was clean is so still.
  absl::Status Abandon();
  // Opens and recovers every log that is there, several side by side; `done` when all are.
  void Recover(std::function<void()> done);

  // What a watch of the metadata brought. It has effect once the image speaks of this process, and
  // every log is open.
  void OnMetadata(const v1::WatchMetadataResponse& update);
  // The image includes this broker's registration under `epoch`.
  void TakePart(BrokerEpoch epoch);
  const MetadataImage& image() const { return image_; }
  // Told after every change of the metadata has had its effect here, and when a stop ends all
  // parts; null: anything may have changed.
  void SetObserver(std::function<void(const MetadataDelta*)> observer) {
    observer_ = std::move(observer);
  }
  // Told of each replica once what had changed of it has been settled: for who watches all of them.
  void SetReplicaObserver(std::function<void(Replica&)> observer) {
    replica_observer_ = std::move(observer);
  }
  // Under which this broker takes part at present; nullopt: not yet.
  std::optional<BrokerEpoch> broker_epoch() const { return epoch_; }
  BrokerId self() const { return options_.self; }

  // nullptr: not on this broker.
  Replica* Find(const PartitionId& id);
  // Why there is no replica of a partition that the metadata places here: there was no room, or no
  // descriptor. It is tried again every second. OK: for no such reason.
  absl::Status WhyUnmade(const PartitionId& id) const;
  // Something was done with the replica: what follows from it is seen to soon.
  void Touch(Replica& replica);

  // For a clean stop: ends what is under way, closes every log, writes the checkpoints and the
  // marker. Produces are answered NOT_LEADER_OR_FOLLOWER from now on.
  void Close(std::function<void(const absl::Status&)> done);

  const std::map<PartitionId, std::unique_ptr<Replica>>& replicas() const { return replicas_; }

 private:
  // A replica whose log is not open, for records that it had are missing.
  struct Damaged {
    PartitionIdentity identity;
    // Empty: it is gone.
    std::string directory;
    // For people.
    std::string what;
    // nullopt: the log is sound, and ends before what it had synced.
    std::optional<LogDamage> damage;
  };
  enum class Opening {
    // As it was left by the last process.
    kRecover,
    // It was made just now.
    kNew,
    // Damaged, and there is nothing better: with what is left of it.
    kGiveUp,
  };

  struct Recovery;
  using OpenedLog = absl::StatusOr<std::unique_ptr<PartitionLog>>;

  // --- Opening (replica_set_recovery.cc)
  void RecoverOne(size_t number);
  void Recovered(size_t number, OpenedLog log);
  void RecoveredAll();
  void ReportRecovery() const;
  PartitionLog::OpenOptions OptionsOf(const PartitionId& id, Opening opening);
  // Puts the replica among `replicas_`, or among `damaged_`; another error is the disk's.
  absl::Status OpenLog(const std::string& directory, const PartitionIdentity& identity,
                       Opening opening);
  absl::Status Adopt(const std::string& directory, const PartitionIdentity& identity, OpenedLog log,
                     Opening opening);
  void AddReplica(const PartitionIdentity& identity, std::unique_ptr<PartitionLog> log,
                  Offset high_watermark);
  void FindMissing();

  bool TakesPart() const { return recovered_all_ && epoch_.has_value() && !closing_; }
  void ApplyAll();
  void Apply(const MetadataDelta& delta);
  void ApplyPartition(const PartitionId& id);
  void ApplyBrokers();
  // In place of a log that was damaged.
  Replica* MakeAnew(const PartitionIdentity& identity);
  // nullptr: it cannot be made now, and is tried again; or the process ends.
  Replica* Make(const PartitionIdentity& identity);
  void SetPart(const Topic& topic, const Partition& partition, Replica& replica);
  void SetAside(const PartitionId& id, DataDirectory::Aside where);
  void MoveAside(const PartitionId& id, const std::string& directory, DataDirectory::Aside where);
  void SetAsideStrays();
  void MakeUnmade();

  // --- Damage (replica_set_damage.cc)
  // Makes a replica of what was damaged, once another one's records can be copied, or an operator
  // has had this one elected; nullptr: not yet.
  Replica* Heal(const PartitionId& id, const Partition& partition);
  // Opens what is left of a damaged log; nullptr: nothing can be, or the process ends.
  Replica* GiveUp(const PartitionId& id);
  // An open log that is damaged is to make room for a copy of the leader's.
  bool BeginsAnew(const Partition& partition, const Replica& replica) const;
  // The leader does not count on it any more.
  void ReplaceDamaged(const PartitionId& id);
  // No replica comes of it any more.
  void DropDamaged(const PartitionId& id, DataDirectory::Aside where);
  std::vector<PartitionId> DamagedIds() const;
  void RemoveHealed();
  void Report();

  void Settle();
  void SettleOne(Replica& replica);
  void BeginSync(Replica& replica);
  void FinishSync(const PartitionId& id, uint64_t life, const LogSync& sync,
                  const absl::Status& result);
  // When what this one waits for is to be looked at: a sync that is put off, a leader's deadlines.
  static MonotonicTime NextLook(const Replica& replica, MonotonicTime now);
  // Looks at all then, or before.
  void LookBy(MonotonicTime when);
  void Look();
  void EverySecond();
  void ApplyRetention();
  void CheckpointHighWatermarks();
  void CheckpointRecoveryPoints();
  Offset StoredHighWatermark(const CheckpointKey& key) const;
  void RemoveLater(DataDirectory::Aside where, const std::string& name, Duration delay);
  OffsetCheckpoint::Offsets HighWatermarks() const;
  OffsetCheckpoint::Offsets DurableOffsets() const;
  void CloseOnceSynced();
  absl::Status CloseAll();
  void Fail(const absl::Status& why);

  const Options options_;
  const Environment environment_;
  Executor& executor_;
  const std::shared_ptr<DataDirectory> directory_;
  FreeSpace space_;
  // Before the replicas, whose logs use it.
  TailBudget tail_budget_;
  FailoverCaller controllers_;
  FollowerStreams followers_;
  LeaderStreams leaders_;
  IsrChanges isr_changes_;

  std::map<PartitionId, std::unique_ptr<Replica>> replicas_;
  // The same, for Find.
  PartitionTable<Replica*> by_id_;
  // Which the metadata places here, and for which there was no room.
  std::map<PartitionId, absl::Status> unmade_;
  std::map<PartitionId, Damaged> damaged_;
  // Whose logs are open.
  std::set<PartitionId> damaged_open_;
  // Logs under damaged/, which go once the replica is in sync again.
  std::multimap<PartitionId, std::string> healing_;
  ReplicaReport reported_;
  uint64_t last_life_ = 0;
  // In the order in which they were first touched; one that was replaced since may be there twice.
  std::vector<PartitionId> touched_;
  bool settling_soon_ = false;

  std::shared_ptr<Recovery> recovery_;
  std::function<void()> recovery_done_;
  bool recovered_all_ = false;
  MetadataImage image_;
  std::function<void(const MetadataDelta*)> observer_;
  std::function<void(Replica&)> replica_observer_;
  std::optional<BrokerEpoch> epoch_;
  bool took_part_ = false;
  bool failed_ = false;
  bool closing_ = false;
  std::function<void(const absl::Status&)> closed_;
  size_t syncs_in_flight_ = 0;
  std::map<BrokerId, replication::LeaderReplica::BrokerInfo> brokers_;
  OffsetCheckpoint::Offsets stored_high_watermarks_;
  bool storing_high_watermarks_ = false;
  bool storing_recovery_points_ = false;
  // What is stored speaks of a log that is not there any more.
  bool checkpoints_due_ = false;
  uint64_t seconds_ = 0;
  // Of the next look; Never if there is none to come.
  MonotonicTime look_at_ = MonotonicTime::Never();
  TimerId look_timer_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_REPLICA_SET_H_
