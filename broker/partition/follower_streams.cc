#include "broker/partition/follower_streams.h"

#include <glog/logging.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/partition/partition_table.h"
#include "broker/partition/remembered_producers.h"
#include "common/buffer/buffer.h"
#include "common/error/error.h"

namespace conclave::broker {

using replication::LeaderReplica;
using replication::Session;
using replication_methods::LeaderMessage;

namespace {

// Of answers in a message, or one that is larger.
constexpr size_t kAnswerBytes = size_t{1} << 20;
// High watermarks alone are worth a message so often: before, they wait for the next one.
constexpr Duration kBetweenMarks = Duration::Milliseconds(5);

v1::LeaderPartition& AddPart(LeaderMessage& message) {
  message.payloads.emplace_back();
  return *message.message.add_partitions();
}

}  // namespace

class FollowerStreams::Link : public MessageHandler<v1::FollowerMessage> {
 public:
  Link(FollowerStreams& owner, uint64_t number, std::unique_ptr<Stream> stream)
      : owner_(owner),
        number_(number),
        stream_(std::move(stream)),
        last_heard_(owner.executor_.clock().Now()) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::FollowerMessage message) override {
    last_heard_ = Now();
    if (closing_) return;
    if (!follower_) {
      if (const absl::Status good = Hello(message); !good.ok()) return Close(good);
    }
    for (const v1::FollowerPosition& position : message.positions()) Positioned(position);
    for (const v1::FollowerAck& ack : message.acks()) Acknowledged(ack);
    Flush();
  }

  void OnDrained() override { Flush(); }

  // Destroys this.
  void OnClosed(absl::Status status) override {
    if (follower_) {
      VLOG(1) << "the stream of follower " << *follower_ << " ended: " << Describe(status);
    }
    ForgetSessions();
    owner_.Erase(number_);
  }

  void Close(const absl::Status& why) {
    if (std::exchange(closing_, true)) return;
    ForgetSessions();
    to_send_.clear();
    marks_.clear();
    answers_.clear();
    stream_->Finish(why);
  }

  void Offer(const PartitionId& id) {
    if (closing_) return;
    if (Followed* followed = followed_.Find(id)) ToSend(id, *followed);
  }

  void Flush() {
    while (!closing_ && (!answers_.empty() || !to_send_.empty()) && stream_->pending_bytes() == 0) {
      LeaderMessage message;
      // Each may tell of many producers.
      size_t bytes = 0;
      auto answer = answers_.begin();
      for (; answer != answers_.end() && bytes < kAnswerBytes; ++answer) {
        bytes += answer->ByteSizeLong();
        AddPart(message) = std::move(*answer);
      }
      answers_.erase(answers_.begin(), answer);
      Gather(message);
      if (message.payloads.empty()) return;
      last_sent_ = Now();
      stream_->Send(message);
    }
  }

  void Tick() {
    if (closing_) return;
    if (Now() - last_heard_ >= kSilence) {
      return Close(MakeError(v1::NETWORK_EXCEPTION, "the follower was silent for too long"));
    }
    if (Now() - last_sent_ < kSignOfLife || stream_->pending_bytes() > 0) return;
    LeaderMessage ping;
    ping.message.set_ping(true);
    last_sent_ = Now();
    stream_->Send(ping);
  }

  std::optional<BrokerId> follower() const { return follower_; }
  BrokerEpoch epoch() const { return epoch_; }

 private:
  // In the follower's session.
  struct Followed {
    Session session;
    Offset told_log_start;
    // Where it stands, so that a look-up tells.
    bool to_send = false;
    bool mark = false;
  };

  MonotonicTime Now() const { return owner_.executor_.clock().Now(); }

