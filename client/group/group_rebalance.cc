#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/group/group_consumer.h"
#include "common/error/error.h"
#include "common/rpc/group_methods.h"

// The part of GroupConsumer that goes from what it owns to what it is to own.
namespace conclave {
namespace {

constexpr Duration kFetchOffsetsTimeout = Duration::Seconds(30);

}  // namespace

void GroupConsumer::OnAssigned(GroupPartitions partitions, const std::string& reason) {
  if (state_ != State::kMember) return;
  target_ = std::move(partitions);
  target_reason_ = reason;
  Reconcile();
  // Where nothing changes the coordinator knows by this that it was heard.
  membership_.SayOwned(OwnedPartitionsNow());
}

void GroupConsumer::Reconcile() {
  if (state_ != State::kMember) return;
  bool stops = false;
  for (auto& [name, held] : held_) {
    const auto target = target_.find(name);
    if (held.revoked || (target != target_.end() && target->second == held.id)) continue;
    held.last = consumer_.Position(name);
    held.revoked = true;
    stops = true;
  }
  if (stops) {
    AssignConsumer();
    if (!give_up_by_) give_up_by_ = executor_.clock().Now() + options_.rebalance_timeout / 2;
  }
  GiveUp();
  TakeUp();
}

// --- Giving up

void GroupConsumer::GiveUp() {
  if (giving_up_) return;
  std::vector<TopicPartition> revoked;
  bool outstanding = false;
  for (const auto& [name, held] : held_) {
    if (!held.revoked) continue;
    revoked.push_back(name);
    outstanding = outstanding || held.outstanding;
  }
  if (revoked.empty()) return give_up_by_.reset();
  const MonotonicTime now = executor_.clock().Now();
  if (outstanding && now < *give_up_by_) {
    executor_.Cancel(give_up_timer_);
    give_up_timer_ = executor_.PostAt(*give_up_by_, lifetime_.Guard([this] { Reconcile(); }));
    return;
  }
  if (!options_.auto_commit) {
    // What the user commits is let through before.
    if (committing_ || !commit_waiters_.empty()) return;
    return GaveUp(revoked, absl::OkStatus());
  }
  giving_up_ = true;
  CommitBy(now + std::min(options_.commit_timeout, options_.rebalance_timeout / 3),
           lifetime_.Guard([this, life = life_, revoked](const absl::Status& committed) {
             if (life != life_) return;
             giving_up_ = false;
             GaveUp(revoked, committed);
           }));
}

void GroupConsumer::GaveUp(const std::vector<TopicPartition>& partitions,
                           const absl::Status& committed) {
  for (const TopicPartition& name : partitions) held_.erase(name);
  give_up_by_.reset();
  membership_.SayOwned(OwnedPartitionsNow());
  Tell({GroupEvent::Kind::kRevoked, partitions, target_reason_, committed});
  Reconcile();
}

// --- Taking up

void GroupConsumer::TakeUp() {
  for (auto it = taking_up_.begin(); it != taking_up_.end();) {
    const auto target = target_.find(it->first);
    const bool wanted = target != target_.end() && target->second == it->second.id;
    it = wanted ? std::next(it) : taking_up_.erase(it);
  }
  const uint64_t token = last_token_ + 1;
  v1::FetchOffsetsRequest request;
  request.set_group(options_.group);
  for (const auto& [name, id] : target_) {
    if (held_.count(name) > 0 || !taking_up_.try_emplace(name, TakingUp{id, token}).second) {
      continue;
    }
    v1::GroupTopicPartitions* topic = request.add_topics();
    topic->set_topic(name.topic);
    topic->set_topic_id(id.ToBytes());
    topic->add_partitions(name.partition.value());
  }
  if (request.topics().empty()) return;
  last_token_ = token;
  caller_.Call<v1::FetchOffsetsRequest, v1::FetchOffsetsResponse>(
      group_methods::kFetchOffsets, std::move(request),
      executor_.clock().Now() + kFetchOffsetsTimeout, nullptr,
      lifetime_.Guard([this, token](absl::StatusOr<v1::FetchOffsetsResponse> response) {
        TookUp(token, std::move(response));
      }));
}

// What was asked away and given back meanwhile has another token: it is asked for anew.
void GroupConsumer::TookUp(uint64_t token, absl::StatusOr<v1::FetchOffsetsResponse> response) {
  if (state_ != State::kMember) return;
  if (!response.ok()) return TryTakingUpAgain(token, response.status());
  std::vector<TopicPartition> taken;
  absl::Status failed;
  for (const v1::CommittedOffset& answer : response->offsets()) {
    const TopicPartition name{answer.topic(), PartitionIndex(answer.partition())};
    const auto found = taking_up_.find(name);
    if (found == taking_up_.end() || found->second.token != token ||
        found->second.id.ToBytes() != answer.topic_id()) {
      continue;
    }
    if (answer.error().code() != v1::NONE) {
      failed = StatusFromError(answer.error());
      continue;
    }
    Held& held = held_[name];
    held.id = found->second.id;
    if (answer.has_offset()) {
      held.committed = held.consumed = Offset(answer.offset());
      // A client that knows of no epochs leaves it at 0.
      held.epoch = LeaderEpoch(answer.leader_epoch() > 0 ? answer.leader_epoch() : -1);
    }
    taking_up_.erase(found);
    taken.push_back(name);
  }
  if (!taken.empty()) {
    take_up_pause_.Reset();
    AssignConsumer();
    membership_.SayOwned(OwnedPartitionsNow());
    Tell({GroupEvent::Kind::kAssigned, std::move(taken), target_reason_, absl::OkStatus()});
  }
  // Also what was not answered at all.
  TryTakingUpAgain(token, failed);
}

void GroupConsumer::TryTakingUpAgain(uint64_t token, const absl::Status& why) {
  std::vector<TopicPartition> names;
  for (const auto& [name, taking] : taking_up_) {
    if (taking.token == token) names.push_back(name);
  }
  if (names.empty()) return;
  executor_.PostAfter(take_up_pause_.Next(random_), lifetime_.Guard([this, token] {
    for (auto it = taking_up_.begin(); it != taking_up_.end();) {
      it = it->second.token == token ? taking_up_.erase(it) : std::next(it);
    }
    Reconcile();
  }));
  // No reset policy here: that the offset is not known does not mean that there is none.
  Tell({GroupEvent::Kind::kTrouble, std::move(names), "",
        why.ok() ? MakeError(v1::UNKNOWN_SERVER_ERROR,
                             "the coordinator did not answer which offsets are committed")
                 : why});
}

void GroupConsumer::AssignConsumer() {
  std::vector<Consumer::Assignment> assignment;
  for (const auto& [name, held] : held_) {
    if (held.revoked) continue;
    assignment.push_back(
        {name, held.committed ? StartAt::At(*held.committed, held.epoch) : StartAt::Policy()});
  }
  consumer_.Assign(assignment);
}

// Also what is to be given up, until it is.
GroupPartitions GroupConsumer::OwnedPartitionsNow() const {
  GroupPartitions owned;
  for (const auto& [name, held] : held_) owned[name] = held.id;
  return owned;
}

}  // namespace conclave
