#include "broker/partition/replica_set.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/log_damage.h"
#include "broker/partition/metadata_update.h"
#include "common/error/error.h"
#include "common/rpc/replication_methods.h"

// Starting and settling. What the metadata makes of the partitions is in replica_set_metadata.cc,
// what becomes of damaged logs in replica_set_damage.cc, what goes to disk for all of them in
// replica_set_checkpoints.cc.
namespace conclave::broker {
namespace {

constexpr Duration kTick = Duration::Milliseconds(100);

}  // namespace

ReplicaSet::ReplicaSet(Options options, Environment environment,
                       std::unique_ptr<DataDirectory> directory)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      executor_(environment_.executor),
      directory_(std::move(directory)),
      space_(environment_.fs, directory_->path(), options_.free_bytes_min),
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
                .touch = [this](Replica& replica) { Touch(replica); }},
               environment_.transport, executor_),
      isr_changes_(options_.self,
                   {.find = [this](const PartitionId& id) { return Find(id); },
                    .touch = [this](Replica& replica) { Touch(replica); }},
                   controllers_, executor_) {}

ReplicaSet::~ReplicaSet() = default;

void ReplicaSet::AddMethods(MethodTable& table) {
  table.Stream<v1::FollowerMessage, v1::LeaderMessage>(
      replication_methods::kReplicate, executor_,
      [this](std::unique_ptr<FollowerStreams::Stream> stream) {
        followers_.Accept(std::move(stream));
      });
}

Replica* ReplicaSet::Find(const PartitionId& id) {
  const auto it = replicas_.find(id);
  return it == replicas_.end() ? nullptr : it->second.get();
}

void ReplicaSet::Fail(const absl::Status& why) {
  if (std::exchange(failed_, true)) return;
  environment_.on_fatal(why);
}

// --- Start

void ReplicaSet::Recover(std::function<void()> done) {
  recovery_done_ = std::move(done);
  const auto deleted = directory_->ListAside(DataDirectory::Aside::kDeleted);
  if (!deleted.ok()) return Fail(deleted.status());
  for (const DataDirectory::AsideLog& log : *deleted) {
    RemoveLater(DataDirectory::Aside::kDeleted, log.name, options_.file_delete_delay);
  }
  const auto healing = directory_->ListAside(DataDirectory::Aside::kDamaged);
  if (!healing.ok()) return Fail(healing.status());
  for (const DataDirectory::AsideLog& log : *healing) healing_.emplace(log.id, log.name);
  space_.Look();
  Tick();
  EverySecond();
  executor_.PostAfter(options_.retention_check_interval, [this] { ApplyRetention(); });
  RecoverNext();
}

// A task a log, so that the executor does other things in between.
void ReplicaSet::RecoverNext() {
  if (failed_) return;
  if (recovered_ < directory_->found().size()) {
    const DataDirectory::Found& found = directory_->found()[recovered_];
    if (absl::Status opened = OpenLog(found.directory, found.identity, Opening::kRecover);
        !opened.ok()) {
      return Fail(opened);
    }
    ++recovered_;
    return executor_.Post([this] { RecoverNext(); });
  }
  if (recovered_ > 0) {
    LOG(INFO) << recovered_ << " logs are open, "
              << (directory_->clean_stop() ? "after a clean stop" : "recovered");
  }
  FindMissing();
  Report();
  recovered_all_ = true;
  std::exchange(recovery_done_, nullptr)();
  if (TakesPart()) ApplyAll();
}