  absl::Status Hello(const v1::FollowerMessage& message) {
    if (!message.has_hello()) {
      return MakeError(v1::INVALID_REQUEST, "a replication stream begins with a hello");
    }
    const v1::FollowerHello& hello = message.hello();
    if (hello.cluster_id() != owner_.options_.cluster_id.ToBytes()) {
      return MakeError(v1::INCONSISTENT_CLUSTER_ID,
                       absl::StrCat("the follower belongs to another cluster; this is cluster ",
                                    owner_.options_.cluster_id.ToString()));
    }
    if (hello.leader_id() != owner_.options_.self.value()) {
      return MakeError(
          v1::INVALID_REQUEST,
          absl::StrCat("the follower looks for broker ", hello.leader_id(), "; this is broker ",
                       owner_.options_.self.value(), ": is an endpoint configured twice?"));
    }
    const BrokerId follower(hello.broker_id());
    const BrokerEpoch epoch(hello.broker_epoch());
    if (absl::Status known = CheckRegistered(follower, epoch); !known.ok()) return known;
    const auto older = owner_.by_follower_.find(follower);
    if (older != owner_.by_follower_.end()) {
      older->second->Close(
          MakeError(v1::STALE_BROKER_EPOCH, "a newer stream of this broker replaces this one"));
    }
    owner_.by_follower_[follower] = this;
    follower_ = follower;
    epoch_ = epoch;
    return absl::OkStatus();
  }

  // Positions count for an incarnation of a broker (KIP-903); one that is not registered under the
  // epoch it names must not take the place of one that is.
  absl::Status CheckRegistered(BrokerId follower, BrokerEpoch epoch) const {
    const std::optional<BrokerEpoch> registered = owner_.partitions_.epoch_of(follower);
    if (registered && *registered > epoch) {
      return MakeError(v1::STALE_BROKER_EPOCH,
                       absl::StrCat("broker ", follower.value(),
                                    " has registered anew since epoch ", epoch.value()));
    }
    if (registered && *registered == epoch) return absl::OkStatus();
    return MakeError(v1::METADATA_BEHIND,
                     absl::StrCat("this broker does not know of broker ", follower.value(),
                                  " in epoch ", epoch.value(), "; try again"));
  }

  void Positioned(const v1::FollowerPosition& proto) {
    const auto topic = TopicId::FromBytes(proto.topic_id());
    if (!topic) return Close(MakeError(v1::INVALID_REQUEST, "a topic id has 16 bytes"));
    const PartitionId id{*topic, PartitionIndex(proto.partition())};
    LeaderReplica::Position position;
    position.follower = *follower_;
    position.broker_epoch = epoch_;
    position.session = Session(proto.session());
    position.leader_epoch = LeaderEpoch(proto.leader_epoch());
    position.log = {Offset(proto.log_end_offset()), Offset(proto.durable_offset())};
    position.last_epoch = LeaderEpoch(proto.last_epoch());
    position.log_start = Offset(proto.log_start_offset());
    position.begins_anew = proto.begins_anew();
    Replica* replica = owner_.partitions_.find(id);
    LeaderReplica::Answer answer =
        MakeError(v1::NOT_LEADER_OR_FOLLOWER,
                  absl::StrCat("broker ", owner_.options_.self.value(),
                               " does not lead the partition in epoch ", proto.leader_epoch()));
    if (proto.log_end_offset() < 0 || proto.durable_offset() < 0 ||
        proto.durable_offset() > proto.log_end_offset()) {
      answer = MakeError(v1::INVALID_REQUEST, "offsets of a position contradict each other");
    } else if (replica != nullptr && replica->leader() != nullptr) {
      answer = replica->leader()->Positioned(position, Now());
      owner_.partitions_.touch(*replica);
    }
    Answer(id, replica, proto, answer);
  }

  void Answer(const PartitionId& id, const Replica* replica, const v1::FollowerPosition& position,
              const LeaderReplica::Answer& answer) {
    if (std::holds_alternative<LeaderReplica::Agreed>(answer)) {
      Followed& followed = followed_[id];
      followed.session = Session(position.session());
      followed.told_log_start = Offset();
      ToSend(id, followed);
      return;
    }
    followed_.Erase(id);
    v1::LeaderPartition partition;
    partition.set_topic_id(position.topic_id());
    partition.set_partition(position.partition());
    partition.set_session(position.session());
    partition.set_leader_epoch(position.leader_epoch());
    if (const auto* end = std::get_if<replication::EpochEnd>(&answer)) {
      partition.mutable_divergence()->set_leader_epoch(end->epoch.value());
      partition.mutable_divergence()->set_end_offset(end->end.value());
    } else if (const auto* begin = std::get_if<LeaderReplica::BeginAt>(&answer)) {
      partition.set_begin_at(begin->offset.value());
      *partition.mutable_producers() =
          ProducersToProto(replica->log().producers().Below(begin->offset));
    } else {
      *partition.mutable_error() = ErrorFromStatus(std::get<absl::Status>(answer));
    }
    answers_.push_back(std::move(partition));
  }

