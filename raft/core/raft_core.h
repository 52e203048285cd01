#ifndef CONCLAVE_RAFT_CORE_RAFT_CORE_H_
#define CONCLAVE_RAFT_CORE_RAFT_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/random/random.h"
#include "common/types/time.h"
#include "conclave/v1/raft.pb.h"
#include "raft/core/admission.h"
#include "raft/core/bootstrap.h"
#include "raft/core/config.h"
#include "raft/core/log.h"
#include "raft/core/progress.h"
#include "raft/core/ready.h"
#include "raft/core/rejection.h"
#include "raft/core/roles.h"
#include "raft/core/status.h"
#include "raft/core/types.h"
#include "raft/core/writes.h"

namespace conclave::raft {

// One replica of the Raft log, as a state machine without I/O (Raft paper; pre-vote of Ongaro's
// thesis 9.6 and KIP-996; voters by directory of KIP-853). Not thread-safe.
//
// The driver's duties:
//   - Call the inputs below from one thread, `now` from one monotonic clock.
//   - After any of them, while HasReady(), TakeReady() and do what it says (see ready.h).
//   - Call Tick once NextDeadline() has come.
//   - Hand writes to storage in the order of their tickets. Several may be under way; storage may
//     sync some of them as one. Report the newest ticket that is durable, with all before it, by
//     Persisted. A write that fails ends the process.
//   - While writes are under way everything goes on: messages, ticks, proposals, further writes.
//     Only deferred messages wait for theirs. A crash may lose any suffix of the writes under way.
//   - Deliver messages at most as often as the network does; loss, repetition and disorder are
//     allowed, damage is not (the transport has checksums).
class RaftCore {
 public:
  // DataLoss, naming the place, if the state read from disk contradicts itself; InvalidArgument for
  // a configuration that cannot work.
  static absl::StatusOr<std::unique_ptr<RaftCore>> Create(Config config, RecoveredState recovered,
                                                          Random random, MonotonicTime now);

  // --- Inputs ----------------------------------------------------------------------------------

  // A message came. Any that parses may be given: what is not for us, or makes no sense, has no
  // effect but a Rejection.
  void Receive(const v1::RaftMessage& message, MonotonicTime now);
  void Tick(MonotonicTime now);
  // The stream that brought messages from `peer` broke: it may be dead, and what is under way to or
  // from it may be lost. If it led, a voter asks for pre-votes within a heartbeat interval.
  void PeerStreamReset(const ReplicaKey& peer, MonotonicTime now);
  // Everything up to `ticket` is durable.
  void Persisted(WriteTicket ticket, MonotonicTime now);

  // Appends a DATA entry. It is committed exactly if, and when, a committed entry has the returned
  // index *and* term (see FateOf). FailedPrecondition: not the leader. InvalidArgument: larger than
  // max_proposal_bytes. ResourceExhausted: max_uncommitted_bytes are waiting; retriable.
  absl::StatusOr<LogPosition> Propose(std::string data, MonotonicTime now);

  // Asks for the index that a read must wait for so as to see all that was committed before this
  // call, by any leader. Answered in Ready::reads or failed_reads. FailedPrecondition: not the
  // leader. ResourceExhausted: max_pending_reads are waiting.
  absl::Status ReadIndex(ReadContext context, MonotonicTime now);

  // --- Outputs ---------------------------------------------------------------------------------

  bool HasReady() const;
  Ready TakeReady();
  // After Tick(now) it is later than now.
  MonotonicTime NextDeadline() const;

  // --- State -----------------------------------------------------------------------------------

