#include "broker/replication/leader_replica.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::replication {
namespace {

constexpr Duration kAfterRefusal = Duration::Milliseconds(50);

}  // namespace

LeaderReplica::LeaderReplica(Config config, Start start, const LeaderLog& log, MonotonicTime now)
    : config_(config),
      log_(log),
      state_(std::move(start.state)),
      min_isr_(start.min_isr),
      flush_policy_(start.flush_policy),
      log_position_(start.log),
      epoch_start_(start.log.end),
      high_watermark_(std::min(start.high_watermark, start.log.end)),
      history_(config.replica_lag_time_max, start.log.end, now),
      next_check_(now + config.replica_lag_time_max / 2),
      last_seen_(now) {
  CHECK(InIsr(config_.self)) << "a leader outside the ISR";
  // Members of the ISR have the time to position themselves that any follower has to catch up.
  for (const BrokerId broker : state_.replicas) {
    if (broker == config_.self) continue;
    followers_[broker].current_at = now;
  }
  AdvanceHighWatermark();
}

// --- The leader's own log

absl::Status LeaderReplica::CheckAppendToAll() const {
  if (HasMinimumIsr()) return absl::OkStatus();
  return MakeError(v1::NOT_ENOUGH_REPLICAS,
                   absl::StrCat("the partition has ", state_.isr.size(),
                                " in-sync replicas and needs ", min_isr_,
                                " (min.insync.replicas); nothing was appended. 'conclave "
                                "topic describe' shows which are missing"));
}

void LeaderReplica::Appended(Offset end, MonotonicTime now) {
  last_seen_ = now;
  CHECK_GE(end, log_position_.end);
  log_position_.end = end;
  history_.Append(end, now);
  // Where the log's end counts, the leader may be the last to have come that far.
  AdvanceHighWatermark();
}

void LeaderReplica::Durable(Offset durable, MonotonicTime) {
  CHECK_LE(durable, log_position_.end);
  log_position_.durable = std::max(log_position_.durable, durable);
  AdvanceHighWatermark();
  MaybeTellSynced();
}

void LeaderReplica::AwaitCommit(AppendId append, Offset end) {
  waiting_.emplace(end, append);
  ReleaseCommitted();
}

void LeaderReplica::Forget(AppendId append) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->second != append) continue;
    waiting_.erase(it);
    return;
  }
}

// --- Followers

LeaderReplica::Answer LeaderReplica::Positioned(const Position& position, MonotonicTime now) {
  if (position.leader_epoch != state_.leader_epoch) {
    const bool older = position.leader_epoch < state_.leader_epoch;
    return MakeError(older ? v1::FENCED_LEADER_EPOCH : v1::UNKNOWN_LEADER_EPOCH,
                     absl::StrCat("the follower is at leader epoch ", position.leader_epoch.value(),
                                  " and this leader at ", state_.leader_epoch.value()));
  }
  const auto it = followers_.find(position.follower);
  if (it == followers_.end()) {
    return MakeError(v1::INELIGIBLE_REPLICA,
                     absl::StrCat("broker ", position.follower.value(), " is no replica"));
  }
  Follower& follower = it->second;
  if (position.broker_epoch < follower.broker_epoch ||
      (position.broker_epoch == follower.broker_epoch && follower.session &&
       position.session <= *follower.session)) {
    return MakeError(v1::STALE_BROKER_EPOCH, "a newer stream or positioning has replaced this one");
  }
  if (position.broker_epoch != follower.broker_epoch) {
    // Another incarnation: what the last one had acknowledged, this one may have lost.
    follower.acknowledged.reset();
    follower.log_start = Offset();
  }
  follower.broker_epoch = position.broker_epoch;
  follower.session = position.session;
  follower.agreed = false;
  follower.log_start = std::max(follower.log_start, position.log_start);

  if (position.begins_anew) return BeginsAnew(position.follower, follower);
  const Offset log_start = log_.log_start();
  const Offset first_batch = log_.first_batch();
  // A batch is copied as a whole: nothing can go on from within one.
  if (position.log.end <= log_start && position.log.end != first_batch && log_start > Offset(0)) {
    return BeginAt{first_batch};
  }
  if (position.last_epoch != kNoEpoch) {
    const EpochEnd ours = log_.EndOfEpoch(position.last_epoch);
    // Of what it has nothing is left here, and what is left here it has not.
    if (ours.epoch == kNoEpoch && log_start > Offset(0)) return BeginAt{first_batch};
    if (ours.epoch != position.last_epoch || position.log.end > ours.end) return ours;
  } else if (position.log.end > log_position_.end) {
    return EpochEnd{kNoEpoch, log_start};
  }
  follower.agreed = true;
  follower.next = position.log.end;
  follower.told_high_watermark = Offset(-1);
  follower.told_round = Round();
  Acknowledged(position.follower, position.broker_epoch, position.session, position.leader_epoch,
               position.log, Round(), now);
  return Agreed{};
}

