#include "broker/partition/leader_streams.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "broker/partition/follower_streams.h"
#include "broker/partition/partition_table.h"
#include "common/buffer/buffer.h"
#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/replication_methods.h"

namespace conclave::broker {
namespace {

constexpr Duration kFirstPause = Duration::Milliseconds(20);
constexpr Duration kLongestPause = Duration::Milliseconds(500);
// That a leader is still not followed; a full disk may last.
constexpr Duration kSayAgain = Duration::Seconds(10);

}  // namespace

using replication::FollowerReplica;
using replication::Session;
using replication_methods::LeaderMessage;

class LeaderStreams::Link : public MessageHandler<LeaderMessage> {
 public:
  Link(LeaderStreams& owner, BrokerId leader)
      : owner_(owner), leader_(leader), pause_(kFirstPause) {}

  void Begin(const PartitionId& id) {
    Followed& followed = followed_[id];
    if (stream_ != nullptr) {
      Position(id, followed);
    } else {
      Open();
    }
  }

  void End(const PartitionId& id) {
    followed_.Erase(id);
    refused_.erase(id);
  }

  void Offer(const PartitionId& id) {
    Followed* followed = followed_.Find(id);
    if (followed == nullptr || std::exchange(followed->to_acknowledge, true)) return;
    to_acknowledge_.push_back(id);
  }

  // The old stream, if any, is of no use any more.
  void Reopen() {
    stream_.reset();
    pause_ = kFirstPause;
    Open();
  }

  void Flush() {
    if (stream_ == nullptr || (to_position_.empty() && to_acknowledge_.empty())) return;
    if (stream_->pending_bytes() > 0) return;
    v1::FollowerMessage message;
    for (const PartitionId& id : std::exchange(to_position_, {})) {
      Followed* followed = followed_.Find(id);
      if (followed != nullptr && std::exchange(followed->to_position, false)) {
        AddPosition(id, message);
      }
    }
    for (const PartitionId& id : std::exchange(to_acknowledge_, {})) {
      Followed* followed = followed_.Find(id);
      if (followed != nullptr && std::exchange(followed->to_acknowledge, false)) {
        AddAck(id, message);
      }
    }
    if (message.positions_size() == 0 && message.acks_size() == 0) return;
    last_sent_ = Now();
    stream_->Send(message);
  }

  void Tick() {
    const MonotonicTime now = Now();
    for (auto it = refused_.begin(); it != refused_.end();) {
      if (it->second.again_at > now) {
        ++it;
        continue;
      }
      // The entry stays, so that the pause grows, until data comes.
      it->second.again_at = MonotonicTime::Never();
      Followed* followed = followed_.Find(it->first);
      if (stream_ != nullptr && followed != nullptr) Position(it->first, *followed);
      ++it;
    }
    Flush();
    if (stream_ == nullptr) return;
    if (now - last_heard_ >= FollowerStreams::kSilence) {
      return Lost(MakeError(v1::NETWORK_EXCEPTION, "silent for too long"));
    }
    if (now - last_sent_ < FollowerStreams::kSignOfLife || stream_->pending_bytes() > 0) return;
    v1::FollowerMessage ping;
    ping.set_ping(true);
    last_sent_ = now;
    stream_->Send(ping);
  }

 private:
  using Stream = TypedClientStream<v1::FollowerMessage, LeaderMessage>;

  // Where it stands, so that a look-up tells.
  struct Followed {
    bool to_position = false;
    bool to_acknowledge = false;
  };
  struct Refusal {
    MonotonicTime again_at;
    Duration pause = kFirstPause;
    // In the log, where it lasts.
    MonotonicTime say_from;
  };

  MonotonicTime Now() const { return owner_.executor_.clock().Now(); }

  void Position(const PartitionId& id, Followed& followed) {
    if (!std::exchange(followed.to_position, true)) to_position_.push_back(id);
  }

