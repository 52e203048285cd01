#ifndef CONCLAVE_CLIENT_GROUP_GROUP_CONSUMER_H_
#define CONCLAVE_CLIENT_GROUP_GROUP_CONSUMER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "client/consumer/consumer.h"
#include "client/group/coordinator_caller.h"
#include "client/group/membership.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/group.pb.h"

namespace conclave {

// What a group's member tells beside records.
struct GroupEvent {
  enum class Kind {
    // These are owned from now on. `reason`: of the rebalance.
    kAssigned,
    // These are owned no more; what counted as consumed of them was committed, unless `status` says
    // why not.
    kRevoked,
    // The member was put out of the group and joins anew; these were owned, and may be another's
    // already: nothing of them can be committed any more. `status`: the coordinator's reason.
    kLost,
    // Committing or taking up partitions fails, and is tried again. Or a topic was deleted: its
    // partitions rest until the coordinator takes them back.
    kTrouble,
  };
  Kind kind;
  std::vector<TopicPartition> partitions;
  std::string reason;
  absl::Status status;
};

struct GroupConsumerOptions {
  // Its reset policy holds where the group has committed no offset.
  ConsumerOptions consumer;
  std::string group;
  // For people.
  std::string client_id;
  // Static membership (KIP-345): who comes back under the name within its session time-out takes up
  // the same partitions, without a rebalance. Empty: dynamic.
  std::string instance_id;
  // uniform, range or sticky; empty: uniform.
  std::string assignor;
  // A member that the coordinator does not hear from for so long is out.
  Duration session_timeout = Duration::Seconds(10);
  // So is one that does not give up what it is asked for.
  Duration rebalance_timeout = Duration::Seconds(60);
  // And one whose user does not call Poll (max.poll.interval.ms): that leaves by itself.
  Duration max_poll_interval = Duration::Seconds(300);
  // Whether what counts as consumed is committed every so often, before partitions are given up and
  // on Close; else Commit alone commits.
  bool auto_commit = true;
  Duration auto_commit_interval = Duration::Seconds(5);
  // How long a commit is tried for.
  Duration commit_timeout = Duration::Seconds(30);
  // Called on the executor. May call anything but the destructor.
  std::function<void(const GroupEvent&)> on_event;
};

// Reads, as one of a group's members, the partitions that the group's coordinator gives it
// (KIP-848).
//
// Begins where the group has committed; the reset policy decides where it has not, never because
// the coordinator or a leader cannot be reached. What a Poll has handed out counts as consumed at
// the next Poll or Commit, and only what counts is committed: who crashes is given again what he
// had not worked off, and nothing is skipped. Partitions that are asked back are fetched no more at
// once, and given up when what was handed out of them counts, or half the rebalance time-out is
// over.
//
// Everything runs on the executor: all methods are called there, callbacks come there, and there it
// is destroyed, not from within its callbacks (or after the executor has stopped). Transport and
// executor outlive it. Destroyed without Close it says nothing to the coordinator, which gives its
// partitions away in a while.
//
//   GroupConsumer consumer(options, transport, executor, random);
//   consumer.Subscribe({"t"});
//   consumer.Poll(500, clock.Now() + Duration::Seconds(1), [](Consumer::PollResult result) {
//     for (const PartitionRecords& part : *result) Use(part);  // And Poll again.
//   });
class GroupConsumer : private Membership::Owner {
 public:
  GroupConsumer(GroupConsumerOptions options, Transport& transport, Executor& executor,
                const Random& random);
  ~GroupConsumer() override;

  // Joins the group, or changes what this member reads.
  void Subscribe(std::vector<std::string> topics);

  // As Consumer::Poll, of what is owned. Also an error: the coordinator refuses the membership
  // (GROUP_MAX_SIZE_REACHED, UNRELEASED_INSTANCE_ID, ...), until Subscribe is called again. Not
  // one: a topic was deleted; that is an event, for the group goes on without it.
  void Poll(size_t max_records, MonotonicTime deadline,
            absl::AnyInvocable<void(Consumer::PollResult)> done);

  // Commits what was handed out so far, all of it. Retriable errors are retried until the commit
  // time-out. UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH: what was handed out before the partitions
  // were lost is not committed, and will be handed out again, by whoever owns them.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  void Commit(Done done);

  // With auto_commit commits what counts as consumed (for the last Poll's records: Commit before);
  // then leaves the group. A static member keeps its partitions until its session is over. `done`
  // has the first error; the consumer is closed in any case, and only to be destroyed.
  void Close(Done done);

