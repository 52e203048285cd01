#ifndef CONCLAVE_BROKER_GROUP_GROUP_COORDINATOR_H_
#define CONCLAVE_BROKER_GROUP_GROUP_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "broker/group/actions.h"
#include "broker/group/image.h"
#include "broker/group/topic_view.h"
#include "broker/group/transaction.h"
#include "broker/group/types.h"
#include "common/metadata/deleted_topics.h"
#include "common/random/random.h"
#include "common/types/ids.h"
#include "conclave/v1/errors.pb.h"
#include "conclave/v1/group.pb.h"

namespace conclave::group {

struct CoordinatorConfig {
  BrokerId self = kNoBroker;
  Duration heartbeat_interval = Duration::Seconds(1);
  // What a member gets that asks for none, and what it may ask for.
  Duration session_timeout = Duration::Seconds(10);
  Duration session_timeout_min = Duration::Seconds(1);
  Duration session_timeout_max = Duration::Seconds(30 * 60);
  Duration rebalance_timeout = Duration::Seconds(60);
  Duration rebalance_timeout_max = Duration::Seconds(60 * 60);
  // How long a dynamic member's stream may be broken.
  Duration stream_grace = Duration::Milliseconds(200);
  // Of groups that have emptied (offsets.retention.minutes).
  Duration offsets_retention = Duration::Seconds(7 * 24 * 60 * 60);
  // After it a call's outcome is unknown to the caller.
  Duration request_timeout = Duration::Seconds(10);
  size_t max_members_per_group = 1'000;
  size_t max_offset_metadata_bytes = 4'096;
  // Offsets of one commit, topics of one subscription.
  size_t max_items_per_request = 10'000;
  size_t max_waiting_requests = 10'000;
};

// The groups of one partition of __consumer_offsets, at the partition's leader, in one leader epoch
// (KIP-848; semantics, section 5). Pure: whatever happens outside comes in by the methods, whatever
// is to happen there comes out of TakeActions. Not thread-safe. README.md tells the driver's side.
//
// Commands make records and apply them to a speculative image, which the next command is checked
// against; a reply, and what a member is told, waits until they are committed and is made from the
// committed image.
class GroupCoordinator {
 public:
  GroupCoordinator(CoordinatorConfig config, Random random);

  // --- Loading: topics and records first, then ReplayedTo, then HighWatermark.

  // A record of the partition's log, in order. CORRUPT_MESSAGE or UNSUPPORTED_VERSION: its key is
  // known and its value is not, so that this broker cannot coordinate these groups: LoadFailed. A
  // key that is not known is of a kind that came later, or no coordinator's, and is passed over
  // (KIP-915); see IsKnownKey.
  absl::Status Replay(std::string_view key, std::optional<std::string_view> value);
  static bool IsKnownKey(std::string_view key);
  // Callers are told `why` from now on, until another coordinator loads the log.
  void LoadFailed(const absl::Status& why);
  // Everything below `epoch_start`, where the leader's epoch begins, has been replayed. It serves
  // once the high watermark has reached that.
  void ReplayedTo(Offset epoch_start, Now now);

  // --- The log

  // The batch is in the log, which ends at `end` now.
  void Appended(AppendTicket ticket, Offset end);
  // The batch is certainly not in the log, and no later one is: what was to happen on `ticket` and
  // after it does not. `why` is what callers are told.
  void AppendFailed(AppendTicket ticket, const absl::Status& why, Now now);
  // Everything below it is committed. Never falls.
  void HighWatermark(Offset high_watermark, Now now);
  // What is in the log and not committed may be lost yet (NOT_ENOUGH_REPLICAS_AFTER_APPEND): those
  // who wait for it are told so now.
  void OutcomeUnknown(const absl::Status& why);

  void LeadershipConfirmed(ReadRound round);
  // `why` is retriable.
  void LeadershipNotConfirmed(ReadRound round, const absl::Status& why);

  // --- Metadata

