#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/group/group_consumer.h"
#include "common/error/error.h"
#include "common/rpc/group_methods.h"

// The part of GroupConsumer that commits: one commit at a time, for of two under way the older
// could win.
namespace conclave {

void GroupConsumer::CommitBy(MonotonicTime deadline, Done done) {
  commit_waiters_.push_back({deadline, std::move(done)});
  PumpCommits();
}

void GroupConsumer::PumpCommits() {
  if (committing_ || commit_waiters_.empty()) return;
  std::vector<CommitWaiter> waiters = std::exchange(commit_waiters_, {});
  MonotonicTime deadline = waiters.front().deadline;
  for (const CommitWaiter& waiter : waiters) deadline = std::max(deadline, waiter.deadline);
  v1::CommitOffsetsRequest request;
  request.set_group(options_.group);
  // Under this epoch it is refused should the partitions be another's by the time it arrives.
  request.set_member_id(membership_.member_id());
  request.set_member_epoch(membership_.member_epoch());
  Sent sent;
  for (const auto& [name, held] : held_) {
    if (!held.consumed || held.consumed == held.committed) continue;
    v1::OffsetCommit* offset = request.add_offsets();
    offset->set_topic(name.topic);
    offset->set_topic_id(held.id.ToBytes());
    offset->set_partition(name.partition.value());
    offset->set_offset(held.consumed->value());
    // Of the position, which is there or further on in the same log. 0 may be none that was set.
    const LeaderEpoch epoch = consumer_.PositionEpoch(name);
    offset->set_leader_epoch(epoch > LeaderEpoch(0) ? epoch.value() : -1);
    sent[name] = *held.consumed;
  }
  if (sent.empty()) {
    for (CommitWaiter& waiter : waiters) waiter.done(absl::OkStatus());
    return;
  }
  committing_ = true;
  caller_.Call<v1::CommitOffsetsRequest, v1::CommitOffsetsResponse>(
      group_methods::kCommitOffsets, std::move(request), deadline, nullptr,
      lifetime_.Guard([this, life = life_, sent = std::move(sent), waiters = std::move(waiters)](
                          const absl::StatusOr<v1::CommitOffsetsResponse>& response) mutable {
        CommitAnswered(life, sent, std::move(waiters), response);
      }));
}

void GroupConsumer::CommitAnswered(uint64_t life, const Sent& sent,
                                   std::vector<CommitWaiter> waiters,
                                   const absl::StatusOr<v1::CommitOffsetsResponse>& response) {
  committing_ = false;
  absl::Status status = response.status();
  if (status.ok()) {
    status = TakeIn(*response, life == life_, sent);
  } else if (life == life_ && (ErrorCodeOf(status) == v1::UNKNOWN_MEMBER_ID ||
                               ErrorCodeOf(status) == v1::FENCED_MEMBER_EPOCH)) {
    membership_.Lost(status);
  }
  for (CommitWaiter& waiter : waiters) waiter.done(status);
  PumpCommits();
  Reconcile();
}

absl::Status GroupConsumer::TakeIn(const v1::CommitOffsetsResponse& response, bool same_life,
                                   const Sent& sent) {
  absl::Status first;
  size_t answered = 0;
  for (const v1::OffsetCommitResult& result : response.offsets()) {
    const TopicPartition name{result.topic(), PartitionIndex(result.partition())};
    const auto offset = sent.find(name);
    if (offset == sent.end()) continue;
    ++answered;
    if (result.error().code() != v1::NONE) {
      if (first.ok()) first = StatusFromError(result.error());
      continue;
    }
    const auto held = held_.find(name);
    if (same_life && held != held_.end()) held->second.committed = offset->second;
  }
  if (first.ok() && answered < sent.size()) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR,
                     absl::StrCat("the coordinator answered for ", answered, " of ", sent.size(),
                                  " offsets; commit again"));
  }
  return first;
}

void GroupConsumer::ArmAutoCommit() {
  executor_.Cancel(auto_commit_timer_);
  if (!options_.auto_commit) return;
  auto_commit_timer_ = executor_.PostAfter(options_.auto_commit_interval, lifetime_.Guard([this] {
    ArmAutoCommit();
    if (committing_) return;
    CommitBy(executor_.clock().Now() + options_.commit_timeout,
             lifetime_.Guard([this](const absl::Status& status) {
               if (status.ok()) return;
               Tell({GroupEvent::Kind::kTrouble, {}, "", status});
             }));
  }));
}

}  // namespace conclave
