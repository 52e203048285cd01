#include "broker/replication/follower_replica.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::replication {
namespace {

constexpr size_t kMuchBytes = size_t{1} << 20;

}  // namespace

FollowerReplica::FollowerReplica(LeaderEpoch leader_epoch, Session last_session,
                                 Offset high_watermark, FollowerLog& log)
    : leader_epoch_(leader_epoch),
      session_(last_session),
      high_watermark_(std::min(high_watermark, log.position().end)),
      log_(log) {}

FollowerReplica::Position FollowerReplica::Begin() {
  ++session_;
  open_ = true;
  agreed_ = false;
  begins_anew_ = log_.begins_anew();
  acknowledged_.reset();
  round_ = acknowledged_round_ = Round();
  return {session_,          leader_epoch_,    log_.position(),
          log_.last_epoch(), log_.log_start(), begins_anew_};
}

bool FollowerReplica::IsCurrent(Session session, LeaderEpoch leader_epoch) const {
  return open_ && session == session_ && leader_epoch == leader_epoch_;
}

FollowerReplica::Next FollowerReplica::OnData(Session session, LeaderEpoch leader_epoch,
                                              const Data& data) {
  if (!IsCurrent(session, leader_epoch)) return Dropped{};
  // Data is the leader's word that the logs agree up to the position; its mark may be believed now.
  agreed_ = true;
  if (!data.batches.empty()) {
    if (absl::Status appended = log_.Append(data.batches); !appended.ok()) {
      open_ = false;
      return Stopped{appended};
    }
    unacknowledged_bytes_ += data.batches.size();
  }
  high_watermark_ = std::max(high_watermark_, std::min(data.high_watermark, log_.position().end));
  round_ = std::max(round_, data.round);
  // Never what is not known to be committed.
  const Offset removable = std::min(data.log_start, high_watermark_);
  if (absl::Status removed = log_.RemoveBefore(removable); !removed.ok()) {
    open_ = false;
    return Stopped{removed};
  }
  return Nothing{};
}

FollowerReplica::Next FollowerReplica::OnBeginAt(Session session, LeaderEpoch leader_epoch,
                                                 Offset log_start,
                                                 const v1::RememberedProducers& producers) {
  if (!IsCurrent(session, leader_epoch)) return Dropped{};
  if (begins_anew_) {
    open_ = false;
    return Replace{};
  }
  if (log_start < high_watermark_) {
    open_ = false;
    return Stopped{
        MakeError(v1::UNKNOWN_SERVER_ERROR,
                  absl::StrCat("the leader says that this log has nothing of its own, which begins "
                               "at ",
                               log_start.value(), ", and here records up to ",
                               high_watermark_.value(), " are known to be committed"))};
  }
  if (absl::Status reset = log_.ResetTo(log_start, producers); !reset.ok()) {
    open_ = false;
    return Stopped{reset};
  }
  // The leader removes nothing that is not committed.
  high_watermark_ = std::max(high_watermark_, log_start);
  return Begin();
}

FollowerReplica::Next FollowerReplica::OnDivergence(Session session, LeaderEpoch leader_epoch,
                                                    EpochEnd leader_end) {
  if (!IsCurrent(session, leader_epoch)) return Dropped{};
  const Offset before = log_.position().end;
  // Where our own log leaves the epoch that both have: what is beyond it is of epochs that the
  // leader has not.
  const EpochEnd ours = log_.EndOfEpoch(leader_end.epoch);
  const Offset cut = std::min({leader_end.end, ours.end, before});
  if (cut == before && ours.epoch == log_.last_epoch() && ours.epoch == leader_end.epoch) {
    open_ = false;
    return Stopped{MakeError(
        v1::UNKNOWN_SERVER_ERROR,
        absl::StrCat("the leader says that the logs differ at ", leader_end.end.value(),
                     " of epoch ", leader_end.epoch.value(), ", and this log ends there"))};
  }
  if (absl::Status truncated = log_.TruncateTo(cut); !truncated.ok()) {
    open_ = false;
    return Stopped{truncated};
  }
  // What was committed is on every log that may lead: a cut below the mark we know means that the
  // mark's records were never ours to show.
  high_watermark_ = std::min({high_watermark_, cut, log_.position().end});
  return Begin();
}

FollowerReplica::Next FollowerReplica::OnRefused(Session session, LeaderEpoch leader_epoch,
                                                 const absl::Status& why) {
  if (!IsCurrent(session, leader_epoch)) return Dropped{};
  open_ = false;
  agreed_ = false;
  return Stopped{why};
}

bool FollowerReplica::IsNews(const LogPosition& position) const {
  if (!acknowledged_ || position.durable != acknowledged_->durable) return true;
  // What does not count yet is told with what does: a message less for each batch. Much of it shows
  // that the follower is there, however long the sync takes.
  return position.end != acknowledged_->end &&
         (log_.counts_unsynced() || unacknowledged_bytes_ >= kMuchBytes);
}

std::optional<FollowerReplica::Ack> FollowerReplica::TakeAck() {
  if (!open_ || !agreed_) return std::nullopt;
  const LogPosition position = log_.position();
  const Offset log_start = log_.log_start();
  if (acknowledged_round_ == round_ && acknowledged_log_start_ == log_start && !IsNews(position)) {
    return std::nullopt;
  }
  acknowledged_ = position;
  unacknowledged_bytes_ = 0;
  acknowledged_round_ = round_;
  acknowledged_log_start_ = log_start;
  return Ack{session_, leader_epoch_, position, round_, log_start};
}

}  // namespace conclave::replication