// Nobody but this leader, in this epoch, can bring the follower back among those that may lead, by
// what it has acknowledged: once that is forgotten, the old log may go.
LeaderReplica::Answer LeaderReplica::BeginsAnew(BrokerId broker, Follower& follower) const {
  if (Electable().contains(broker)) {
    return MakeError(v1::INELIGIBLE_REPLICA,
                     absl::StrCat("broker ", broker.value(),
                                  " is still counted on for the records that it means to drop"));
  }
  follower.acknowledged.reset();
  follower.log_start = Offset();
  return BeginAt{log_.first_batch()};
}

void LeaderReplica::Acknowledged(BrokerId broker, BrokerEpoch broker_epoch, Session session,
                                 LeaderEpoch leader_epoch, LogPosition log, Round round,
                                 MonotonicTime now) {
  const auto it = followers_.find(broker);
  if (it == followers_.end() || resigned_) return;
  last_seen_ = now;
  Follower& follower = it->second;
  if (leader_epoch != state_.leader_epoch || broker_epoch != follower.broker_epoch ||
      session != follower.session || !follower.agreed) {
    return;
  }
  if (log.end > follower.next || log.durable > log.end)
    return;  // It cannot have what was not sent.
  if (round <= follower.told_round) {
    follower.confirmed_round = std::max(follower.confirmed_round, round);
  }
  follower.acknowledged_at = now;
  if (!follower.acknowledged) follower.acknowledged = LogPosition{};
  follower.acknowledged->end = std::max(follower.acknowledged->end, log.end);
  follower.acknowledged->durable = std::max(follower.acknowledged->durable, log.durable);
  follower.current_at =
      std::max(follower.current_at, history_.CurrentAt(Counted(*follower.acknowledged), now));
  AdvanceHighWatermark();
  MaybeExpand(broker);
  MaybeTellSynced();
}

void LeaderReplica::LogStartMoved(BrokerId broker, BrokerEpoch broker_epoch, Session session,
                                  LeaderEpoch leader_epoch, Offset log_start) {
  const auto it = followers_.find(broker);
  if (it == followers_.end() || leader_epoch != state_.leader_epoch ||
      broker_epoch != it->second.broker_epoch || session != it->second.session) {
    return;
  }
  it->second.log_start = std::max(it->second.log_start, log_start);
}

Offset LeaderReplica::LogStartOfIsr() const {
  Offset least = log_.log_start();
  for (const BrokerId broker : MaximalIsr()) {
    if (broker == config_.self) continue;
    const auto it = followers_.find(broker);
    least = std::min(least, it == followers_.end() ? Offset() : it->second.log_start);
  }
  return least;
}

std::vector<BrokerId> LeaderReplica::BehindLogStart(Offset offset) const {
  std::vector<BrokerId> behind;
  for (const BrokerId broker : MaximalIsr()) {
    if (broker == config_.self) continue;
    const auto it = followers_.find(broker);
    if (it == followers_.end() || it->second.log_start < offset) behind.push_back(broker);
  }
  return behind;
}

void LeaderReplica::StreamClosed(BrokerId broker, BrokerEpoch broker_epoch, Session session) {
  const auto it = followers_.find(broker);
  if (it == followers_.end() || it->second.broker_epoch != broker_epoch ||
      it->second.session != session) {
    return;
  }
  it->second.agreed = false;
}