absl::Status ReplicaSet::OpenLog(const std::string& directory, const PartitionIdentity& identity,
                                 Opening opening) {
  const PartitionId id{identity.topic_id, identity.partition};
  const auto had = damaged_.find(id);
  PartitionLog::OpenOptions open;
  if (opening != Opening::kNew) open.recovery_point = directory_->RecoveryPointOf(id);
  open.clean_stop = opening == Opening::kRecover && directory_->clean_stop().has_value();
  if (opening == Opening::kGiveUp) {
    open.give_up_start = true;
    if (had != damaged_.end() && had->second.damage) {
      open.recovery_point = had->second.damage->first_missing;
    }
  }
  auto log = PartitionLog::Open(environment_.fs, directory, open);
  if (!log.ok()) {
    const auto damage = DamageOf(log.status());
    if (!damage) return log.status();
    LOG(ERROR) << Describe(log.status());
    damaged_[id] = {identity, directory, DescribeDamage(*damage), damage};
    return absl::OkStatus();
  }
  const auto checkpointed = directory_->high_watermarks().find({id.topic, id.index});
  const Offset high_watermark =
      checkpointed == directory_->high_watermarks().end() || opening == Opening::kNew
          ? Offset(0)
          : checkpointed->second;
  const Offset end = (*log)->log_end();
  if (end < high_watermark && opening == Opening::kRecover) {
    const std::string what = absl::StrCat(
        directory, " ends at offset ", end.value(), " and had committed records up to ",
        high_watermark.value(), ": the disk lost what it had synced");
    LOG(ERROR) << what;
    damaged_[id] = {identity, directory, what, std::nullopt};
    return absl::OkStatus();
  }
  AddReplica(identity, *std::move(log), high_watermark);
  return absl::OkStatus();
}

void ReplicaSet::AddReplica(const PartitionIdentity& identity, std::unique_ptr<PartitionLog> log,
                            Offset high_watermark) {
  Replica::Options options;
  options.self = options_.self;
  options.replica_lag_time_max = options_.replica_lag_time_max;
  options.life = ++last_life_;
  options.space = &space_;
  options.on_damage = [this](const Replica& replica) {
    damaged_open_.insert(replica.id());
    executor_.Post([this] { Report(); });
  };
  const PartitionId id{identity.topic_id, identity.partition};
  replicas_[id] = std::make_unique<Replica>(identity, std::move(log), high_watermark,
                                            std::move(options), executor_.clock());
  Touch(*replicas_[id]);
}

// --- Settling

void ReplicaSet::Touch(Replica& replica) {
  touched_.insert(replica.id());
  if (std::exchange(settling_soon_, true)) return;
  executor_.Post([this] { Settle(); });
}

void ReplicaSet::Settle() {
  settling_soon_ = false;
  for (const PartitionId& id : std::exchange(touched_, {})) {
    if (Replica* replica = Find(id)) SettleOne(*replica);
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
  if (replica_observer_) replica_observer_(replica);
}

void ReplicaSet::BeginSync(Replica& replica) {
  auto sync = replica.BeginSync();
  if (!sync.ok()) return Fail(sync.status());
  ++syncs_in_flight_;
  environment_.syncs.Run(
      *std::move(sync), executor_,
      [this, id = replica.id(), life = replica.life()](
          const LogSync& done, absl::Status result) { FinishSync(id, life, done, result); });
}

void ReplicaSet::FinishSync(const PartitionId& id, uint64_t life, const LogSync& sync,
                            const absl::Status& result) {
  --syncs_in_flight_;
  Replica* replica = Find(id);
  if (replica != nullptr && replica->life() == life) {
    // Nothing may be assumed of a disk that failed a sync, and trying again proves nothing.
    if (absl::Status finished = replica->FinishSync(sync, result); !finished.ok()) {
      return Fail(finished);
    }
    Touch(*replica);
  }
  CloseOnceSynced();
}

// --- Time

void ReplicaSet::Tick() {
  const MonotonicTime now = executor_.clock().Now();
  for (const auto& [id, replica] : replicas_) {
    if (replica->WantsSync()) Touch(*replica);
    replication::LeaderReplica* leader = replica->leader();
    if (leader == nullptr || leader->NextDeadline() > now) continue;
    leader->Tick(now);
    Touch(*replica);
  }
  executor_.PostAfter(kTick, [this] { Tick(); });
}

}  // namespace conclave::broker