  void Acknowledged(const v1::FollowerAck& ack) {
    const auto topic = TopicId::FromBytes(ack.topic_id());
    if (!topic) return Close(MakeError(v1::INVALID_REQUEST, "a topic id has 16 bytes"));
    Replica* replica = owner_.partitions_.find({*topic, PartitionIndex(ack.partition())});
    if (replica == nullptr || replica->leader() == nullptr) return;
    replica->leader()->LogStartMoved(*follower_, epoch_, Session(ack.session()),
                                     LeaderEpoch(ack.leader_epoch()),
                                     Offset(ack.log_start_offset()));
    replica->leader()->Acknowledged(*follower_, epoch_, Session(ack.session()),
                                    LeaderEpoch(ack.leader_epoch()),
                                    {Offset(ack.log_end_offset()), Offset(ack.durable_offset())},
                                    replication::Round(ack.round()), Now());
    owner_.partitions_.touch(*replica);
  }

  void ForgetSessions() {
    if (!follower_) return;
    for (const PartitionId& id : followed_.Ids()) {
      const Session session = followed_[id].session;
      Replica* replica = owner_.partitions_.find(id);
      if (replica == nullptr || replica->leader() == nullptr) continue;
      replica->leader()->StreamClosed(*follower_, epoch_, session);
      owner_.partitions_.touch(*replica);
    }
    followed_.Clear();
  }

  void ToSend(const PartitionId& id, Followed& followed) {
    if (!std::exchange(followed.to_send, true)) to_send_.push_back(id);
  }

  void Mark(const PartitionId& id, Followed& followed) {
    if (!std::exchange(followed.mark, true)) marks_.push_back(id);
  }

  // Fills the message from the partitions that have something to send, each once: one that has more
  // goes to the end, so that none is starved.
  void Gather(LeaderMessage& message) {
    size_t room = owner_.options_.message_bytes;
    for (size_t left = to_send_.size(); left > 0 && room > 0; --left) {
      const PartitionId id = to_send_.front();
      to_send_.pop_front();
      Followed* followed = followed_.Find(id);
      if (followed == nullptr || !std::exchange(followed->to_send, false)) continue;
      const size_t taken = GatherOne(id, *followed, room, /*marks=*/false, message);
      room -= std::min(room, taken);
    }
    if (marks_.empty()) return;
    const MonotonicTime due = last_sent_ + kBetweenMarks;
    if (message.payloads.empty() && Now() < due) return TellMarksAt(due);
    for (const PartitionId& id : std::exchange(marks_, {})) {
      Followed* followed = followed_.Find(id);
      if (followed == nullptr || !std::exchange(followed->mark, false)) continue;
      // With its records, as soon as there is room for them.
      if (!followed->to_send) GatherOne(id, *followed, room, /*marks=*/true, message);
    }
  }

  void TellMarksAt(MonotonicTime due) {
    if (std::exchange(telling_marks_, true)) return;
    owner_.executor_.PostAt(due, [owner = &owner_, number = number_] {
      const auto found = owner->links_.find(number);
      if (found == owner->links_.end()) return;
      Link& link = *found->second;
      link.telling_marks_ = false;
      for (const PartitionId& id : std::exchange(link.marks_, {})) {
        Followed* followed = link.followed_.Find(id);
        if (followed != nullptr && std::exchange(followed->mark, false)) link.ToSend(id, *followed);
      }
      link.Flush();
    });
  }