  void Open() {
    if (stream_ != nullptr || followed_.empty()) return;
    const auto address = owner_.brokers_.find(leader_);
    // Opened when it is known where the leader is.
    if (address == owner_.brokers_.end()) return;
    last_heard_ = last_sent_ = Now();
    stream_ = std::make_unique<Stream>(owner_.transport_, address->second.endpoint,
                                       replication_methods::kReplicate, CallOptions{},
                                       owner_.executor_, this);
    v1::FollowerMessage message;
    v1::FollowerHello* hello = message.mutable_hello();
    hello->set_cluster_id(owner_.options_.cluster_id.ToBytes());
    hello->set_broker_id(owner_.options_.self.value());
    hello->set_broker_epoch(owner_.epoch_.value());
    hello->set_leader_id(leader_.value());
    to_position_.clear();
    to_acknowledge_.clear();
    refused_.clear();
    for (const PartitionId& id : followed_.Ids()) {
      followed_[id] = {};
      AddPosition(id, message);
    }
    stream_->Send(message);
  }

  void OnMessage(LeaderMessage message) override {
    last_heard_ = Now();
    pause_ = kFirstPause;
    for (int i = 0; i < message.message.partitions_size(); ++i) {
      Take(message.message.partitions(i), std::move(message.payloads[static_cast<size_t>(i)]));
    }
    Flush();
  }

  void OnDrained() override { Flush(); }

  void OnClosed(absl::Status status) override { Lost(status); }

  void Lost(const absl::Status& why) {
    VLOG(1) << "the stream to leader " << leader_ << " ended: " << Describe(why);
    stream_.reset();
    const uint64_t number = ++retry_;
    owner_.executor_.PostAfter(pause_, [this, number] {
      if (number == retry_) Open();
    });
    pause_ = std::min(pause_ * 2, kLongestPause);
  }

  FollowerReplica* Find(const PartitionId& id, Replica** replica) {
    *replica = followed_.Contains(id) ? owner_.partitions_.find(id) : nullptr;
    if (*replica == nullptr || (*replica)->following() != leader_) return nullptr;
    return (*replica)->follower();
  }

  void AddPosition(const PartitionId& id, v1::FollowerMessage& message) {
    Replica* replica = nullptr;
    FollowerReplica* follower = Find(id, &replica);
    if (follower == nullptr) return;
    AddPosition(id, follower->Begin(), message);
  }

  static void AddPosition(const PartitionId& id, const FollowerReplica::Position& at,
                          v1::FollowerMessage& message) {
    v1::FollowerPosition* position = message.add_positions();
    position->set_topic_id(id.topic.ToBytes());
    position->set_partition(id.index.value());
    position->set_session(at.session.value());
    position->set_leader_epoch(at.leader_epoch.value());
    position->set_log_end_offset(at.log.end.value());
    position->set_durable_offset(at.log.durable.value());
    position->set_last_epoch(at.last_epoch.value());
    position->set_log_start_offset(at.log_start.value());
    position->set_begins_anew(at.begins_anew);
  }

  void AddAck(const PartitionId& id, v1::FollowerMessage& message) {
    Replica* replica = nullptr;
    FollowerReplica* follower = Find(id, &replica);
    if (follower == nullptr) return;
    const auto taken = follower->TakeAck();
    if (!taken) return;
    v1::FollowerAck* ack = message.add_acks();
    ack->set_topic_id(id.topic.ToBytes());
    ack->set_partition(id.index.value());
    ack->set_session(taken->session.value());
    ack->set_leader_epoch(taken->leader_epoch.value());
    ack->set_log_end_offset(taken->log.end.value());
    ack->set_durable_offset(taken->log.durable.value());
    ack->set_round(taken->round.value());
    ack->set_log_start_offset(taken->log_start.value());
  }

