#include "broker/partition/replica.h"

#include <glog/logging.h>

#include <algorithm>

#include "broker/log/log_damage.h"
#include "broker/partition/remembered_producers.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"

namespace conclave::broker {

using replication::FollowerReplica;
using replication::LeaderReplica;

Replica::Replica(PartitionIdentity identity, std::unique_ptr<PartitionLog> log,
                 Offset high_watermark, Options options, const Clock& clock)
    : identity_(std::move(identity)),
      name_(PartitionDirectoryName(identity_.topic, identity_.partition)),
      log_(std::move(log)),
      options_(std::move(options)),
      clock_(clock),
      damage_(log_->known_damage()),
      // What was removed was committed. A mark below would keep followers from removing it, too.
      high_watermark_(std::max(std::min(high_watermark, log_->log_end()), log_->log_start())),
      // Above those of an earlier one, which the leader may have heard.
      last_session_(static_cast<int64_t>(options_.life << 32)),
      last_watch_(options_.life << 32),
      shown_high_watermark_(high_watermark_) {}

Replica::~Replica() = default;

Offset Replica::high_watermark() const {
  if (leader_ != nullptr) return leader_->high_watermark();
  if (follower_ != nullptr) return follower_->high_watermark();
  return high_watermark_;
}

void Replica::Lead(const replication::PartitionState& state, int min_isr,
                   const std::map<BrokerId, LeaderReplica::BrokerInfo>& brokers) {
  const MonotonicTime now = clock_.Now();
  if (leader_ != nullptr && leader_->leader_epoch() == state.leader_epoch) {
    leader_->MetadataChanged(state, min_isr, now);
    leader_->SetFlushPolicy(WantedFlushPolicy());
    return;
  }
  Resign();
  LeaderReplica::Start start;
  start.state = state;
  start.min_isr = min_isr;
  start.flush_policy = WantedFlushPolicy();
  start.log = position();
  start.high_watermark = high_watermark_;
  const replication::LeaderLog& log = *this;
  leader_ = std::make_unique<LeaderReplica>(
      LeaderReplica::Config{options_.self, options_.replica_lag_time_max}, std::move(start), log,
      now);
  leader_->SetBrokers(brokers, now);
  LOG(INFO) << name_ << ": leads, leader epoch " << state.leader_epoch << ", from offset "
            << log_->log_end() << ", high watermark " << high_watermark_;
}

void Replica::Follow(BrokerId leader, LeaderEpoch epoch) {
  if (follower_ != nullptr && following_ == leader && follower_->leader_epoch() == epoch) return;
  Resign();
  replication::FollowerLog& log = *this;
  follower_ = std::make_unique<FollowerReplica>(epoch, last_session_, high_watermark_, log);
  following_ = leader;
}

void Replica::StandBy() { Resign(); }

void Replica::Resign() {
  high_watermark_ = std::min(high_watermark(), log_->log_end());
  if (leader_ != nullptr) {
    leader_->Resign();
    CollectReleased();
    for (auto& [round, done] : std::exchange(confirmations_, {})) {
      due_.emplace_back(
          std::move(done),
          MakeError(v1::NOT_LEADER_OR_FOLLOWER, name_ + ": this broker does not lead it any more"));
    }
    for (auto& [id, removal] : std::exchange(removals_, {})) {
      due_.emplace_back(std::move(removal.done),
                        MakeError(v1::NETWORK_EXCEPTION,
                                  name_ + ": this broker stopped leading it before every in-sync "
                                          "replica had removed the records; ask the new leader"));
    }
    leader_.reset();
    LOG(INFO) << name_ << ": does not lead any more";
  }
  wanted_log_start_ = Offset();
  if (follower_ != nullptr) {
    last_session_ = follower_->session();
    follower_.reset();
    following_ = kNoBroker;
  }
  changed_ = true;
}

void Replica::SetConfig(const TopicConfig& config) {
  config_ = config;
  log_->SetConfig({.segment_bytes = config.segment_bytes,
                   .segment_age = config.segment_age,
                   .index_interval_bytes = config.index_interval_bytes,
                   .retention_age = config.retention_age,
                   .retention_bytes = config.retention_bytes});
}

replication::FlushPolicy Replica::WantedFlushPolicy() const {
  return config_.acknowledge_unsynced ? replication::FlushPolicy::kReplicated
                                      : replication::FlushPolicy::kFsync;
}

// --- Reading

absl::StatusOr<LogRead> Replica::Read(Offset from, size_t max_bytes, Offset limit) {
  auto read = log_->Read(from, max_bytes, limit);
  if (!read.ok()) NoteDamage(read.status());
  return read;
}

absl::StatusOr<std::optional<TimestampedOffset>> Replica::FindTimestamp(int64_t timestamp_ms,
                                                                        Offset limit) {
  auto found = log_->FindTimestamp(timestamp_ms, limit);
  if (!found.ok()) NoteDamage(found.status());
  return found;
}

std::optional<std::string> Replica::damage() const {
  if (!damage_) return std::nullopt;
  // The end may have been told by a header that is damaged itself.
  const Offset end = std::max(damage_->end_missing, damage_->first_missing + 1);
  if (log_->log_start() >= end || log_->log_end() <= damage_->first_missing) return std::nullopt;
  return DescribeDamage(*damage_);
}

void Replica::NoteDamage(const absl::Status& status) {
  const auto damage = DamageOf(status);
  if (!damage || this->damage()) return;
  damage_ = damage;
  LOG(ERROR) << name_ << ": " << Describe(status);
  if (absl::Status stored = log_->RememberDamage(damage->first_missing); !stored.ok()) {
    LOG(ERROR) << name_ << ": a start does not know of it: " << Describe(stored);
  }
  options_.on_damage(*this);
}

absl::StatusOr<AppendResult> Replica::Append(const Buffer& batch, const BatchHeader& header) {
  CHECK(leader_ != nullptr);
  options_.space->Take(batch.size());
  if (const absl::Status& room = options_.space->Check(); !room.ok()) return room;
  auto appended = log_->AppendAsLeader(batch, header, leader_->leader_epoch(), clock_.WallNow());
  if (appended.ok() && !appended->duplicate) leader_->Appended(log_->log_end(), clock_.Now());
  return appended;
}

replication::AppendId Replica::AwaitCommit(Offset end, CommitDone done) {
  CHECK(leader_ != nullptr);
  const replication::AppendId append(++last_append_);
  waiting_.emplace(append, std::move(done));
  leader_->AwaitCommit(append, end);
  return append;
}

void Replica::Forget(replication::AppendId append) {
  waiting_.erase(append);
  if (leader_ != nullptr) leader_->Forget(append);
}

void Replica::ConfirmLeadership(CommitDone done) {
  CHECK(leader_ != nullptr);
  confirmations_.emplace(leader_->BeginRound(), std::move(done));
}

bool Replica::AwaitsSync() const {
  // A cut that did not come about leaves nothing to sync, and is waited for all the same.
  const bool needed = log_->NeedsSync() || cuts_ != cuts_synced_;
  return needed && !log_->SyncInFlight();
}

bool Replica::WantsSync() const {
  if (!AwaitsSync()) return false;
  if (clock_.Now() < no_sync_before_) return false;
  if (!config_.acknowledge_unsynced || cuts_ != cuts_synced_) return true;
  // What is not durable is not removed.
  if (std::min(wanted_log_start_, log_->log_end()) > log_->durable_offset()) return true;
  return clock_.Now() >= last_sync_began_ + config_.flush_age;
}

absl::StatusOr<LogSync> Replica::BeginSync() {
  cuts_at_sync_ = cuts_;
  last_sync_began_ = clock_.Now();
  auto sync = log_->BeginSync();
  if (!sync.ok()) PostponeSync(sync.status());
  return sync;
}

void Replica::PostponeSync(const absl::Status& why) {
  if (!log_->failure().ok()) return;
  no_sync_before_ = clock_.Now() + Duration::Seconds(1);
  LOG(ERROR) << name_ << ": its sync is tried again in a second: " << Describe(why);
}

absl::Status Replica::FinishSync(const LogSync& sync, const absl::Status& result) {
  const absl::Status finished = log_->FinishSync(sync, result);
  if (!finished.ok()) {
    PostponeSync(finished);
    return finished;
  }
  cuts_synced_ = std::max(cuts_synced_, cuts_at_sync_);
  if (const absl::Status moved = MoveLogStart(); !moved.ok()) {
    LOG(ERROR) << name_ << ": its log still begins at " << log_->log_start() << ": "
               << Describe(moved);
  }
  if (leader_ != nullptr) leader_->Durable(position().durable, clock_.Now());
  return absl::OkStatus();
}

absl::StatusOr<bool> Replica::ApplyRetention() {
  CHECK(leader_ != nullptr);
  return log_->ApplyRetention(clock_.WallNow(), high_watermark());
}

uint64_t Replica::Watch(ReplicaWatcher* watcher) {
  watchers_.emplace(++last_watch_, watcher);
  return last_watch_;
}

void Replica::CollectReleased() {
  for (LeaderReplica::Released& released : leader_->TakeReleased()) {
    const auto it = waiting_.find(released.append);
    if (it == waiting_.end()) continue;  // Forgotten.
    due_.emplace_back(std::move(it->second), std::move(released.status));
    waiting_.erase(it);
  }
  // Those that could lead in its place may be away, and without them there is no end to it.
  if (!leader_->HasMinimumIsr()) {
    for (auto& [round, done] : std::exchange(confirmations_, {})) {
      due_.emplace_back(
          std::move(done),
          MakeError(v1::NOT_ENOUGH_REPLICAS,
                    absl::StrCat(name_,
                                 " has fewer in-sync replicas than min.insync.replicas: another "
                                 "broker may lead it without this one knowing. Try again once "
                                 "'conclave topic describe' shows more")));
    }
  }
  const replication::Round confirmed = leader_->ConfirmedRound();
  while (!confirmations_.empty() && confirmations_.begin()->first <= confirmed) {
    due_.emplace_back(std::move(confirmations_.begin()->second), absl::OkStatus());
    confirmations_.erase(confirmations_.begin());
  }
}

void Replica::Settle() {
  if (leader_ != nullptr) CollectReleased();
  if (leader_ != nullptr) CollectRemovals();
  for (auto& [done, status] : std::exchange(due_, {})) done(status);
  if (high_watermark() != shown_high_watermark_) {
    shown_high_watermark_ = high_watermark();
    changed_ = true;
  }
  if (!std::exchange(changed_, false)) return;
  std::vector<uint64_t> watches;
  for (const auto& [watch, watcher] : watchers_) watches.push_back(watch);
  for (const uint64_t watch : watches) {
    const auto it = watchers_.find(watch);
    if (it != watchers_.end()) it->second->OnReplicaChanged(id());
  }
}

// --- The log, as replication sees it

replication::EpochEnd Replica::EndOfEpoch(LeaderEpoch epoch) const {
  const conclave::EpochEnd end = log_->EndOfEpoch(epoch);
  return {end.epoch, end.end};
}

replication::LogPosition Replica::position() const {
  const Offset durable = cuts_ == cuts_synced_ ? log_->durable_offset() : Offset(0);
  return {log_->log_end(), durable};
}

absl::Status Replica::TruncateTo(Offset end) {
  LOG(INFO) << name_ << ": truncates from " << log_->log_end() << " to " << end
            << ", where the leader's log differs";
  if (end < high_watermark()) {
    LOG(ERROR) << name_ << ": the records from offset " << end << " to " << high_watermark()
               << " were committed, and its leader does not have them: they are cut here, too. "
                  "Either the leader was elected uncleanly, or its disk has lost what it had "
                  "acknowledged";
  }
  // Nothing to sync where nothing is cut.
  if (end < log_->log_end()) ++cuts_;
  wanted_log_start_ = std::min(wanted_log_start_, end);
  return AfterCut(log_->TruncateTo(end));
}

// A log that begins anew is durable at once, and then no sync would tell so.
absl::Status Replica::AfterCut(absl::Status cut) {
  if (cut.ok() && !log_->NeedsSync()) cuts_synced_ = cuts_;
  return cut;
}

absl::Status Replica::ResetTo(Offset offset, const v1::RememberedProducers& producers) {
  LOG(WARNING) << name_ << ": begins anew at " << offset
               << ", where the leader's log begins; it had "
               << "come to " << log_->log_end();
  ++cuts_;
  return AfterCut(log_->ResetTo(offset, ProducersFromProto(producers)));
}

absl::Status Replica::Append(const Buffer& batches) {
  options_.space->Take(batches.size());
  if (const absl::Status& room = options_.space->Check(); !room.ok()) return room;
  const auto checked = CheckBatchRun(batches);
  if (!checked.ok()) return checked.status();
  return log_->AppendAsFollower(batches, *checked, clock_.WallNow());
}

}  // namespace conclave::broker
