#include "broker/partition/isr_changes.h"

#include <glog/logging.h>

#include <utility>

#include "common/error/error.h"
#include "common/rpc/controller_methods.h"

namespace conclave::broker {
namespace {

constexpr Duration kTimeout = Duration::Seconds(5);
// After a request that failed as a whole.
constexpr Duration kPause = Duration::Milliseconds(100);
// How long the record that made a proposal stale is waited for.
constexpr Duration kNewsTimeout = Duration::Seconds(2);

PartitionId IdOf(const v1::PartitionAlteration& alteration) {
  return {TopicId::FromBytes(alteration.topic_id()).value_or(TopicId()),
          PartitionIndex(alteration.partition())};
}

// The leader's view is older than the controller's: the record that tells is on its way, and the
// proposal can have no effect any more.
bool IsStale(v1::ErrorCode code) {
  switch (code) {
    case v1::INVALID_UPDATE_VERSION:
    case v1::FENCED_LEADER_EPOCH:
    case v1::NOT_LEADER_OR_FOLLOWER:
    case v1::UNKNOWN_TOPIC_OR_PARTITION:
    case v1::UNKNOWN_TOPIC_ID:
    case v1::STALE_BROKER_EPOCH:
    case v1::BROKER_ID_NOT_REGISTERED:
      return true;
    default:
      return false;
  }
}

}  // namespace

IsrChanges::IsrChanges(BrokerId self, Partitions partitions, FailoverCaller& controllers,
                       Executor& executor)
    : self_(self),
      partitions_(std::move(partitions)),
      controllers_(controllers),
      executor_(executor) {}

void IsrChanges::Propose(const PartitionId& id, LeaderEpoch leader_epoch,
                         const replication::LeaderReplica::Proposal& proposal) {
  v1::PartitionAlteration alteration;
  alteration.set_topic_id(id.topic.ToBytes());
  alteration.set_partition(id.index.value());
  alteration.set_leader_epoch(leader_epoch.value());
  alteration.set_partition_epoch(proposal.partition_epoch.value());
  alteration.set_synced(proposal.synced);
  alteration.set_hand_over(proposal.hand_over);
  if (proposal.hand_over) {
    LOG(WARNING) << partitions_.find(id)->name()
                 << ": has fewer in-sync replicas than it needs, and those that could lead do not "
                    "reach this broker: one of them is asked for as leader";
  }
  for (const replication::IsrMember& member : proposal.isr) {
    v1::IsrMember* proto = alteration.add_new_isr();
    proto->set_broker_id(member.broker.value());
    proto->set_broker_epoch(member.epoch.value());
  }
  proposed_[id] = std::move(alteration);
}

void IsrChanges::Flush() {
  if (under_way_ || proposed_.empty()) return;
  under_way_ = true;
  v1::AlterPartitionRequest request;
  request.set_broker_id(self_.value());
  request.set_broker_epoch(epoch_.value());
  for (auto& [id, alteration] : std::exchange(proposed_, {})) {
    *request.add_partitions() = std::move(alteration);
  }
  controllers_.Call<v1::AlterPartitionRequest, v1::AlterPartitionResponse>(
      controller_methods::kAlterPartition, request, Repeatable::kNo,
      executor_.clock().Now() + kTimeout,
      [this, request](absl::StatusOr<v1::AlterPartitionResponse> response) {
        Answered(request, std::move(response));
      });
}

void IsrChanges::Answered(const v1::AlterPartitionRequest& request,
                          absl::StatusOr<v1::AlterPartitionResponse> response) {
  if (!response.ok()) {
    LOG(WARNING) << "the in-sync replicas of " << request.partitions_size()
                 << " partitions could not be changed: " << Describe(response.status());
    executor_.PostAfter(kPause, [this, request, status = response.status()] {
      under_way_ = false;
      for (const v1::PartitionAlteration& alteration : request.partitions()) {
        Outcome(alteration, status);
      }
      Flush();
    });
    return;
  }
  under_way_ = false;
  std::map<PartitionId, absl::Status> results;
  for (const v1::PartitionAlterationResult& result : response->partitions()) {
    const auto topic = TopicId::FromBytes(result.topic_id());
    if (!topic) continue;
    results[{*topic, PartitionIndex(result.partition())}] = StatusFromError(result.error());
  }
  for (const v1::PartitionAlteration& alteration : request.partitions()) {
    const auto result = results.find(IdOf(alteration));
    Outcome(alteration, result == results.end() ? MakeError(v1::UNKNOWN_SERVER_ERROR,
                                                            "the controller did not answer for it")
                                                : result->second);
  }
  Flush();
}

Replica* IsrChanges::StillWaiting(const v1::PartitionAlteration& alteration) const {
  Replica* replica = partitions_.find(IdOf(alteration));
  const replication::LeaderReplica* leader = replica == nullptr ? nullptr : replica->leader();
  if (leader == nullptr || leader->leader_epoch().value() != alteration.leader_epoch() ||
      leader->partition_epoch().value() != alteration.partition_epoch() ||
      !leader->HasProposalInFlight()) {
    return nullptr;
  }
  return replica;
}

void IsrChanges::Outcome(const v1::PartitionAlteration& alteration, const absl::Status& status) {
  Replica* replica = StillWaiting(alteration);
  if (replica == nullptr) return;
  const v1::ErrorCode code = ErrorCodeOf(status);
  if (code == v1::NONE) return;
  VLOG(1) << replica->name() << ": the new ISR was not taken: " << Describe(status);
  const MonotonicTime now = executor_.clock().Now();
  if (IsStale(code)) {
    // Unless that record is never committed, for the controller lost its leadership.
    executor_.PostAfter(kNewsTimeout, [this, alteration] {
      Replica* waiting = StillWaiting(alteration);
      if (waiting == nullptr) return;
      waiting->leader()->ProposalRefused(executor_.clock().Now());
      partitions_.touch(*waiting);
    });
    return;
  }
  if (HasNoEffect(code)) {
    replica->leader()->ProposalRefused(now);
  } else {
    replica->leader()->ProposalOutcomeUnknown(now);
  }
  partitions_.touch(*replica);
}

}  // namespace conclave::broker
