#include "raft/core/raft_core.h"

#include <algorithm>
#include <utility>

#include "raft/core/quorum.h"

namespace conclave::raft {
namespace {

using Body = v1::RaftMessage::BodyCase;

absl::Status CheckConfig(const Config& config) {
  if (config.cluster_id.IsNone()) return absl::InvalidArgumentError("no cluster id");
  if (config.self.node < NodeId(0) || config.self.directory.IsNone()) {
    return absl::InvalidArgumentError("no node id or no directory id");
  }
  if (config.heartbeat_interval <= Duration() ||
      config.election_timeout_min <= config.heartbeat_interval ||
      config.election_timeout_max < config.election_timeout_min) {
    return absl::InvalidArgumentError(
        "heartbeat interval < election timeout min <= election timeout max is required");
  }
  if (config.max_in_flight_appends == 0) {
    return absl::InvalidArgumentError("max_in_flight_appends must be at least 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RaftCore>> RaftCore::Create(Config config, RecoveredState recovered,
                                                           Random random, MonotonicTime now) {
  if (absl::Status status = CheckConfig(config); !status.ok()) return status;
  auto log = RaftLog::Recover(std::move(recovered.entries));
  if (!log.ok()) return log.status();
  if (recovered.hard_state.term < log->last().term || recovered.hard_state.term > kGreatestTerm) {
    return absl::DataLossError("the stored term contradicts the stored Raft log");
  }
  return std::unique_ptr<RaftCore>(new RaftCore(std::move(config), recovered.hard_state,
                                                *std::move(log), std::move(random), now));
}

RaftCore::RaftCore(Config config, HardState hard_state, RaftLog log, Random random,
                   MonotonicTime now)
    : config_(std::move(config)),
      random_(std::move(random)),
      now_(now),
      hard_state_(hard_state),
      log_(std::move(log)) {
  if (IsVoter()) {
    role_ = Role::kFollower;
    election_deadline_ = now_ + DrawTimeout();
  } else {
    announce_deadline_ = now_;
  }
}

void RaftCore::Receive(const v1::RaftMessage& message, MonotonicTime now) {
  Advance(now);
  AdmissionResult result = Admit(config_, message);
  if (result.rejection) return Reject(*std::move(result.rejection));
  Admitted& in = *result.admitted;
  if (message.body_case() == Body::kAppendRequest) {
    if (auto refusal = RefuseAppend(in)) return Reject(*std::move(refusal));
  }
  if (RaisesTerm(in)) AdoptTerm(in.term);
  switch (message.body_case()) {
    case Body::kPreVoteRequest:
      return HandlePreVoteRequest(in);
    case Body::kPreVoteResponse:
      return HandlePreVoteResponse(in);
    case Body::kVoteRequest:
      return HandleVoteRequest(in);
    case Body::kVoteResponse:
      return HandleVoteResponse(in);
    case Body::kAppendRequest:
      return HandleAppendRequest(in);
    case Body::kAppendResponse:
      return HandleAppendResponse(in);
    case Body::kObserverAnnouncement:
      return HandleAnnouncement(in);
    case Body::BODY_NOT_SET:
      return;  // refused by Admit
  }
}

void RaftCore::Tick(MonotonicTime now) {
  Advance(now);
  switch (role_) {
    case Role::kLeader:
      return LeaderTick();
    case Role::kObserver:
      return ObserverTick();
    case Role::kFollower:
    case Role::kProspective:
    case Role::kCandidate:
      if (now_ >= election_deadline_) ElectionTimeout();
      return;
  }
}

void RaftCore::PeerStreamReset(const ReplicaKey& peer, MonotonicTime now) {
  Advance(now);
  if (Progress* progress = FindProgress(peer)) progress->Probe();
  if (role_ == Role::kLeader || leader_ != peer || !leader_contact_) return;
  leader_contact_.reset();
  if (role_ == Role::kFollower) {
    // Spread, so that those who notice together do not stand together and split the vote.
    const Duration delay =
        Duration::Nanoseconds(random_.Between(0, config_.heartbeat_interval.nanoseconds()));
    election_deadline_ = std::min(election_deadline_, now_ + delay);
  }
  if (role_ == Role::kObserver) announce_deadline_ = now_;
}

void RaftCore::Persisted(WriteTicket ticket, MonotonicTime now) {
  Advance(now);
  log_.MarkDurable(writes_.Complete(ticket));
  if (role_ == Role::kCandidate) CountCampaign();
  if (role_ == Role::kLeader) AdvanceCommit();
}

bool RaftCore::HasReady() const {
  if (!out_.messages.empty() || !out_.deferred.empty() || !out_.rejections.empty() ||
      !out_.reads.empty() || !out_.failed_reads.empty() || unwritten_since_.has_value() ||
      delivered_ < log_.commit_index() || announced_ != CurrentLeadership()) {
    return true;
  }
  if (!leadership_) return false;
  if (leadership_->round_due) return true;
  const auto wants = [&](const Progress& p) {
    return (p.CanSend(config_.max_in_flight_appends) && p.next() <= log_.last_index()) ||
           (!p.probing() && p.told_commit() < std::min(log_.commit_index(), p.next() - 1));
  };
  for (const auto& [key, progress] : leadership_->peers) {
    if (wants(progress)) return true;
  }
  for (const auto& [key, observer] : leadership_->observers) {
    if (wants(observer.progress)) return true;
  }
  return false;
}

Ready RaftCore::TakeReady() {
  FlushAppends();
  Ready ready = std::exchange(out_, Ready());
  if (unwritten_since_) {
    Write& write = ready.write.emplace();
    if (hard_state_unwritten_) write.hard_state = hard_state_;
    RaftLog::Unwritten unwritten = log_.TakeUnwritten();
    write.truncate_from = unwritten.truncate_from;
    write.entries = std::move(unwritten.entries);
    write.ticket = writes_.Add(log_.last_index(), hard_state_unwritten_, *unwritten_since_);
    hard_state_unwritten_ = false;
    unwritten_since_.reset();
  }
  if (delivered_ < log_.commit_index()) {
    ready.committed = log_.Slice(delivered_ + 1, log_.commit_index(), config_.max_committed_bytes);
    delivered_ = ready.committed.back().index;
  }
  if (LeadershipChange current = CurrentLeadership(); announced_ != current) {
    ready.leadership = current;
    announced_ = current;
  }
  return ready;
}

MonotonicTime RaftCore::NextDeadline() const {
  switch (role_) {
    case Role::kObserver:
      return announce_deadline_;
    case Role::kFollower:
    case Role::kProspective:
    case Role::kCandidate:
      return election_deadline_;
    case Role::kLeader:
      break;
  }
  MonotonicTime deadline = std::min(leadership_->heartbeat_deadline, QuorumDeadline());
  if (const auto since = OldestWriteSince()) {
    deadline = std::min(deadline, *since + config_.election_timeout_max);
  }
  return deadline;
}

std::optional<ReplicaKey> RaftCore::leader() const {
  if (role_ == Role::kLeader) return config_.self;
  if ((role_ == Role::kFollower || role_ == Role::kObserver) && leader_contact_) return leader_;
  return std::nullopt;
}

bool RaftCore::leader_serves() const {
  return leadership_ && log_.commit_index() >= leadership_->first_index;
}

Fate RaftCore::FateOf(LogPosition proposal) const {
  if (proposal.index > log_.commit_index()) return Fate::kUnknown;
  return log_.Holds(proposal) ? Fate::kCommitted : Fate::kLost;
}

Status RaftCore::GetStatus() const {
  Status status{.self = config_.self,
                .role = role_,
                .term = term(),
                .vote = vote(),
                .leader = leader(),
                .last = log_.last(),
                .durable_index = log_.durable_index(),
                .commit_index = log_.commit_index(),
                .leader_serves = leader_serves(),
                .voters = log_.voters(),
                .peers = {},
                .counters = counters_};
  if (!leadership_) return status;
  const auto add = [&](const ReplicaKey& key, const Progress& p, std::string endpoint,
                       bool observer) {
    status.peers.push_back({.key = key,
                            .observer = observer,
                            .endpoint = std::move(endpoint),
                            .match = p.match(),
                            .next = p.next(),
                            .probing = p.probing(),
                            .last_contact = p.last_contact()});
  };
  for (const VoterSet::Member& member : log_.voters().members()) {
    const auto peer = leadership_->peers.find(member.key);
    if (peer != leadership_->peers.end()) add(member.key, peer->second, member.endpoint, false);
  }
  for (const auto& [key, observer] : leadership_->observers) {
    add(key, observer.progress, observer.endpoint, true);
  }
  return status;
}

// --- Time, terms, what leaves ------------------------------------------------------------------

void RaftCore::Advance(MonotonicTime now) { now_ = std::max(now_, now); }

bool RaftCore::RaisesTerm(const Admitted& in) const {
  if (in.term <= term()) return false;
  // One that only asks, or only announces itself, raises nobody's term.
  const Body body = in.message->body_case();
  return body != Body::kPreVoteRequest && body != Body::kObserverAnnouncement;
}

void RaftCore::AdoptTerm(Term term) {
  EndRole();
  hard_state_ = {.term = term, .vote = std::nullopt};
  hard_state_unwritten_ = true;
  MarkUnwritten();
  leader_.reset();
  leader_contact_.reset();
}

// Back to follower or observer, in whatever term it is.
void RaftCore::EndRole() {
  if (leadership_) {
    for (ReadContext context : leadership_->reads.TakeAll()) {
      out_.failed_reads.push_back(context);
    }
    leadership_.reset();
    election_deadline_ = now_ + DrawTimeout();
  }
  campaign_.reset();
  role_ = IsVoter() ? Role::kFollower : Role::kObserver;
}

// The log's voter set decides who is a voter; it changes as the log is appended to or cut.
void RaftCore::VotersMayHaveChanged() {
  if (IsVoter() == (role_ != Role::kObserver)) return;
  EndRole();
  election_deadline_ = role_ == Role::kFollower ? now_ + DrawTimeout() : MonotonicTime::Never();
  announce_deadline_ = role_ == Role::kObserver ? now_ : MonotonicTime::Never();
}

void RaftCore::MarkUnwritten() {
  if (!unwritten_since_) unwritten_since_ = now_;
}

std::optional<MonotonicTime> RaftCore::OldestWriteSince() const {
  const auto in_flight = writes_.OldestSince();
  return in_flight ? in_flight : unwritten_since_;
}

bool RaftCore::WriteStalled() const {
  const auto since = OldestWriteSince();
  return since && now_ >= *since + config_.election_timeout_max;
}

v1::RaftMessage RaftCore::NewMessage(const ReplicaKey& to) const {
  v1::RaftMessage message;
  message.set_cluster_id(config_.cluster_id.ToBytes());
  message.mutable_from()->set_node_id(config_.self.node.value());
  message.mutable_from()->set_directory_id(config_.self.directory.ToBytes());
  message.mutable_to()->set_node_id(to.node.value());
  if (!to.directory.IsNone()) message.mutable_to()->set_directory_id(to.directory.ToBytes());
  message.set_term(term().value());
  return message;
}

// No message leaves before the term it names is durable, with the vote that goes with it.
void RaftCore::Send(v1::RaftMessage message, WriteTicket after) {
  if (hard_state_unwritten_) {
    after = std::max(after, writes_.next());
  } else if (const auto ticket = writes_.HardStateTicket()) {
    after = std::max(after, *ticket);
  }
  if (after > writes_.durable()) {
    out_.deferred.push_back({after, std::move(message)});
  } else {
    out_.messages.push_back(std::move(message));
  }
}

void RaftCore::Reject(Rejection rejection) {
  ++counters_.rejections[static_cast<size_t>(rejection.reason)];
  if (out_.rejections.size() < config_.max_rejections) {
    out_.rejections.push_back(std::move(rejection));
  }
}

LeadershipChange RaftCore::CurrentLeadership() const {
  return {.role = role_, .term = term(), .leader = leader()};
}

}  // namespace conclave::raft