  // `marks`: high watermarks alone are told, too. It stands in neither list.
  size_t GatherOne(const PartitionId& id, Followed& followed, size_t room, bool marks,
                   LeaderMessage& message) {
    Replica* replica = owner_.partitions_.find(id);
    LeaderReplica* leader = replica == nullptr ? nullptr : replica->leader();
    const auto feed =
        leader == nullptr ? std::optional<LeaderReplica::Feed>() : leader->FeedOf(*follower_);
    if (!feed || feed->session != followed.session) return 0;
    const Offset high_watermark = leader->high_watermark();
    const replication::Round round = leader->round();
    const Offset log_start = replica->log().log_start();
    if (marks && feed->next < leader->log_end()) {
      // It has records by now, which go by the message's bound.
      ToSend(id, followed);
      return 0;
    }
    if (feed->next >= leader->log_end() && feed->told_round >= round &&
        followed.told_log_start >= log_start) {
      const bool told = feed->told_high_watermark >= high_watermark;
      if (told || !marks) {
        if (!told) Mark(id, followed);
        return 0;
      }
    }
    followed.mark = false;
    Offset next = feed->next;
    Buffer batches;
    if (feed->next < leader->log_end()) {
      // Below it only the rest of the batch within which the log starts.
      const bool within_batch =
          feed->next < log_start && feed->next == replica->log().first_batch();
      auto read = replica->Read(within_batch ? log_start : feed->next, room, leader->log_end());
      if (!read.ok()) {
        // What cannot be read is not copied; the follower is told, and tries again.
        LOG(ERROR) << replica->name() << ": cannot be sent to broker " << *follower_ << ": "
                   << Describe(read.status());
        Refuse(id, *feed, *leader, read.status(), message);
        return 0;
      }
      next = read->next_offset;
      batches = std::move(read->batches);
    }
    v1::LeaderPartition* partition = &AddPart(message);
    partition->set_topic_id(id.topic.ToBytes());
    partition->set_partition(id.index.value());
    partition->set_session(feed->session.value());
    partition->set_leader_epoch(leader->leader_epoch().value());
    partition->set_high_watermark(high_watermark.value());
    partition->set_round(round.value());
    partition->set_log_start_offset(log_start.value());
    followed.told_log_start = log_start;
    const size_t taken = batches.size();
    message.payloads.back() = std::move(batches);
    leader->Sent(*follower_, feed->session, next, high_watermark, round);
    if (next < leader->log_end()) ToSend(id, followed);
    return taken;
  }

  void Refuse(const PartitionId& id, const LeaderReplica::Feed& feed, LeaderReplica& leader,
              const absl::Status& why, LeaderMessage& message) {
    v1::LeaderPartition* partition = &AddPart(message);
    partition->set_topic_id(id.topic.ToBytes());
    partition->set_partition(id.index.value());
    partition->set_session(feed.session.value());
    partition->set_leader_epoch(leader.leader_epoch().value());
    *partition->mutable_error() = ErrorFromStatus(why);
    leader.StreamClosed(*follower_, epoch_, feed.session);
    followed_.Erase(id);
  }

  FollowerStreams& owner_;
  const uint64_t number_;
  const std::unique_ptr<Stream> stream_;
  std::optional<BrokerId> follower_;
  BrokerEpoch epoch_;
  bool closing_ = false;
  MonotonicTime last_heard_;
  MonotonicTime last_sent_;
  // Those that have a session.
  PartitionTable<Followed> followed_;
  // The next at the front. Each once, but for those that have no session any more, or a new one:
  // then what Followed says counts. The same holds for the other.
  std::deque<PartitionId> to_send_;
  // With nothing to tell but a high watermark.
  std::vector<PartitionId> marks_;
  bool telling_marks_ = false;
  std::vector<v1::LeaderPartition> answers_;
};

FollowerStreams::FollowerStreams(Options options, Partitions partitions, Executor& executor)
    : options_(options), partitions_(std::move(partitions)), executor_(executor) {}

FollowerStreams::~FollowerStreams() = default;

void FollowerStreams::Accept(std::unique_ptr<Stream> stream) {
  const uint64_t number = ++last_number_;
  auto link = std::make_unique<Link>(*this, number, std::move(stream));
  Link* raw = link.get();
  links_.emplace(number, std::move(link));
  raw->Start();
}

void FollowerStreams::Erase(uint64_t number) {
  const auto it = links_.find(number);
  const auto follower = it->second->follower();
  if (follower) {
    const auto newest = by_follower_.find(*follower);
    if (newest != by_follower_.end() && newest->second == it->second.get()) {
      by_follower_.erase(newest);
    }
  }
  links_.erase(it);
}

void FollowerStreams::Offer(const Replica& replica) {
  for (const auto& [follower, link] : by_follower_) link->Offer(replica.id());
}

void FollowerStreams::Flush() {
  for (const auto& [follower, link] : by_follower_) link->Flush();
}

void FollowerStreams::Tick() {
  for (const auto& [number, link] : links_) link->Tick();
}

}  // namespace conclave::broker
