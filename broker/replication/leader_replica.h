#ifndef CONCLAVE_BROKER_REPLICATION_LEADER_REPLICA_H_
#define CONCLAVE_BROKER_REPLICATION_LEADER_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "broker/replication/log_end_history.h"
#include "broker/replication/types.h"
#include "common/types/ids.h"
#include "common/types/strong_int.h"
#include "common/types/time.h"

namespace conclave::replication {

// Names an append that waits to be committed; chosen by the caller.
using AppendId = StrongInt<struct AppendIdTag, uint64_t>;

// How the leader sees its own log; answered at once, changes nothing.
class LeaderLog {
 public:
  virtual ~LeaderLog() = default;
  // The greatest epoch in the log that is at most `epoch`, and its end; kNoEpoch with the log's
  // start if there is none.
  virtual EpochEnd EndOfEpoch(LeaderEpoch epoch) const = 0;
  // Rises as old records are removed.
  virtual Offset log_start() const = 0;
  // Of the first batch that is left: log_start(), or less, where the log starts within a batch.
  virtual Offset first_batch() const = 0;
};

// One partition under one leader epoch, at its leader (KIP-101, 497, 841, 903; semantics, section
// 3). Pure; not thread-safe. Ends with the epoch: Resign() then, and make a new one for the next.
class LeaderReplica {
 public:
  struct Config {
    BrokerId self;
    // A follower that has not been current for this long leaves the ISR.
    Duration replica_lag_time_max;
  };

  struct Start {
    PartitionState state;
    // min(min.insync.replicas, replicas): the effective minimum.
    int min_isr = 1;
    // The topic's setting. Unsynced records count only while `state` has it in effect, too.
    FlushPolicy flush_policy = FlushPolicy::kFsync;
    LogPosition log;
    // What this replica knew as a follower, or its checkpoint; at most log.end.
    Offset high_watermark;
  };

  // A live broker may be added to an ISR; a fenced or stopping one may not.
  struct BrokerInfo {
    BrokerEpoch epoch;
    bool eligible = false;
  };

  // `log` outlives this.
  LeaderReplica(Config config, Start start, const LeaderLog& log, MonotonicTime now);

  // --- The leader's own log

  // Of the committed ISR.
  bool HasMinimumIsr() const { return static_cast<int>(state_.isr.size()) >= min_isr_; }
  // FailedPrecondition with NOT_ENOUGH_REPLICAS while the committed ISR is under the minimum: for
  // appends that ask for acks=all, before they are made.
  absl::Status CheckAppendToAll() const;
  void Appended(Offset end, MonotonicTime now);
  void Durable(Offset durable, MonotonicTime now);
  // The append that ends at `end` waits until the high watermark has reached that; see
  // TakeReleased.
  void AwaitCommit(AppendId append, Offset end);
  // It waits no more (its time ran out).
  void Forget(AppendId append);

  // --- Followers

  struct Position {
    BrokerId follower;
    BrokerEpoch broker_epoch;
    Session session;
    LeaderEpoch leader_epoch;
    LogPosition log;
    LeaderEpoch last_epoch = kNoEpoch;
    // Where its log begins.
    Offset log_start{};
    // It has lost records, and drops its log once this leader has answered BeginAt.
    bool begins_anew = false;
  };
  // The logs agree up to the position: sending begins there.
  struct Agreed {};
  // It ends before the leader's log begins, has only records older than any that is left there, or
  // has lost some: it drops everything and positions itself at the leader's first batch.
  struct BeginAt {
    Offset offset;
  };
  // An EpochEnd: the logs differ, and the follower truncates by this and positions itself again.
  using Answer = std::variant<Agreed, EpochEnd, BeginAt, absl::Status>;
  Answer Positioned(const Position& position, MonotonicTime now);

  // Dropped unless follower, epoch, session and leader epoch are those of its last positioning.
  void Acknowledged(BrokerId follower, BrokerEpoch broker_epoch, Session session,
                    LeaderEpoch leader_epoch, LogPosition log, Round round, MonotonicTime now);
  // Where its log begins now, durably. Dropped likewise; called before Acknowledged.
  void LogStartMoved(BrokerId follower, BrokerEpoch broker_epoch, Session session,
                     LeaderEpoch leader_epoch, Offset log_start);
  // The least that members of the maximal ISR have said of where their logs begin, this log
  // included: no leader that comes from the ISR has records below. Who is behind joins no ISR.
  Offset LogStartOfIsr() const;
  // Those members whose logs begin below `offset`, as far as they have said.
  std::vector<BrokerId> BehindLogStart(Offset offset) const;
  // The stream on which it positioned itself as `session` broke. What it acknowledged stays true; a
  // newer positioning, on another stream, is not touched.
  void StreamClosed(BrokerId follower, BrokerEpoch broker_epoch, Session session);

  // Where to go on sending to a follower; nullopt: it is not positioned. The driver bounds what is
  // unacknowledged.
  struct Feed {
    Session session;
    Offset next;
    Offset acknowledged;
    // The high watermark and the round it was last told.
    Offset told_high_watermark;
    Round told_round;
  };
  std::optional<Feed> FeedOf(BrokerId follower) const;
  // Batches up to `next` were sent, with `high_watermark` and `round`.
  void Sent(BrokerId follower, Session session, Offset next, Offset high_watermark, Round round);

  // --- Rounds: is this still who all follow that could lead?

  // Begins one. It is confirmed once each member of the maximal ISR, and of the ELR, has
  // acknowledged it: each followed this leader, in this epoch, at some moment after this call, so
  // nobody had led in a later one by then.
  Round BeginRound() { return ++round_; }
  Round round() const { return round_; }
  // The greatest that is confirmed.
  Round ConfirmedRound() const;

