// What a leader does (Raft 5.3, 5.4.2, 8; Ongaro's thesis 6.2 and 6.4).
#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "raft/core/commit_rule.h"
#include "raft/core/quorum.h"
#include "raft/core/raft_core.h"

namespace conclave::raft {

void RaftCore::BecomeLeader() {
  CHECK(!leader_) << "term " << term() << " has two leaders, " << *leader_ << " and ourselves";
  campaign_.reset();
  role_ = Role::kLeader;
  leader_ = config_.self;
  ++counters_.elections_won;
  Leadership& leadership = leadership_.emplace();
  leadership.heartbeat_deadline = now_ + config_.heartbeat_interval;
  for (const VoterSet::Member& member : log_.voters().members()) {
    if (member.key == config_.self) continue;
    leadership.peers.emplace(member.key, Progress(log_.last_index() + 1, now_));
  }
  for (LogIndex i = log_.commit_index() + 1; i <= log_.last_index(); ++i) {
    leadership.uncommitted_bytes += log_.At(i).Bytes();
  }
  leadership.first_index = AppendOwn(EntryKind::kNoop, "").index;
}

// It may still be the cluster's best hope, so it neither raises the term nor forgets its vote.
void RaftCore::Resign() {
  EndRole();
  leader_contact_.reset();
}

void RaftCore::LeaderTick() {
  if (WriteStalled()) {
    ++counters_.stall_resignations;
    return Resign();
  }
  if (now_ >= QuorumDeadline()) {
    ++counters_.quorum_resignations;
    return Resign();
  }
  if (now_ < leadership_->heartbeat_deadline) return;
  leadership_->heartbeat_deadline = now_ + config_.heartbeat_interval;
  leadership_->round_due = true;
  std::erase_if(leadership_->observers, [&](const auto& entry) {
    return now_ >= entry.second.progress.last_contact() + config_.observer_silence;
  });
}

// When a majority, itself included, will have been silent for an election timeout.
MonotonicTime RaftCore::QuorumDeadline() const {
  std::vector<MonotonicTime> contacts;
  for (const VoterSet::Member& member : log_.voters().members()) {
    contacts.push_back(member.key == config_.self ? now_ : Peer(member.key).last_contact());
  }
  return ReachedByMajority(std::move(contacts)) + config_.election_timeout_max;
}

absl::StatusOr<LogPosition> RaftCore::Propose(std::string data, MonotonicTime now) {
  Advance(now);
  if (!leadership_) return absl::FailedPreconditionError("not the leader of the quorum");
  if (data.size() > config_.max_proposal_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a proposal of ", data.size(),
                                                   " bytes; at most ", config_.max_proposal_bytes,
                                                   " are allowed"));
  }
  if (leadership_->uncommitted_bytes + data.size() > config_.max_uncommitted_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        leadership_->uncommitted_bytes, " bytes wait to be committed; retry when they are"));
  }
  return AppendOwn(EntryKind::kData, std::move(data));
}

LogPosition RaftCore::AppendOwn(EntryKind kind, std::string data) {
  Entry entry{.index = log_.last_index() + 1,
              .term = term(),
              .kind = kind,
              .data = std::make_shared<const std::string>(std::move(data))};
  const LogPosition position = entry.position();
  leadership_->uncommitted_bytes += entry.Bytes();
  log_.Append(std::move(entry));
  MarkUnwritten();
  return position;
}

absl::Status RaftCore::ReadIndex(ReadContext context, MonotonicTime now) {
  Advance(now);
  if (!leadership_) return absl::FailedPreconditionError("not the leader of the quorum");
  if (leadership_->reads.size() >= config_.max_pending_reads) {
    return absl::ResourceExhaustedError(
        absl::StrCat(leadership_->reads.size(), " reads wait for a heartbeat round"));
  }
  // Rounds under way began before this read and prove nothing for it.
  leadership_->reads.Add(context, log_.commit_index(), leadership_->round + 1);
  leadership_->round_due = true;
  return absl::OkStatus();
}

const Progress& RaftCore::Peer(const ReplicaKey& voter) const {
  const auto peer = leadership_->peers.find(voter);
  CHECK(peer != leadership_->peers.end()) << "the leader does not follow voter " << voter;
  return peer->second;
}

Progress* RaftCore::FindProgress(const ReplicaKey& peer) {
  if (!leadership_) return nullptr;
  if (const auto it = leadership_->peers.find(peer); it != leadership_->peers.end()) {
    return &it->second;
  }
  const auto it = leadership_->observers.find(peer);
  return it == leadership_->observers.end() ? nullptr : &it->second.progress;
}