  // The partitions that Poll reads.
  std::vector<TopicPartition> Owned() const;
  // As of Consumer.
  std::optional<Offset> Position(const TopicPartition& partition) const;
  std::optional<Offset> HighWatermark(const TopicPartition& partition) const;
  void ListOffsets(OffsetQuery query, MonotonicTime deadline, OffsetLookup::Done done);
  void Partitions(const std::string& topic, MonotonicTime deadline, Consumer::PartitionsDone done);

  // All that the group has committed. An error is final, or the last one before the deadline.
  using Offsets = std::map<TopicPartition, Offset>;
  void Committed(MonotonicTime deadline, absl::AnyInvocable<void(absl::StatusOr<Offsets>)> done);

  // Of the present membership; the epoch is 0 before the coordinator has answered.
  const std::string& member_id() const { return membership_.member_id(); }
  int32_t member_epoch() const { return membership_.member_epoch(); }
  // What the group has committed of a partition that is owned, as this member knows. None: nothing,
  // or it is not owned.
  std::optional<Offset> LastCommitted(const TopicPartition& partition) const;

 private:
  enum class State { kIdle, kMember, kLeft, kClosing, kClosed };
  struct Held {
    TopicId id;
    std::optional<Offset> committed;
    // That was committed with it when the partition was taken up (StartAt::epoch).
    LeaderEpoch epoch{-1};
    // What counts, and may be committed.
    std::optional<Offset> consumed;
    // Records of it were handed out and do not count yet.
    bool outstanding = false;
    // It is to be given up; it stood at `last`.
    bool revoked = false;
    std::optional<Offset> last;
  };
  // Whose committed offset is being asked for.
  struct TakingUp {
    TopicId id;
    uint64_t token = 0;
  };
  struct CommitWaiter {
    MonotonicTime deadline;
    Done done;
  };
  using Sent = std::map<TopicPartition, Offset>;

  // Membership::Owner
  void OnAssigned(GroupPartitions partitions, const std::string& reason) override;
  void OnLost(const absl::Status& why) override;
  void OnRefused(const absl::Status& why) override;

  // group_consumer.cc
  void PollConsumer(size_t max_records, MonotonicTime deadline);
  void Polled(size_t max_records, MonotonicTime deadline, Consumer::PollResult result);
  void CountAsConsumed();
  void Drop(const absl::Status& why);
  void ArmIdleTimer();
  void LeaveForIdleness();
  void EndPoll(const absl::Status& why);
  void Tell(GroupEvent event);

  // group_rebalance.cc
  void Reconcile();
  void GiveUp();
  void GaveUp(const std::vector<TopicPartition>& partitions, const absl::Status& committed);
  void TakeUp();
  void TookUp(uint64_t token, absl::StatusOr<v1::FetchOffsetsResponse> response);
  void TryTakingUpAgain(uint64_t token, const absl::Status& why);
  void AssignConsumer();
  GroupPartitions OwnedPartitionsNow() const;

  // group_commits.cc
  void CommitBy(MonotonicTime deadline, Done done);
  void PumpCommits();
  void CommitAnswered(uint64_t life, const Sent& sent, std::vector<CommitWaiter> waiters,
                      const absl::StatusOr<v1::CommitOffsetsResponse>& response);
  absl::Status TakeIn(const v1::CommitOffsetsResponse& response, bool same_life, const Sent& sent);
  void ArmAutoCommit();

  const GroupConsumerOptions options_;
  Executor& executor_;
  Random random_;
  Consumer consumer_;
  CoordinatorCaller caller_;
  Membership membership_;

  State state_ = State::kIdle;
  std::vector<std::string> topics_;
  // Rises when everything owned is dropped: what was under way then concerns nobody.
  uint64_t life_ = 0;
  GroupPartitions target_;
  std::string target_reason_;
  std::map<TopicPartition, Held> held_;
  std::map<TopicPartition, TakingUp> taking_up_;
  uint64_t last_token_ = 0;
  Backoff take_up_pause_{Duration::Milliseconds(50), Duration::Seconds(1)};
  bool giving_up_ = false;
  std::optional<MonotonicTime> give_up_by_;
  TimerId give_up_timer_;

  absl::AnyInvocable<void(Consumer::PollResult)> poll_;
  TimerId idle_timer_;
  // It left because nobody polled, and is to join again as soon as it has left.
  bool leaving_ = false;
  bool rejoin_ = false;
  absl::Status refused_;
  // Records that were handed out and not committed were lost; told to the next Commit.
  absl::Status lost_;

  std::vector<CommitWaiter> commit_waiters_;
  bool committing_ = false;
  TimerId auto_commit_timer_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_GROUP_GROUP_CONSUMER_H_
