#include "broker/partition/replica_set.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/partition/metadata_update.h"
#include "common/error/error.h"
#include "common/rpc/replication_methods.h"

// Settling. How logs are opened is in replica_set_recovery.cc, what the metadata makes of the
// partitions in replica_set_metadata.cc, what becomes of damaged logs in replica_set_damage.cc,
// what goes to disk for all of them in replica_set_checkpoints.cc.
namespace conclave::broker {
namespace {

// Between looks at what waits for time to pass; while nothing does, there are none.
constexpr Duration kBetweenLooks = Duration::Milliseconds(100);

}  // namespace

ReplicaSet::ReplicaSet(Options options, Environment environment,
                       std::unique_ptr<DataDirectory> directory)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      executor_(environment_.executor),
      directory_(std::move(directory)),
      space_(environment_.fs, directory_->path(), options_.free_bytes_min),
      tail_budget_(options_.tail_bytes),
      controllers_(environment_.transport, executor_, options_.controllers,
                   {.attempt_timeout = Duration::Seconds(2)}),
      followers_({.cluster_id = options_.cluster_id, .self = options_.self},
                 {.find = [this](const PartitionId& id) { return Find(id); },
                  .touch = [this](Replica& replica) { Touch(replica); },
                  .epoch_of = [this](BrokerId id) -> std::optional<BrokerEpoch> {
                    const Broker* broker = image_.FindBroker(id);
                    if (broker == nullptr) return std::nullopt;
                    return broker->epoch;
                  }},
                 executor_),
      leaders_({.cluster_id = options_.cluster_id, .self = options_.self},
               {.find = [this](const PartitionId& id) { return Find(id); },
                .touch = [this](Replica& replica) { Touch(replica); },
                .replace = [this](const PartitionId& id) { ReplaceDamaged(id); }},
               environment_.transport, executor_),
      isr_changes_(options_.self,
                   {.find = [this](const PartitionId& id) { return Find(id); },
                    .touch = [this](Replica& replica) { Touch(replica); }},
                   controllers_, executor_) {}

ReplicaSet::~ReplicaSet() = default;

void ReplicaSet::AddMethods(MethodTable& table) {
  table.Stream<v1::FollowerMessage, replication_methods::LeaderMessage>(
      replication_methods::kReplicate, executor_,
      [this](std::unique_ptr<FollowerStreams::Stream> stream) {
        followers_.Accept(std::move(stream));
      });
}

Replica* ReplicaSet::Find(const PartitionId& id) {
  Replica* const* found = by_id_.Find(id);
  return found == nullptr ? nullptr : *found;
}

void ReplicaSet::Fail(const absl::Status& why) {
  if (std::exchange(failed_, true)) return;
  environment_.on_fatal(why);
}

// --- Settling

void ReplicaSet::Touch(Replica& replica) {
  if (replica.NoteTouched()) touched_.push_back(replica.id());
  if (std::exchange(settling_soon_, true)) return;
  executor_.Post([this] { Settle(); });
}

void ReplicaSet::Settle() {
  settling_soon_ = false;
  for (const PartitionId& id : std::exchange(touched_, {})) {
    Replica* replica = Find(id);
    if (replica != nullptr && replica->TakeTouched()) SettleOne(*replica);
  }
  followers_.Flush();
  leaders_.Flush();
  isr_changes_.Flush();
}

void ReplicaSet::SettleOne(Replica& replica) {
  if (failed_) return;
  if (replica.WantsSync() && !closing_) BeginSync(replica);
  if (replication::LeaderReplica* leader = replica.leader()) {
    if (auto proposal = leader->TakeProposal()) {
      isr_changes_.Propose(replica.id(), leader->leader_epoch(), *proposal);
    }
    followers_.Offer(replica);
  } else {
    leaders_.Offer(replica);
  }
  replica.Settle();
  LookBy(NextLook(replica, executor_.clock().Now()));
  if (replica_observer_) replica_observer_(replica);
}

void ReplicaSet::BeginSync(Replica& replica) {
  auto sync = replica.BeginSync();
  if (!sync.ok()) {
    if (!replica.log().failure().ok()) Fail(sync.status());
    return;
  }
  ++syncs_in_flight_;
  environment_.syncs.Run(
      *std::move(sync), executor_,
      [this, id = replica.id(), life = replica.life()](const LogSync& done, absl::Status result) {
        FinishSync(id, life, done, result);
      });
}

void ReplicaSet::FinishSync(const PartitionId& id, uint64_t life, const LogSync& sync,
                            const absl::Status& result) {
  --syncs_in_flight_;
  Replica* replica = Find(id);
  if (replica != nullptr && replica->life() == life) {
    // Nothing may be assumed of a disk that failed a sync, and trying again proves nothing.
    const absl::Status finished = replica->FinishSync(sync, result);
    if (!finished.ok() && !replica->log().failure().ok()) return Fail(finished);
    Touch(*replica);
  }
  CloseOnceSynced();
}

// --- Time

MonotonicTime ReplicaSet::NextLook(const Replica& replica, MonotonicTime now) {
  const MonotonicTime soon = now + kBetweenLooks;
  if (replica.AwaitsSync()) return soon;
  const replication::LeaderReplica* leader = replica.leader();
  return leader == nullptr ? MonotonicTime::Never() : std::max(soon, leader->NextDeadline());
}

void ReplicaSet::LookBy(MonotonicTime when) {
  if (when >= look_at_) return;
  if (look_at_ != MonotonicTime::Never()) executor_.Cancel(look_timer_);
  look_at_ = when;
  look_timer_ = executor_.PostAt(when, [this] {
    look_at_ = MonotonicTime::Never();
    Look();
  });
}

void ReplicaSet::Look() {
  const MonotonicTime now = executor_.clock().Now();
  MonotonicTime next = MonotonicTime::Never();
  for (const auto& [id, replica] : replicas_) {
    if (replica->WantsSync()) Touch(*replica);
    replication::LeaderReplica* leader = replica->leader();
    if (leader != nullptr && leader->NextDeadline() <= now) {
      leader->Tick(now);
      Touch(*replica);
    }
    next = std::min(next, NextLook(*replica, now));
  }
  LookBy(next);
}

}  // namespace conclave::broker
