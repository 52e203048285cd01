#ifndef CONCLAVE_BROKER_REPLICATION_FOLLOWER_REPLICA_H_
#define CONCLAVE_BROKER_REPLICATION_FOLLOWER_REPLICA_H_

#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "broker/replication/types.h"
#include "common/buffer/buffer.h"
#include "common/types/ids.h"
#include "conclave/v1/replication.pb.h"

namespace conclave::replication {

// The follower's log. Blocks no longer than writing to the page cache takes.
class FollowerLog {
 public:
  virtual ~FollowerLog() = default;

  virtual LogPosition position() const = 0;
  // Of the last record; kNoEpoch: the log is empty.
  virtual LeaderEpoch last_epoch() const = 0;
  // The greatest epoch in the log that is at most `epoch`, and its end; kNoEpoch with the log's
  // start if there is none.
  virtual EpochEnd EndOfEpoch(LeaderEpoch epoch) const = 0;
  // Durable, and it never falls.
  virtual Offset log_start() const = 0;
  // It has lost records, and is to make room for a copy of the leader's.
  virtual bool begins_anew() const = 0;
  // By the topic's settings its end counts, not only what is durable: the leader is told of it.
  virtual bool counts_unsynced() const = 0;

  // Cuts the log to `end`; position().durable falls with it, and stays below until a sync that was
  // begun after the cut is done.
  virtual absl::Status TruncateTo(Offset end) = 0;
  // Drops everything; the log starts and ends at `offset`, durably, and knows what the leader
  // remembers of producers before it.
  virtual absl::Status ResetTo(Offset offset, const v1::RememberedProducers& producers) = 0;
  // The log begins at `offset`, as the leader's does; at once, or as soon as what is below it is
  // durable.
  virtual absl::Status RemoveBefore(Offset offset) = 0;
  // Whole batches as the leader has them, the first at position().end.
  virtual absl::Status Append(const Buffer& batches) = 0;
};

// One partition under one leader epoch, at a follower (KIP-101, 279; semantics, section 3). Pure
// but for the log; not thread-safe. Ends with the epoch: a new one is made for the next.
//
// Positions itself, truncates as the leader tells until both agree, then appends what comes and
// acknowledges it. After an error of the log it takes nothing in any more.
class FollowerReplica {
 public:
  // `last_session`: of this partition on the same stream or before; sessions rise across epochs.
  // `high_watermark`: known before, at most the log's end. `log` outlives this.
  FollowerReplica(LeaderEpoch leader_epoch, Session last_session, Offset high_watermark,
                  FollowerLog& log);

  struct Position {
    Session session;
    LeaderEpoch leader_epoch;
    LogPosition log;
    LeaderEpoch last_epoch = kNoEpoch;
    Offset log_start{};
    bool begins_anew = false;
  };
  // Positions itself anew: after a new stream to the leader. What is on its way is dropped when it
  // comes.
  Position Begin();

  // From the leader. Those of another session or epoch are dropped.
  struct Data {
    Buffer batches;
    Offset high_watermark;
    Offset log_start;
    // That the leader wants acknowledged; 0: none.
    Round round{};
  };
  // What the driver has to do next.
  struct Nothing {};
  // Nothing, and what came was not taken in: it was of another session, or of one that is over.
  struct Dropped {};
  // The leader refused, or the log failed: the session is over until Begin().
  struct Stopped {
    absl::Status why;
  };
  // The leader does not count on this log any more: make another one, and follow with that.
  struct Replace {};
  using Next = std::variant<Nothing, Dropped, Position, Stopped, Replace>;
  Next OnData(Session session, LeaderEpoch leader_epoch, const Data& data);
  Next OnDivergence(Session session, LeaderEpoch leader_epoch, EpochEnd leader_end);
  // This log has nothing that the leader's still has; or it begins anew, and may.
  Next OnBeginAt(Session session, LeaderEpoch leader_epoch, Offset log_start,
                 const v1::RememberedProducers& producers);
  Next OnRefused(Session session, LeaderEpoch leader_epoch, const absl::Status& why);

  // What there is to acknowledge since the last call: after a round, after data where unsynced
  // records count or there is much of it, and whenever the log's durable offset or its start has
  // risen.
  struct Ack {
    Session session;
    LeaderEpoch leader_epoch;
    LogPosition log;
    Round round;
    Offset log_start{};
  };
  std::optional<Ack> TakeAck();

  LeaderEpoch leader_epoch() const { return leader_epoch_; }
  Session session() const { return session_; }
  // The logs agree, as far as has been said in this session.
  bool agreed() const { return agreed_; }
  Offset high_watermark() const { return high_watermark_; }

 private:
  bool IsCurrent(Session session, LeaderEpoch leader_epoch) const;
  bool IsNews(const LogPosition& position) const;

  const LeaderEpoch leader_epoch_;
  Session session_;
  bool open_ = false;  // Positioned, and not stopped.
  bool agreed_ = false;
  bool begins_anew_ = false;  // As positioned.
  Offset high_watermark_;
  FollowerLog& log_;
  std::optional<LogPosition> acknowledged_;
  // Appended since.
  size_t unacknowledged_bytes_ = 0;
  Round round_;
  Round acknowledged_round_;
  Offset acknowledged_log_start_;
};

}  // namespace conclave::replication

#endif  // CONCLAVE_BROKER_REPLICATION_FOLLOWER_REPLICA_H_