std::optional<LeaderReplica::Feed> LeaderReplica::FeedOf(BrokerId broker) const {
  const auto it = followers_.find(broker);
  if (it == followers_.end() || !it->second.agreed) return std::nullopt;
  const Follower& follower = it->second;
  return Feed{*follower.session, follower.next, follower.acknowledged->end,
              follower.told_high_watermark, follower.told_round};
}

void LeaderReplica::Sent(BrokerId broker, Session session, Offset next, Offset high_watermark,
                         Round round) {
  const auto it = followers_.find(broker);
  if (it == followers_.end() || it->second.session != session || !it->second.agreed) return;
  it->second.next = std::max(it->second.next, next);
  it->second.told_high_watermark = std::max(it->second.told_high_watermark, high_watermark);
  it->second.told_round = std::max(it->second.told_round, round);
}

Round LeaderReplica::ConfirmedRound() const {
  Round confirmed = round_;
  for (const BrokerId broker : Electable()) {
    if (broker == config_.self) continue;
    const auto it = followers_.find(broker);
    confirmed = std::min(confirmed, it == followers_.end() ? Round() : it->second.confirmed_round);
  }
  return confirmed;
}

// --- Metadata

void LeaderReplica::MetadataChanged(const PartitionState& state, int min_isr, MonotonicTime now) {
  CHECK_EQ(state.leader_epoch, state_.leader_epoch) << "another epoch is another leader";
  min_isr_ = min_isr;
  if (state.partition_epoch > state_.partition_epoch) TakeRecord(state, now);
  FailIfUnderMinimum();
  AdvanceHighWatermark();
  MaybeExpandAny();
  MaybeTellSynced();
}

void LeaderReplica::TakeRecord(const PartitionState& state, MonotonicTime now) {
  state_ = state;
  // Whatever was in flight was based on an older record: it has taken effect, or never will.
  ForgetProposal();
  attempt_unknown_ = false;
  // What is acknowledged is so by a log that is set aside, or by one that comes after.
  std::erase_if(followers_, [this](const auto& follower) { return !IsReplica(follower.first); });
  for (const BrokerId broker : state_.replicas) {
    if (broker == config_.self || followers_.count(broker) > 0) continue;
    followers_[broker].current_at = now;
  }
}

void LeaderReplica::SetFlushPolicy(FlushPolicy policy) {
  flush_policy_ = policy;
  AdvanceHighWatermark();
  MaybeTellSynced();
}

void LeaderReplica::SetBrokers(std::map<BrokerId, BrokerInfo> brokers, MonotonicTime) {
  brokers_ = std::move(brokers);
  MaybeExpandAny();
}

void LeaderReplica::ProposalRefused(MonotonicTime now) {
  if (!proposed_ || proposal_) return;
  if (!attempt_unknown_) {
    ForgetProposal();
    AdvanceHighWatermark();
    propose_not_before_ = now + kAfterRefusal;
    next_check_ = std::min(next_check_, propose_not_before_);
    return;
  }
  // An earlier attempt may be on its way still, so whom it names counts. To propose the ISR as it
  // is raises the partition epoch and with it ends whatever was based on the old one.
  proposal_ = ProposalOf({state_.isr.begin(), state_.isr.end()});
}

void LeaderReplica::ProposalOutcomeUnknown(MonotonicTime) {
  if (!proposed_ || proposal_) return;
  attempt_unknown_ = true;
  proposal_ = ProposalOf(*proposed_);
}

void LeaderReplica::Tick(MonotonicTime now) {
  last_seen_ = now;
  if (now < next_check_) return;
  next_check_ = now + config_.replica_lag_time_max / 2;
  MaybeShrink(now);
  MaybeExpandAny();
  MaybeTellSynced();
  MaybeHandOver(now);
}

MonotonicTime LeaderReplica::NextDeadline() const {
  return resigned_ ? MonotonicTime::Never() : next_check_;
}

