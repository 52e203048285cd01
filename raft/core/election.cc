// Votes and pre-votes (Raft 5.2, 5.4.1; Ongaro's thesis 9.6; KIP-996).
#include <glog/logging.h>

#include "raft/core/quorum.h"
#include "raft/core/raft_core.h"

namespace conclave::raft {

Duration RaftCore::DrawTimeout() {
  return Duration::Nanoseconds(random_.Between(config_.election_timeout_min.nanoseconds(),
                                               config_.election_timeout_max.nanoseconds()));
}

bool RaftCore::HearsLiveLeader() const {
  if (role_ == Role::kLeader) return true;
  return leader_contact_ && now_ < *leader_contact_ + config_.election_timeout_min;
}

void RaftCore::ElectionTimeout() {
  if (WriteStalled()) {
    // Its vote for itself could not become durable in time either.
    election_deadline_ = now_ + DrawTimeout();
    return;
  }
  StartCampaign();
}

// Asks whether it would be elected, in the term it is in.
void RaftCore::StartCampaign() {
  EndRole();
  CHECK(role_ == Role::kFollower) << "an observer campaigns";
  role_ = Role::kProspective;
  leader_contact_.reset();
  election_deadline_ = now_ + DrawTimeout();
  ++pre_vote_round_;
  ++counters_.campaigns;
  campaign_.emplace().granted.insert(config_.self);
  for (const VoterSet::Member& member : log_.voters().members()) {
    if (member.key == config_.self) continue;
    v1::RaftMessage message = NewMessage(member.key);
    v1::PreVoteRequest* request = message.mutable_pre_vote_request();
    request->set_last_term(log_.last().term.value());
    request->set_last_index(log_.last().index.value());
    request->set_round(pre_vote_round_);
    Send(std::move(message));
  }
  CountCampaign();
}

void RaftCore::StartElection() {
  // A term so great can only come from damage; staying in it is all that is left.
  if (term() >= kGreatestTerm) return;
  AdoptTerm(term() + 1);
  hard_state_.vote = config_.self;
  role_ = Role::kCandidate;
  election_deadline_ = now_ + DrawTimeout();
  ++counters_.elections;
  campaign_.emplace().own_vote = writes_.next();
  for (const VoterSet::Member& member : log_.voters().members()) {
    if (member.key == config_.self) continue;
    v1::RaftMessage message = NewMessage(member.key);
    message.mutable_vote_request()->set_last_term(log_.last().term.value());
    message.mutable_vote_request()->set_last_index(log_.last().index.value());
    Send(std::move(message));
  }
}

// Decides a campaign once its votes do.
void RaftCore::CountCampaign() {
  if (role_ == Role::kCandidate && campaign_->own_vote <= writes_.durable()) {
    campaign_->granted.insert(config_.self);
  }
  switch (CountVotes(log_.voters().size(), campaign_->granted.size(), campaign_->refused.size())) {
    case VoteResult::kPending:
      return;
    case VoteResult::kLost:
      return EndRole();  // tries again when its timeout comes
    case VoteResult::kWon:
      return role_ == Role::kProspective ? StartElection() : BecomeLeader();
  }
}

void RaftCore::HandlePreVoteRequest(const Admitted& in) {
  const v1::PreVoteRequest& request = in.message->pre_vote_request();
  const LogPosition last{.term = Term(request.last_term()),
                         .index = LogIndex(request.last_index())};
  const bool granted = IsVoter() && in.term >= term() && last >= log_.last() && !HearsLiveLeader();
  if (!granted) ++counters_.pre_votes_refused;
  v1::RaftMessage message = NewMessage(in.from);
  message.mutable_pre_vote_response()->set_granted(granted);
  message.mutable_pre_vote_response()->set_round(request.round());
  Send(std::move(message));
}

void RaftCore::HandlePreVoteResponse(const Admitted& in) {
  const v1::PreVoteResponse& response = in.message->pre_vote_response();
  if (role_ != Role::kProspective || response.round() != pre_vote_round_) return;
  if (!log_.voters().Contains(in.from)) return;
  // The first answer of a voter counts; a repetition is the same.
  if (campaign_->granted.count(in.from) > 0 || campaign_->refused.count(in.from) > 0) return;
  (response.granted() ? campaign_->granted : campaign_->refused).insert(in.from);
  CountCampaign();
}

void RaftCore::HandleVoteRequest(const Admitted& in) {
  const v1::VoteRequest& request = in.message->vote_request();
  const LogPosition last{.term = Term(request.last_term()),
                         .index = LogIndex(request.last_index())};
  const bool free = !hard_state_.vote || *hard_state_.vote == in.from;
  const bool granted = IsVoter() && in.term == term() && free && last >= log_.last();
  if (granted && !hard_state_.vote) {
    hard_state_.vote = in.from;
    hard_state_unwritten_ = true;
    MarkUnwritten();
    // Who grants a vote gives that candidate an election timeout of its own.
    EndRole();
    election_deadline_ = now_ + DrawTimeout();
  }
  v1::RaftMessage message = NewMessage(in.from);
  message.mutable_vote_response()->set_granted(granted);
  Send(std::move(message));
}

void RaftCore::HandleVoteResponse(const Admitted& in) {
  if (role_ != Role::kCandidate || in.term != term()) return;
  if (!log_.voters().Contains(in.from)) return;
  if (campaign_->granted.count(in.from) > 0 || campaign_->refused.count(in.from) > 0) return;
  (in.message->vote_response().granted() ? campaign_->granted : campaign_->refused).insert(in.from);
  CountCampaign();
}

}  // namespace conclave::raft