  struct TopicChange {
    std::string name;
    // nullopt: deleted.
    std::optional<TopicInfo> topic;
  };
  // Before ReplayedTo: all topics there are, and the ids that are known to be deleted, as of no
  // earlier than the record that made this broker the leader. Then: what changes.
  void TopicsChanged(const std::vector<TopicChange>& changes, const std::vector<TopicId>& deleted,
                     Now now);

  // --- Members

  void MemberSays(StreamId stream, const v1::MemberMessage& message, Now now);
  // It broke, or the member finished it.
  void StreamClosed(StreamId stream, Now now);

  // --- Calls, each answered by one Reply

  void CommitOffsets(RequestId request, const v1::CommitOffsetsRequest& commit, Now now);
  void FetchOffsets(RequestId request, const v1::FetchOffsetsRequest& fetch, Now now);
  void DescribeGroups(RequestId request, const v1::DescribeGroupsRequest& describe, Now now);
  void ListGroups(RequestId request);

  // --- Time

  void Tick(Now now);
  // When Tick has something to do.
  MonotonicTime NextDeadline() const { return next_deadline_; }

  // The partition has another leader, or this one's epoch is over. Everything that waits is
  // answered, every stream ended; then this object answers NOT_COORDINATOR alone. `hint` names the
  // new leader if it is known.
  void Resign(const v1::NodeHint& hint);

  // In order, each once.
  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

  bool IsServing() const { return state_ == State::kServing; }
  const GroupImage& committed() const { return committed_; }
  const GroupImage& speculative() const { return speculative_; }

 private:
  enum class State { kLoading, kFailed, kServing, kResigned };
  using MemberName = std::pair<std::string, std::string>;  // Group, member id.

  // What is known of a member and in no record.
  struct Session {
    std::optional<StreamId> stream;
    // On this stream.
    bool welcomed = false;
    MonotonicTime ends_at;
    // Its stream is broken, and it is dynamic.
    MonotonicTime grace_ends_at = MonotonicTime::Never();
    // It has partitions to give up.
    MonotonicTime rebalance_ends_at = MonotonicTime::Never();
    // What it last said it owns.
    std::optional<PartitionSet> owned;
    // The epoch it was last told.
    GroupEpoch told;
  };

  // What happens when the records it rests on are committed.
  struct Tell {
    MemberName member;
  };
  // The same for one that has joined or come back on this stream: the first that it is told there,
  // for what was committed before may be of an earlier life. If that fails, so does the stream.
  struct Welcome {
    MemberName member;
    StreamId stream;
  };
  struct Farewell {
    StreamId stream;
    std::optional<v1::CoordinatorMessage> message;
    absl::Status status;
  };
  using Deferred = std::variant<Reply, Tell, Welcome, Farewell>;

  struct InFlight {
    AppendTicket ticket;
    std::optional<Offset> end;
    std::vector<GroupRecord> records;
    std::vector<Deferred> then;
  };

  struct Read {
    RequestId request;
    std::variant<v1::FetchOffsetsRequest, v1::DescribeGroupsRequest> what;
  };

  // group_coordinator.cc
  void Activate(Now now);
  void Sweep(Now now);
  void SweepGroup(const std::string& group, Now now);
  void ExpireGroups(Now now);
  void SyncSessions(Now now, const absl::Status& why);
  // Appends what the transaction has made, and does `then` once that is committed.
  void Finish(Transaction& transaction, std::vector<Deferred> then, Now now);
  void Do(Deferred deferred);
  void Fail(Deferred deferred, const absl::Status& why, Now now);
  // Does it when everything so far is committed.
  void Defer(Deferred deferred);
  void Act(Action action) { actions_.push_back(std::move(action)); }
  void Wake(MonotonicTime at) { next_deadline_ = std::min(next_deadline_, at); }
  absl::Status CheckServing() const;
  absl::Status CheckGroupId(const std::string& group) const;