void LeaderReplica::Resign() {
  resigned_ = true;
  for (const auto& [end, append] : waiting_) {
    released_.push_back({append, MakeError(v1::LEADER_CHANGED_AFTER_APPEND,
                                           "the partition got another leader before the records "
                                           "were committed: they may be kept or lost; an "
                                           "idempotent producer may send them again")});
  }
  waiting_.clear();
  ForgetProposal();
}

// --- Outputs

std::optional<LeaderReplica::Proposal> LeaderReplica::TakeProposal() {
  return std::exchange(proposal_, std::nullopt);
}

std::vector<LeaderReplica::Released> LeaderReplica::TakeReleased() {
  return std::exchange(released_, {});
}

// --- The rules

bool LeaderReplica::InIsr(BrokerId broker) const {
  return std::find(state_.isr.begin(), state_.isr.end(), broker) != state_.isr.end();
}

bool LeaderReplica::IsReplica(BrokerId broker) const {
  return std::find(state_.replicas.begin(), state_.replicas.end(), broker) != state_.replicas.end();
}

Offset LeaderReplica::Counted(const LogPosition& log) const {
  const bool unsynced = flush_policy_ == FlushPolicy::kReplicated &&
                        state_.flush_policy == FlushPolicy::kReplicated && !proposed_synced_;
  return unsynced ? log.end : log.durable;
}

std::set<BrokerId> LeaderReplica::MaximalIsr() const {
  std::set<BrokerId> maximal(state_.isr.begin(), state_.isr.end());
  if (proposed_) maximal.insert(proposed_->begin(), proposed_->end());
  return maximal;
}

std::set<BrokerId> LeaderReplica::Electable() const {
  std::set<BrokerId> electable = MaximalIsr();
  electable.insert(state_.elr.begin(), state_.elr.end());
  return electable;
}

void LeaderReplica::AdvanceHighWatermark() {
  if (resigned_ || !HasMinimumIsr()) return;
  Offset least = Counted(log_position_);
  for (const BrokerId broker : MaximalIsr()) {
    if (broker == config_.self) continue;
    const auto it = followers_.find(broker);
    // A member that has acknowledged nothing in this epoch holds the mark where it is.
    if (it == followers_.end() || !it->second.acknowledged) return;
    least = std::min(least, Counted(*it->second.acknowledged));
  }
  if (least <= high_watermark_) return;
  high_watermark_ = least;
  ReleaseCommitted();
  // Who was behind the mark's old place may not be behind its new one; who is beyond it may join.
  MaybeExpandAny();
}

void LeaderReplica::ReleaseCommitted() {
  while (!waiting_.empty() && waiting_.begin()->first <= high_watermark_) {
    released_.push_back({waiting_.begin()->second, absl::OkStatus()});
    waiting_.erase(waiting_.begin());
  }
}

void LeaderReplica::FailIfUnderMinimum() {
  const int in_sync = static_cast<int>(state_.isr.size());
  if (in_sync >= min_isr_) return;
  for (const auto& [end, append] : waiting_) {
    released_.push_back(
        {append, MakeError(v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                           absl::StrCat("the records are in the log, but the in-sync replicas fell "
                                        "to ",
                                        in_sync, " of the ", min_isr_,
                                        " needed before they were committed"))});
  }
  waiting_.clear();
}

bool LeaderReplica::MayJoin(BrokerId broker, const Follower& follower) const {
  if (!follower.agreed || !follower.acknowledged || InIsr(broker) || !IsReplica(broker)) {
    return false;
  }
  const auto info = brokers_.find(broker);
  if (info == brokers_.end() || !info->second.eligible ||
      info->second.epoch != follower.broker_epoch) {
    return false;
  }
  // Else, leading one day, it would show again what was removed.
  if (follower.log_start < log_.log_start()) return false;
  return Counted(*follower.acknowledged) >= high_watermark_ &&
         Counted(*follower.acknowledged) >= epoch_start_;
}

void LeaderReplica::MaybeExpandAny() {
  for (const auto& [broker, follower] : followers_) MaybeExpand(broker);
}