  const ReplicaKey& self() const { return config_.self; }
  Role role() const { return role_; }
  Term term() const { return hard_state_.term; }
  const std::optional<ReplicaKey>& vote() const { return hard_state_.vote; }
  // Who leads this term, while it is known and thought alive.
  std::optional<ReplicaKey> leader() const;
  LogIndex commit_index() const { return log_.commit_index(); }
  const RaftLog& log() const { return log_; }
  // It leads, and an entry of its term is committed: current reads and checks of requests may begin
  // once that entry is applied.
  bool leader_serves() const;
  // What has become of a proposal, as far as this replica knows.
  Fate FateOf(LogPosition proposal) const;
  // A copy for reports; the accessors above are cheap.
  Status GetStatus() const;
  const Counters& counters() const { return counters_; }

 private:
  RaftCore(Config config, HardState hard_state, RaftLog log, Random random, MonotonicTime now);

  // raft_core.cc: time, terms, what leaves
  void Advance(MonotonicTime now);
  bool RaisesTerm(const Admitted& in) const;
  void AdoptTerm(Term term);
  void EndRole();
  void VotersMayHaveChanged();
  bool IsVoter() const { return log_.voters().Contains(config_.self); }
  void MarkUnwritten();
  std::optional<MonotonicTime> OldestWriteSince() const;
  bool WriteStalled() const;
  v1::RaftMessage NewMessage(const ReplicaKey& to) const;
  void Send(v1::RaftMessage message, WriteTicket after = WriteTicket());
  void Reject(Rejection rejection);
  LeadershipChange CurrentLeadership() const;

  // election.cc
  Duration DrawTimeout();
  bool HearsLiveLeader() const;
  void ElectionTimeout();
  void StartCampaign();
  void StartElection();
  void CountCampaign();
  void HandlePreVoteRequest(const Admitted& in);
  void HandlePreVoteResponse(const Admitted& in);
  void HandleVoteRequest(const Admitted& in);
  void HandleVoteResponse(const Admitted& in);

  // follower.cc
  std::optional<Rejection> RefuseAppend(const Admitted& in) const;
  void HandleAppendRequest(Admitted& in);
  void FollowLeader(const ReplicaKey& leader);
  void TruncateFrom(LogIndex index);
  void AnswerMismatch(const Admitted& in);
  void AnswerMatch(const Admitted& in, LogIndex last);
  void ObserverTick();

  // leader.cc
  void BecomeLeader();
  void Resign();
  void LeaderTick();
  MonotonicTime QuorumDeadline() const;
  LogPosition AppendOwn(EntryKind kind, std::string data);
  const Progress& Peer(const ReplicaKey& voter) const;
  Progress* FindProgress(const ReplicaKey& peer);
  void HandleAppendResponse(const Admitted& in);
  void HandleAnnouncement(const Admitted& in);
  LogIndex ResumeHint(const v1::AppendResponse& response) const;
  void AdvanceCommit();
  void ResolveReads();
  void FlushAppends();
  void FlushTo(const ReplicaKey& to, Progress& progress, bool round);
  void SendAppend(const ReplicaKey& to, Progress& progress, bool with_entries);

  const Config config_;
  Random random_;
  MonotonicTime now_;  // never falls

  HardState hard_state_;
  bool hard_state_unwritten_ = false;
  RaftLog log_;
  WritesInFlight writes_;
  // Since when something waits to be taken as a write.
  std::optional<MonotonicTime> unwritten_since_;

  Role role_ = Role::kObserver;
  // Who leads hard_state_.term: once known it stays to the end of the term.
  std::optional<ReplicaKey> leader_;
  // When the leader was last heard; empty once it is given up or its stream broke.
  std::optional<MonotonicTime> leader_contact_;
  MonotonicTime election_deadline_ = MonotonicTime::Never();  // follower, prospective, candidate
  MonotonicTime announce_deadline_ = MonotonicTime::Never();  // observer
  uint64_t pre_vote_round_ = 0;
  std::optional<Campaign> campaign_;      // prospective, candidate
  std::optional<Leadership> leadership_;  // leader

  LogIndex delivered_;  // the last index given out as committed
  Ready out_;           // gathers until TakeReady; the write and committed entries come then
  std::optional<LeadershipChange> announced_;
  Counters counters_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_RAFT_CORE_H_