  // --- Metadata

  // The partition's record or the topic's settings have changed, in the same leader epoch;
  // together, for a smaller ISR under the minimum of before would commit what the new one does not.
  void MetadataChanged(const PartitionState& state, int min_isr, MonotonicTime now);
  // To kFsync while kReplicated is in effect: the high watermark moves by what is synced alone from
  // now on, and once every member of an ISR of the minimum is synced up to it, that is proposed.
  void SetFlushPolicy(FlushPolicy policy);
  void SetBrokers(std::map<BrokerId, BrokerInfo> brokers, MonotonicTime now);
  // What came of a proposal. Taken: nothing to be told, the record shows it. Stale (based on an
  // older record or epoch): nothing either, the newer record is on its way.
  //
  // Refused: as it stands the controller will not have it (a member is fenced, or of an older
  // incarnation).
  void ProposalRefused(MonotonicTime now);
  // The answer was lost: it may have been applied, or be applied yet.
  void ProposalOutcomeUnknown(MonotonicTime now);

  void Tick(MonotonicTime now);
  // When Tick has something to do.
  MonotonicTime NextDeadline() const;

  // Ends the reign: everything that waits is released with an error, for it may yet be committed or
  // lost.
  void Resign();

  // --- Outputs

  struct Proposal {
    PartitionEpoch partition_epoch;
    std::vector<IsrMember> isr;
    // Every member is synced up to the high watermark: kFsync may be in effect.
    bool synced = false;
    // One of those that could lead is to lead instead, for they do not follow here.
    bool hand_over = false;
  };
  // A new ISR to ask the controller for; each is handed out once.
  std::optional<Proposal> TakeProposal();

  struct Released {
    AppendId append;
    absl::Status status;
  };
  std::vector<Released> TakeReleased();

  // --- State

  LeaderEpoch leader_epoch() const { return state_.leader_epoch; }
  PartitionEpoch partition_epoch() const { return state_.partition_epoch; }
  Offset high_watermark() const { return high_watermark_; }
  // The high watermark has reached the epoch's start: before, it may be behind what the last leader
  // told, and "latest" is not known.
  bool IsHighWatermarkCurrent() const { return high_watermark_ >= epoch_start_; }
  Offset log_end() const { return log_position_.end; }
  const std::vector<BrokerId>& isr() const { return state_.isr; }
  bool HasProposalInFlight() const { return proposed_.has_value(); }

 private:
  struct Follower {
    BrokerEpoch broker_epoch;
    // Of the last positioning; no session: the stream is closed.
    std::optional<Session> session;
    bool agreed = false;
    Offset next;
    Offset told_high_watermark;
    Round told_round;
    Round confirmed_round;
    // The greatest position acknowledged under `broker_epoch` in this leader epoch; nullopt: none
    // was.
    std::optional<LogPosition> acknowledged;
    // Of `broker_epoch`; it moves up alone.
    Offset log_start;
    // The latest time at which it was current.
    MonotonicTime current_at;
    // When it last took in what was sent to it.
    std::optional<MonotonicTime> acknowledged_at;
  };

  void TakeRecord(const PartitionState& state, MonotonicTime now);
  Answer BeginsAnew(BrokerId broker, Follower& follower) const;
  bool InIsr(BrokerId broker) const;
  bool IsReplica(BrokerId broker) const;
  // What counts of a replica's position: its durable offset (kFsync), or its end (kReplicated).
  Offset Counted(const LogPosition& log) const;
  std::set<BrokerId> MaximalIsr() const;
  // Whom the controller may elect: the maximal ISR and the ELR.
  std::set<BrokerId> Electable() const;
  void AdvanceHighWatermark();
  void ReleaseCommitted();
  void FailIfUnderMinimum();
  bool MayJoin(BrokerId broker, const Follower& follower) const;
  void MaybeExpand(BrokerId broker);
  void MaybeExpandAny();
  void MaybeShrink(MonotonicTime now);
  // kFsync is to be in effect, and can be.
  bool IsSyncedToBeTold() const;
  void MaybeTellSynced();
  // The ISR is under its minimum, and a replica that could lead is there, but none follows.
  bool IsUnfollowed(MonotonicTime now) const;
  void MaybeHandOver(MonotonicTime now);
  void Propose(const std::set<BrokerId>& isr);
  void ForgetProposal();
  Proposal ProposalOf(const std::set<BrokerId>& isr);

  const Config config_;
  const LeaderLog& log_;
  PartitionState state_;
  int min_isr_;
  FlushPolicy flush_policy_;
  LogPosition log_position_;
  const Offset epoch_start_;
  Offset high_watermark_;
  LogEndHistory history_;
  std::map<BrokerId, BrokerInfo> brokers_;
  std::map<BrokerId, Follower> followers_;

  // Asked of the controller and not yet seen in the metadata.
  std::optional<std::set<BrokerId>> proposed_;
  // With the word that all is synced up to the high watermark, which holds for as long as it may be
  // believed yet: whatever the topic's setting has become, unsynced records do not count.
  bool proposed_synced_ = false;
  std::optional<Proposal> proposal_;
  // An attempt at what is proposed may still be applied: it counts until the record has changed.
  bool attempt_unknown_ = false;
  // After a refusal, so that a metadata image that lags is not argued with in a tight loop.
  MonotonicTime propose_not_before_;
  MonotonicTime next_check_;
  MonotonicTime last_seen_;
  std::optional<MonotonicTime> unfollowed_since_;

  Round round_;
  std::multimap<Offset, AppendId> waiting_;
  std::vector<Released> released_;
  bool resigned_ = false;
};

}  // namespace conclave::replication

#endif  // CONCLAVE_BROKER_REPLICATION_LEADER_REPLICA_H_