  void Take(const v1::LeaderPartition& partition, Buffer batches) {
    const auto topic = TopicId::FromBytes(partition.topic_id());
    if (!topic) return;
    const PartitionId id{*topic, PartitionIndex(partition.partition())};
    Replica* replica = nullptr;
    FollowerReplica* follower = Find(id, &replica);
    if (follower == nullptr) return;
    const Session session(partition.session());
    const LeaderEpoch epoch(partition.leader_epoch());
    FollowerReplica::Next next;
    if (partition.has_error()) {
      next = follower->OnRefused(session, epoch, StatusFromError(partition.error()));
    } else if (partition.has_divergence()) {
      next = follower->OnDivergence(session, epoch,
                                    {LeaderEpoch(partition.divergence().leader_epoch()),
                                     Offset(partition.divergence().end_offset())});
    } else if (partition.has_begin_at()) {
      next =
          follower->OnBeginAt(session, epoch, Offset(partition.begin_at()), partition.producers());
    } else {
      next = follower->OnData(
          session, epoch,
          {std::move(batches), Offset(partition.high_watermark()),
           Offset(partition.log_start_offset()), replication::Round(partition.round())});
      // Not for what was on its way when the session ended.
      if (std::holds_alternative<FollowerReplica::Nothing>(next)) refused_.erase(id);
    }
    owner_.partitions_.touch(*replica);
    // Destroys the replica.
    if (std::holds_alternative<FollowerReplica::Replace>(next)) {
      return owner_.partitions_.replace(id);
    }
    if (auto* position = std::get_if<FollowerReplica::Position>(&next)) {
      v1::FollowerMessage message;
      AddPosition(id, *position, message);
      last_sent_ = Now();
      stream_->Send(message);
    } else if (auto* stopped = std::get_if<FollowerReplica::Stopped>(&next)) {
      Stopped(id, *replica, stopped->why);
    }
  }

  // Tries again after a growing pause: the leader's metadata may be behind ours, or its disk, or
  // ours, full.
  void Stopped(const PartitionId& id, const Replica& replica, const absl::Status& why) {
    Refusal& refusal = refused_[id];
    refusal.again_at = Now() + refusal.pause;
    refusal.pause = std::min(refusal.pause * 2, kLongestPause);
    owner_.executor_.PostAt(refusal.again_at, [this] { Tick(); });
    if (refusal.pause == kLongestPause && Now() >= refusal.say_from) {
      refusal.say_from = Now() + kSayAgain;
      LOG(WARNING) << replica.name() << ": does not follow broker " << leader_ << ": "
                   << Describe(why);
    }
  }

  LeaderStreams& owner_;
  const BrokerId leader_;
  std::unique_ptr<Stream> stream_;
  uint64_t retry_ = 0;
  Duration pause_;
  MonotonicTime last_heard_;
  MonotonicTime last_sent_;
  PartitionTable<Followed> followed_;
  // Each once, but for those that are followed no more, or again: then what Followed says counts.
  std::vector<PartitionId> to_position_;
  std::vector<PartitionId> to_acknowledge_;
  std::map<PartitionId, Refusal> refused_;
};

LeaderStreams::LeaderStreams(Options options, Partitions partitions, Transport& transport,
                             Executor& executor)
    : options_(options),
      partitions_(std::move(partitions)),
      transport_(transport),
      executor_(executor) {}

LeaderStreams::~LeaderStreams() = default;

LeaderStreams::Link& LeaderStreams::LinkTo(BrokerId leader) {
  std::unique_ptr<Link>& link = links_[leader];
  if (link == nullptr) link = std::make_unique<Link>(*this, leader);
  return *link;
}

void LeaderStreams::SetBrokerEpoch(BrokerEpoch epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  for (const auto& [leader, link] : links_) link->Reopen();
}

void LeaderStreams::SetBrokers(std::map<BrokerId, Address> brokers) {
  const std::map<BrokerId, Address> before = std::exchange(brokers_, std::move(brokers));
  for (const auto& [leader, link] : links_) {
    const auto was = before.find(leader);
    const auto is = brokers_.find(leader);
    if (is == brokers_.end()) continue;
    if (was == before.end() || !(was->second == is->second)) link->Reopen();
  }
}

void LeaderStreams::Begin(const Replica& replica) {
  const PartitionId id = replica.id();
  const auto before = followed_.find(id);
  if (before != followed_.end() && before->second != replica.following()) {
    LinkTo(before->second).End(id);
  }
  followed_[id] = replica.following();
  LinkTo(replica.following()).Begin(id);
}

void LeaderStreams::End(const PartitionId& id) {
  const auto it = followed_.find(id);
  if (it == followed_.end()) return;
  LinkTo(it->second).End(id);
  followed_.erase(it);
}

void LeaderStreams::Offer(const Replica& replica) {
  const auto link = links_.find(replica.following());
  if (link != links_.end()) link->second->Offer(replica.id());
}

void LeaderStreams::Flush() {
  for (const auto& [leader, link] : links_) link->Flush();
}

void LeaderStreams::Tick() {
  for (const auto& [leader, link] : links_) link->Tick();
}

}  // namespace conclave::broker