  // group_members.cc
  void FirstMessage(StreamId stream, const v1::MemberMessage& message, Now now);
  absl::Status Join(StreamId stream, const v1::MemberMessage& message, Now now);
  absl::Status Resume(StreamId stream, const v1::MemberMessage& message, Now now);
  absl::Status Continue(StreamId stream, const MemberName& name, const v1::MemberMessage& message,
                        Now now);
  void Leave(StreamId stream, const MemberName& name, bool will_be_back, Now now);
  // What it says of its subscription and of what it owns.
  absl::Status TakeIn(const MemberName& name, const v1::MemberMessage& message, Now now,
                      std::vector<Deferred> then);
  absl::StatusOr<MemberDescription> Describe(const v1::MemberMessage& message,
                                             const MemberDescription* before) const;
  absl::Status CheckEpoch(const MemberName& name, const v1::MemberMessage& message) const;
  absl::StatusOr<std::string> IdToReplace(const std::string& group, const std::string& instance,
                                          const std::string& member) const;
  std::string DrawMemberId();
  PartitionSet OwnedOf(const v1::OwnedPartitions& owned) const;
  v1::OwnedPartitions ToProto(const PartitionSet& partitions) const;
  void Bind(StreamId stream, const MemberName& name, Now now);
  void RemoveMembers(const std::string& group, const std::map<std::string, std::string>& reasons,
                     Now now);
  void EndSessions(Now now);
  absl::Status UnknownMember(const MemberName& name) const;
  void RememberRemoval(const MemberName& name, const std::string& reason);
  void TellNow(const MemberName& name);
  void WatchRevocations(const MemberName& name, Now now);

  // group_requests.cc
  bool TakeOn(RequestId request, Now now);
  void Answer(Reply reply);
  void Refuse(RequestId request, const absl::Status& why);
  absl::Status CheckCommitter(const v1::CommitOffsetsRequest& commit) const;
  absl::Status CheckOffset(const v1::CommitOffsetsRequest& commit, const v1::OffsetCommit& offset,
                           PartitionId& partition, std::string& topic) const;
  absl::StatusOr<PartitionId> Locate(const std::string& topic, const std::string& topic_id,
                                     int32_t partition) const;
  void StartRead(RequestId request, Read read, Now now);
  void StartRound();
  Reply ReplyTo(const Read& read) const;
  v1::FetchOffsetsResponse OffsetsOf(const v1::FetchOffsetsRequest& fetch) const;
  v1::GroupDescription DescriptionOf(const std::string& group) const;
  v1::CommittedOffset OffsetToProto(const PartitionId& partition, const StoredOffset* offset) const;

  const CoordinatorConfig config_;
  Random random_;
  State state_ = State::kLoading;
  absl::Status load_failure_;
  v1::NodeHint hint_;
  std::optional<Offset> epoch_start_;
  Offset high_watermark_;

  GroupImage committed_;
  GroupImage speculative_;
  TopicView topics_;
  DeletedTopics deleted_topics_;

  AppendTicket last_ticket_;
  std::deque<InFlight> in_flight_;
  std::map<MemberName, Session> sessions_;
  std::map<StreamId, MemberName> streams_;
  // Of members that are out, and will be told so when that is committed.
  std::set<StreamId> ending_;
  // Why members are out, of the last ones, for those who come back.
  std::map<MemberName, std::string> removals_;
  std::deque<MemberName> removals_in_order_;

  // Calls that wait, and until when.
  std::map<RequestId, MonotonicTime> requests_;
  ReadRound last_round_;
  // Of the round under way; and those that came after it had begun.
  std::vector<Read> round_reads_;
  std::vector<Read> next_reads_;
  bool round_under_way_ = false;

  MonotonicTime next_deadline_ = MonotonicTime::Never();
  MonotonicTime next_expiry_check_ = MonotonicTime::Never();
  // Something could not be appended, and is looked at again then.
  MonotonicTime next_sweep_ = MonotonicTime::Never();
  std::vector<Action> actions_;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_GROUP_COORDINATOR_H_
