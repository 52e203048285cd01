#ifndef CONCLAVE_CLIENT_GROUP_MEMBERSHIP_H_
#define CONCLAVE_CLIENT_GROUP_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "client/group/coordinator_caller.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/client.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/group.pb.h"

namespace conclave {

// Partitions, and the ids of the topics they are of: under another id a partition is another.
using GroupPartitions = std::map<TopicPartition, TopicId>;

// One member of a group, as the coordinator sees it (KIP-848): a stream on which it joins, says
// every now and then that it is alive and what it owns, and is told what to own. A stream that
// breaks is opened anew, with the member's id and epoch. The id is drawn here, so that a join whose
// answer was lost is repeated and not doubled (KIP-1082).
//
// Everything runs on the executor, on which it is also destroyed (or after that has stopped), not
// from within its callbacks. All that is given outlives it.
class Membership : private MessageHandler<v1::CoordinatorMessage> {
 public:
  struct Options {
    std::string client_id;
    // Static membership (KIP-345); empty: dynamic.
    std::string instance_id;
    // uniform, range or sticky; empty: the coordinator's default.
    std::string assignor;
    Duration session_timeout;
    Duration rebalance_timeout;
  };

  class Owner {
   public:
    virtual ~Owner() = default;
    // What the member is to own: all of it. It gives up the rest, takes these up, and calls
    // SayOwned as it does. `reason`: of the rebalance; for people.
    virtual void OnAssigned(GroupPartitions partitions, const std::string& reason) = 0;
    // It is a member no more (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH) and owns nothing: others may
    // own it already. It joins anew, as another member, unless it is told to leave.
    virtual void OnLost(const absl::Status& why) = 0;
    // It cannot be a member, and does not try again before Subscribe.
    virtual void OnRefused(const absl::Status& why) = 0;
  };

  Membership(Options options, CoordinatorCaller& caller, Transport& transport, Executor& executor,
             const Random& random, Owner& owner);
  ~Membership() override;

  // Joins, or changes what it is subscribed to. Not while it leaves.
  void Subscribe(std::vector<std::string> topics);
  void SayOwned(const GroupPartitions& owned);
  // A call was refused with this: as if the stream had ended with it.
  void Lost(const absl::Status& why);
  // Leaves: for good, or for a while if it is static (its partitions wait for it until its session
  // ends). `done` is called once; not OK: the coordinator was not told in time, and finds out by
  // itself. Nothing more is told to the owner.
  void Leave(MonotonicTime deadline, absl::AnyInvocable<void(absl::Status)> done);

  // Of the present life: what calls carry. Epoch 0: has not joined yet.
  const std::string& member_id() const { return member_id_; }
  int32_t member_epoch() const { return member_epoch_; }

 private:
  using Stream = TypedClientStream<v1::MemberMessage, v1::CoordinatorMessage>;
  enum class State { kOut, kMember, kLeaving };

  void OnMessage(v1::CoordinatorMessage message) override;
  void OnClosed(absl::Status status) override;

  void Connect();
  void ConnectSoon();
  void Open(const std::string& endpoint);
  void Ended(const absl::Status& status);
  void Beat();
  void ArmBeat();
  void BeginLife();
  void FinishLeaving(absl::Status status);
  int32_t LeavingEpoch() const;
  void Fill(v1::MemberSubscription& subscription) const;
  void Fill(v1::OwnedPartitions& owned) const;

  const Options options_;
  CoordinatorCaller& caller_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  Owner& owner_;

  State state_ = State::kOut;
  std::vector<std::string> topics_;
  std::string member_id_;
  int32_t member_epoch_ = 0;
  // The coordinator may know of this life.
  bool introduced_ = false;
  GroupPartitions owned_;

  std::string endpoint_;
  std::unique_ptr<Stream> stream_;
  bool finding_ = false;
  // The stream's first message was answered.
  bool welcomed_ = false;
  MonotonicTime heard_at_;
  Duration beat_interval_ = Duration::Seconds(1);
  TimerId beat_timer_;
  TimerId connect_timer_;
  Backoff pause_{Duration::Milliseconds(20), Duration::Seconds(1)};
  TimerId leave_timer_;
  absl::AnyInvocable<void(absl::Status)> left_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_GROUP_MEMBERSHIP_H_
