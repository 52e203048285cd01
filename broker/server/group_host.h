#ifndef CONCLAVE_BROKER_SERVER_GROUP_HOST_H_
#define CONCLAVE_BROKER_SERVER_GROUP_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "broker/group/actions.h"
#include "broker/group/group_coordinator.h"
#include "broker/partition/replica.h"
#include "broker/partition/replica_set.h"
#include "common/executor/executor.h"
#include "common/metadata/image.h"
#include "common/random/random.h"

namespace conclave::broker {

// Drives the coordinator of the groups of one partition of __consumer_offsets, which this broker
// leads in one epoch: replays the log, appends the coordinator's records and tells it what is
// committed, confirms leadership for its reads, and keeps its time.
//
// Not thread-safe; on the partitions' executor. What is passed by reference outlives it.
class GroupHost : private ReplicaWatcher, public std::enable_shared_from_this<GroupHost> {
 public:
  // Where what the coordinator says goes.
  struct Outlets {
    std::function<void(group::StreamId, const v1::CoordinatorMessage&)> send;
    std::function<void(group::StreamId, const absl::Status&)> end;
    std::function<void(group::Reply)> reply;
  };

  // `id` is led by this broker.
  GroupHost(PartitionId id, group::CoordinatorConfig config, const Random& random, Outlets outlets,
            ReplicaSet& replicas, Executor& executor);
  ~GroupHost() override;

  // Begins to load. Before anything else.
  void Start();

  LeaderEpoch epoch() const { return epoch_; }
  group::Now Now() const;
  // Whatever was called on it, Run does what it asks for.
  group::GroupCoordinator& coordinator() { return coordinator_; }
  void Run();

 private:
  void OnReplicaChanged(const PartitionId& id) override;
  // The replica, if it leads in this epoch still.
  Replica* Led() const;
  void LoadNext();
  absl::Status Replay(const Buffer& batches);
  // False: the coordinator was told that it failed.
  bool Append(const group::Append& append);
  absl::Status TryAppend(const group::Append& append);
  void ConfirmLeadership(group::ReadRound round);
  void ArmTimer();

  const PartitionId id_;
  const Outlets outlets_;
  ReplicaSet& replicas_;
  Executor& executor_;
  LeaderEpoch epoch_;
  // Where the epoch begins: what is below was written under others, and is replayed.
  Offset epoch_start_;
  Offset replayed_;
  bool loaded_ = false;
  uint64_t watch_ = 0;
  group::GroupCoordinator coordinator_;
  std::optional<TimerId> timer_;
  MonotonicTime timer_at_ = MonotonicTime::Never();
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_GROUP_HOST_H_
