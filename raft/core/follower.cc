// What followers and observers do with appends (Raft 5.3).
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "raft/core/raft_core.h"

namespace conclave::raft {

// Appends that no correct leader of this cluster can have sent us.
std::optional<Rejection> RaftCore::RefuseAppend(const Admitted& in) const {
  if (in.term < term()) return std::nullopt;  // answered with our term
  if (in.term == term() && (role_ == Role::kLeader || (leader_ && *leader_ != in.from))) {
    return Rejection{RejectionReason::kSecondLeader, in.from,
                     absl::StrCat("node ", leader_->node.value(), " leads term ", term().value())};
  }
  const auto contradicts = [&](LogPosition p) {
    return p.index <= log_.commit_index() && !log_.Holds(p);
  };
  const auto refusal = [&](LogPosition p) {
    return Rejection{RejectionReason::kContradictsCommitted, in.from,
                     absl::StrCat("it has term ", p.term.value(), " at committed index ",
                                  p.index.value(), ", we have term ", log_.TermAt(p.index)->value(),
                                  " (commit index ", log_.commit_index().value(), ")")};
  };
  if (contradicts(in.prev)) return refusal(in.prev);
  for (const Entry& entry : in.entries) {
    if (entry.index > log_.commit_index()) break;
    if (contradicts(entry.position())) return refusal(entry.position());
  }
  return std::nullopt;
}

void RaftCore::HandleAppendRequest(Admitted& in) {
  if (in.term < term()) {
    v1::RaftMessage message = NewMessage(in.from);
    message.mutable_append_response()->set_accepted(false);
    return Send(std::move(message));
  }
  FollowLeader(in.from);
  if (!log_.Holds(in.prev)) return AnswerMismatch(in);

  const LogIndex last = in.prev.index + in.entries.size();
  // What is there already stays: an append may come late, and what follows it is not to be cut.
  auto entry = in.entries.begin();
  while (entry != in.entries.end() && log_.Holds(entry->position())) ++entry;
  if (entry != in.entries.end()) {
    if (entry->index <= log_.last_index()) TruncateFrom(entry->index);
    for (; entry != in.entries.end(); ++entry) log_.Append(std::move(*entry));
    MarkUnwritten();
    VotersMayHaveChanged();
  }
  log_.CommitTo(std::min(LogIndex(in.message->append_request().commit_index()), last));
  AnswerMatch(in, last);
}

void RaftCore::FollowLeader(const ReplicaKey& leader) {
  if (role_ == Role::kProspective || role_ == Role::kCandidate) EndRole();
  leader_ = leader;
  leader_contact_ = now_;
  if (role_ == Role::kFollower) election_deadline_ = now_ + DrawTimeout();
}

void RaftCore::TruncateFrom(LogIndex index) {
  ++counters_.truncations;
  log_.TruncateFrom(index);
  writes_.Truncated(index);
  MarkUnwritten();
  // These would have promised, after the coming write, entries that it will not hold.
  std::erase_if(out_.deferred, [&](const DeferredMessage& deferred) {
    return deferred.message.has_append_response() &&
           LogIndex(deferred.message.append_response().match_index()) >= index;
  });
}

// Names the whole conflicting term, so that the leader skips it in one step (end of Raft 5.3).
void RaftCore::AnswerMismatch(const Admitted& in) {
  v1::RaftMessage message = NewMessage(in.from);
  v1::AppendResponse* response = message.mutable_append_response();
  response->set_accepted(false);
  response->set_rejected_index(in.prev.index.value());
  response->set_round(in.message->append_request().round());
  response->set_attempt(in.message->append_request().attempt());
  if (in.prev.index > log_.last_index()) {
    response->set_conflict_index(log_.last_index().value() + 1);
  } else {
    response->set_conflict_term(log_.TermAt(in.prev.index)->value());
    response->set_conflict_index(log_.FirstOfTermAt(in.prev.index).value());
  }
  Send(std::move(message));
}

void RaftCore::AnswerMatch(const Admitted& in, LogIndex last) {
  v1::RaftMessage message = NewMessage(in.from);
  v1::AppendResponse* response = message.mutable_append_response();
  response->set_accepted(true);
  response->set_received_index(last.value());
  response->set_round(in.message->append_request().round());
  response->set_attempt(in.message->append_request().attempt());
  const bool heartbeat = in.message->append_request().entries_size() == 0;
  if (heartbeat || last <= log_.durable_index()) {
    // At once, with what is durable: a slow disk does not look like a dead node.
    response->set_match_index(std::min(last, log_.durable_index()).value());
    return Send(std::move(message));
  }
  response->set_match_index(last.value());
  Send(std::move(message), writes_.TicketFor(last).value_or(writes_.next()));
}

void RaftCore::ObserverTick() {
  if (now_ < announce_deadline_) return;
  if (leader_contact_ && now_ < *leader_contact_ + config_.election_timeout_max) {
    announce_deadline_ = *leader_contact_ + config_.election_timeout_max;
    return;
  }
  leader_contact_.reset();
  announce_deadline_ = now_ + config_.election_timeout_min;
  std::vector<ReplicaKey> known;
  for (const VoterSet::Member& member : log_.voters().members()) known.push_back(member.key);
  for (NodeId node : config_.bootstrap_nodes) {
    const bool named = std::any_of(known.begin(), known.end(),
                                   [&](const ReplicaKey& key) { return key.node == node; });
    if (!named) known.push_back({node, DirectoryId()});
  }
  for (const ReplicaKey& to : known) {
    if (to.node == config_.self.node) continue;
    v1::RaftMessage message = NewMessage(to);
    message.mutable_observer_announcement()->set_endpoint(config_.endpoint);
    Send(std::move(message));
  }
}

}  // namespace conclave::raft