void RaftCore::HandleAppendResponse(const Admitted& in) {
  if (!leadership_ || in.term < term()) return;
  Progress* progress = FindProgress(in.from);
  if (progress == nullptr) return;
  const v1::AppendResponse& response = in.message->append_response();
  if (LogIndex(response.received_index()) > log_.last_index() ||
      response.round() > leadership_->round) {
    return Reject({RejectionReason::kMalformed, in.from,
                   absl::StrCat("it answers what was never sent: index ", response.received_index(),
                                " of ", log_.last_index().value(), ", round ", response.round(),
                                " of ", leadership_->round)});
  }
  progress->Heard(response.round(), now_);
  if (response.accepted()) {
    progress->Accepted(LogIndex(response.match_index()), LogIndex(response.received_index()));
    AdvanceCommit();
  } else {
    progress->Rejected(LogIndex(response.rejected_index()), ResumeHint(response),
                       response.attempt());
  }
  ResolveReads();
}

// Where the logs may agree up to, by the conflict that a peer names (end of Raft 5.3).
LogIndex RaftCore::ResumeHint(const v1::AppendResponse& response) const {
  const LogIndex conflict_index(response.conflict_index());
  if (response.conflict_term() == 0) return conflict_index;
  const LogIndex ours = log_.LastAtOrBelow(Term(response.conflict_term()));
  const bool has_term =
      ours >= conflict_index && log_.TermAt(ours)->value() == response.conflict_term();
  // Without that term nothing of the peer's run of it can agree; with it, nothing after our last.
  return has_term ? ours + 1 : conflict_index;
}

void RaftCore::HandleAnnouncement(const Admitted& in) {
  if (!leadership_ || log_.voters().Contains(in.from)) return;
  const std::string& endpoint = in.message->observer_announcement().endpoint();
  if (const auto it = leadership_->observers.find(in.from); it != leadership_->observers.end()) {
    it->second.endpoint = endpoint;
    it->second.progress.Heard(0, now_);
    it->second.progress.Probe();
    return;
  }
  if (leadership_->observers.size() >= config_.max_observers) {
    return Reject({RejectionReason::kTooManyObservers, in.from,
                   absl::StrCat("there are ", config_.max_observers, " already")});
  }
  // From the last entry on, so that there is something to send at once.
  leadership_->observers.emplace(in.from, Observer{Progress(log_.last_index(), now_), endpoint});
}

void RaftCore::AdvanceCommit() {
  std::vector<LogIndex> durable;
  for (const VoterSet::Member& member : log_.voters().members()) {
    durable.push_back(member.key == config_.self ? log_.durable_index() : Peer(member.key).match());
  }
  const LogIndex before = log_.commit_index();
  log_.CommitTo(NextCommitIndex(log_, std::move(durable), term()));
  for (LogIndex i = before + 1; i <= log_.commit_index(); ++i) {
    leadership_->uncommitted_bytes -= log_.At(i).Bytes();
  }
  if (log_.commit_index() > before) ResolveReads();
}

void RaftCore::ResolveReads() {
  if (leadership_->reads.empty() || !leader_serves()) return;
  std::vector<uint64_t> answered;
  for (const VoterSet::Member& member : log_.voters().members()) {
    answered.push_back(member.key == config_.self ? leadership_->round
                                                  : Peer(member.key).answered_round());
  }
  auto confirmed = leadership_->reads.TakeConfirmed(ReachedByMajority(std::move(answered)),
                                                    leadership_->first_index);
  std::move(confirmed.begin(), confirmed.end(), std::back_inserter(out_.reads));
}

void RaftCore::FlushAppends() {
  if (!leadership_) return;
  const bool round = std::exchange(leadership_->round_due, false);
  if (round) ++leadership_->round;
  for (auto& [key, progress] : leadership_->peers) FlushTo(key, progress, round);
  for (auto& [key, observer] : leadership_->observers) FlushTo(key, observer.progress, round);
  if (round) ResolveReads();  // a quorum of one has just answered
}

void RaftCore::FlushTo(const ReplicaKey& to, Progress& progress, bool round) {
  bool sent = false;
  while (progress.next() <= log_.last_index() && progress.CanSend(config_.max_in_flight_appends)) {
    SendAppend(to, progress, /*with_entries=*/true);
    sent = true;
  }
  const bool commit_news =
      !progress.probing() &&
      progress.told_commit() < std::min(log_.commit_index(), progress.next() - 1);
  if (!sent && (round || commit_news)) SendAppend(to, progress, /*with_entries=*/false);
}

void RaftCore::SendAppend(const ReplicaKey& to, Progress& progress, bool with_entries) {
  v1::RaftMessage message = NewMessage(to);
  v1::AppendRequest* append = message.mutable_append_request();
  const LogIndex prev = progress.next() - 1;
  append->set_prev_index(prev.value());
  append->set_prev_term(log_.TermAt(prev)->value());
  append->set_commit_index(log_.commit_index().value());
  append->set_round(leadership_->round);
  append->set_attempt(progress.attempt());
  LogIndex last = prev;
  if (with_entries) {
    for (const Entry& entry :
         log_.Slice(progress.next(), log_.last_index(), config_.max_append_bytes)) {
      *append->add_entries() = ToProto(entry);
      last = entry.index;
    }
  }
  progress.Sent(last, log_.commit_index());
  ++counters_.appends_sent;
  Send(std::move(message));
}

}  // namespace conclave::raft