void LeaderReplica::MaybeExpand(BrokerId broker) {
  if (proposed_ || resigned_ || last_seen_ < propose_not_before_) return;
  const auto it = followers_.find(broker);
  if (it == followers_.end() || !MayJoin(broker, it->second)) return;
  std::set<BrokerId> isr(state_.isr.begin(), state_.isr.end());
  isr.insert(broker);
  Propose(isr);
}

void LeaderReplica::MaybeShrink(MonotonicTime now) {
  if (proposed_ || resigned_) return;
  std::set<BrokerId> isr(state_.isr.begin(), state_.isr.end());
  for (auto& [broker, follower] : followers_) {
    if (follower.acknowledged && follower.agreed) {
      follower.current_at =
          std::max(follower.current_at, history_.CurrentAt(Counted(*follower.acknowledged), now));
    }
    if (now - follower.current_at >= config_.replica_lag_time_max) isr.erase(broker);
  }
  if (isr.size() < state_.isr.size()) Propose(isr);
}

bool LeaderReplica::IsSyncedToBeTold() const {
  if (flush_policy_ != FlushPolicy::kFsync || state_.flush_policy == FlushPolicy::kFsync) {
    return false;
  }
  // What the members that left have synced is not known, and they may come to lead.
  if (!HasMinimumIsr() || log_position_.durable < high_watermark_) return false;
  const std::set<BrokerId> members = MaximalIsr();
  return std::all_of(members.begin(), members.end(), [this](BrokerId broker) {
    if (broker == config_.self) return true;
    const auto it = followers_.find(broker);
    return it != followers_.end() && it->second.acknowledged &&
           it->second.acknowledged->durable >= high_watermark_;
  });
}

void LeaderReplica::MaybeTellSynced() {
  if (proposed_ || resigned_ || last_seen_ < propose_not_before_ || !IsSyncedToBeTold()) return;
  Propose({state_.isr.begin(), state_.isr.end()});
}

bool LeaderReplica::IsUnfollowed(MonotonicTime now) const {
  if (HasMinimumIsr()) return false;
  for (const auto& [broker, follower] : followers_) {
    // It catches up, however long that takes.
    const auto& heard = follower.acknowledged_at;
    if (heard && now - *heard < config_.replica_lag_time_max / 2) return false;
  }
  const std::set<BrokerId> electable = Electable();
  return std::any_of(electable.begin(), electable.end(), [this](BrokerId broker) {
    const auto info = brokers_.find(broker);
    return broker != config_.self && info != brokers_.end() && info->second.eligible;
  });
}

// A leader that the controller reaches and its followers do not would keep the partition from being
// written for as long as that lasts.
void LeaderReplica::MaybeHandOver(MonotonicTime now) {
  if (!IsUnfollowed(now)) {
    unfollowed_since_.reset();
  } else if (!unfollowed_since_) {
    unfollowed_since_ = now;
  } else if (!proposed_ && !resigned_ && now >= propose_not_before_) {
    unfollowed_since_ = now;
    Propose({state_.isr.begin(), state_.isr.end()});
    proposal_->hand_over = true;
  }
}

void LeaderReplica::Propose(const std::set<BrokerId>& isr) {
  proposed_ = isr;
  proposal_ = ProposalOf(isr);
}

void LeaderReplica::ForgetProposal() {
  proposed_.reset();
  proposed_synced_ = false;
  proposal_.reset();
}

LeaderReplica::Proposal LeaderReplica::ProposalOf(const std::set<BrokerId>& isr) {
  Proposal proposal;
  proposal.partition_epoch = state_.partition_epoch;
  proposal.synced = IsSyncedToBeTold();
  // An earlier attempt may have said so.
  proposed_synced_ = proposed_synced_ || proposal.synced;
  for (const BrokerId broker : isr) {
    BrokerEpoch epoch;
    const auto info = brokers_.find(broker);
    if (info != brokers_.end()) epoch = info->second.epoch;
    // What was acknowledged was acknowledged by that incarnation, whatever lives now.
    const auto follower = followers_.find(broker);
    if (follower != followers_.end() && follower->second.acknowledged) {
      epoch = follower->second.broker_epoch;
    }
    proposal.isr.push_back({broker, epoch});
  }
  return proposal;
}

}  // namespace conclave::replication
