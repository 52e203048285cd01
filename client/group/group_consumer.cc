#include "client/group/group_consumer.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/group_methods.h"

namespace conclave {
namespace {

// To tell the coordinator that a member leaves.
constexpr Duration kLeaveTimeout = Duration::Seconds(5);

}  // namespace

GroupConsumer::GroupConsumer(GroupConsumerOptions options, Transport& transport, Executor& executor,
                             const Random& random)
    : options_(std::move(options)),
      executor_(executor),
      random_(random.Fork("group consumer")),
      consumer_(options_.consumer, transport, executor, random_),
      caller_({.bootstrap = options_.consumer.bootstrap}, options_.group, transport, executor,
              random_),
      membership_({.client_id = options_.client_id,
                   .instance_id = options_.instance_id,
                   .assignor = options_.assignor,
                   .session_timeout = options_.session_timeout,
                   .rebalance_timeout = options_.rebalance_timeout},
                  caller_, transport, executor, random_, *this) {}

GroupConsumer::~GroupConsumer() {
  executor_.Cancel(give_up_timer_);
  executor_.Cancel(idle_timer_);
  executor_.Cancel(auto_commit_timer_);
}

// --- What users call

void GroupConsumer::Subscribe(std::vector<std::string> topics) {
  if (state_ == State::kClosing || state_ == State::kClosed) return;
  topics_ = std::move(topics);
  refused_ = absl::OkStatus();
  if (leaving_) {
    rejoin_ = true;
    return;
  }
  const bool joins = state_ != State::kMember;
  state_ = State::kMember;
  membership_.Subscribe(topics_);
  if (!joins) return;
  if (!poll_) ArmIdleTimer();
  ArmAutoCommit();
}

void GroupConsumer::Poll(size_t max_records, MonotonicTime deadline,
                         absl::AnyInvocable<void(Consumer::PollResult)> done) {
  if (poll_ || state_ == State::kClosing || state_ == State::kClosed) {
    return done(MakeError(v1::INVALID_REQUEST,
                          poll_ ? "a Poll is under way; call it again when that one is done"
                                : "the consumer is closed; make another"));
  }
  if (!refused_.ok()) return done(refused_);
  executor_.Cancel(idle_timer_);
  lost_ = absl::OkStatus();
  CountAsConsumed();
  if (state_ == State::kLeft) Subscribe(topics_);
  poll_ = std::move(done);
  PollConsumer(max_records, deadline);
  Reconcile();
}

void GroupConsumer::PollConsumer(size_t max_records, MonotonicTime deadline) {
  consumer_.Poll(max_records, deadline,
                 lifetime_.Guard([this, max_records, deadline](Consumer::PollResult result) {
                   Polled(max_records, deadline, std::move(result));
                 }));
}

void GroupConsumer::Polled(size_t max_records, MonotonicTime deadline,
                           Consumer::PollResult result) {
  if (!poll_) return;
  if (ErrorCodeOf(result.status()) == v1::UNKNOWN_TOPIC_OR_PARTITION) {
    LOG(WARNING) << "group " << options_.group << ": " << Describe(result.status());
    PollConsumer(max_records, deadline);
    return Tell({GroupEvent::Kind::kTrouble, {}, "", result.status()});
  }
  if (result.ok()) {
    for (const PartitionRecords& part : *result) {
      const auto held = held_.find(part.partition);
      if (held == held_.end()) continue;
      held->second.outstanding = true;
      // Where the policy has begun: the next owner's policy is not to begin elsewhere.
      if (!held->second.consumed) held->second.consumed = part.records.front().offset;
    }
  }
  ArmIdleTimer();
  auto done = std::move(poll_);
  poll_ = nullptr;
  done(std::move(result));
}

void GroupConsumer::EndPoll(const absl::Status& why) {
  if (!poll_) return;
  auto done = std::move(poll_);
  poll_ = nullptr;
  done(why);
}

void GroupConsumer::Commit(Done done) {
  CountAsConsumed();
  if (!lost_.ok()) return done(std::exchange(lost_, absl::OkStatus()));
  CommitBy(executor_.clock().Now() + options_.commit_timeout, std::move(done));
  Reconcile();
}

void GroupConsumer::Close(Done done) {
  if (state_ == State::kClosing || state_ == State::kClosed) return done(absl::OkStatus());
  state_ = State::kClosing;
  executor_.Cancel(give_up_timer_);
  executor_.Cancel(idle_timer_);
  executor_.Cancel(auto_commit_timer_);
  consumer_.Assign({});
  EndPoll(MakeError(v1::INVALID_REQUEST, "the consumer was closed while it polled"));
  auto leave = [this, done = std::move(done)](const absl::Status& committed) mutable {
    auto left = [this, committed, done = std::move(done)](const absl::Status& status) mutable {
      state_ = State::kClosed;
      done(committed.ok() ? status : committed);
    };
    // It is leaving already, of idleness.
    if (leaving_) return left(absl::OkStatus());
    membership_.Leave(executor_.clock().Now() + kLeaveTimeout, lifetime_.Guard(std::move(left)));
  };
  // Without auto_commit nothing is committed here, but what is under way is waited for.
  if (!options_.auto_commit) {
    for (auto& [name, held] : held_) held.consumed.reset();
  }
  CommitBy(executor_.clock().Now() + options_.commit_timeout, lifetime_.Guard(std::move(leave)));
}

std::vector<TopicPartition> GroupConsumer::Owned() const {
  std::vector<TopicPartition> owned;
  for (const auto& [name, held] : held_) {
    if (!held.revoked) owned.push_back(name);
  }
  return owned;
}

std::optional<Offset> GroupConsumer::LastCommitted(const TopicPartition& partition) const {
  const auto held = held_.find(partition);
  return held == held_.end() ? std::nullopt : held->second.committed;
}

std::optional<Offset> GroupConsumer::Position(const TopicPartition& partition) const {
  return consumer_.Position(partition);
}

std::optional<Offset> GroupConsumer::HighWatermark(const TopicPartition& partition) const {
  return consumer_.HighWatermark(partition);
}

void GroupConsumer::ListOffsets(OffsetQuery query, MonotonicTime deadline,
                                OffsetLookup::Done done) {
  consumer_.ListOffsets(std::move(query), deadline, std::move(done));
}

void GroupConsumer::Partitions(const std::string& topic, MonotonicTime deadline,
                               Consumer::PartitionsDone done) {
  consumer_.Partitions(topic, deadline, std::move(done));
}

void GroupConsumer::Committed(MonotonicTime deadline,
                              absl::AnyInvocable<void(absl::StatusOr<Offsets>)> done) {
  v1::FetchOffsetsRequest request;
  request.set_group(options_.group);
  caller_.Call<v1::FetchOffsetsRequest, v1::FetchOffsetsResponse>(
      group_methods::kFetchOffsets, std::move(request), deadline, nullptr,
      [done = std::move(done)](absl::StatusOr<v1::FetchOffsetsResponse> response) mutable {
        if (!response.ok()) return done(response.status());
        Offsets offsets;
        for (const v1::CommittedOffset& one : response->offsets()) {
          if (!one.has_offset() || one.topic().empty()) continue;
          offsets[{one.topic(), PartitionIndex(one.partition())}] = Offset(one.offset());
        }
        done(std::move(offsets));
      });
}

// --- What counts

void GroupConsumer::CountAsConsumed() {
  for (auto& [name, held] : held_) {
    // Where the reset policy has set a position, that counts before the first record: after a
    // change of owner it is not set again, past records that came meanwhile.
    const auto position = held.revoked ? held.last : consumer_.Position(name);
    if (position) held.consumed = position;
    held.outstanding = false;
  }
}

// --- Membership

void GroupConsumer::OnLost(const absl::Status& why) { Drop(why); }

void GroupConsumer::OnRefused(const absl::Status& why) {
  refused_ = why;
  state_ = State::kIdle;
  if (!held_.empty()) Drop(why);
  EndPoll(why);
}

// Nothing is owned any more, nor can it be committed.
void GroupConsumer::Drop(const absl::Status& why) {
  GroupEvent event{GroupEvent::Kind::kLost, {}, "", why};
  for (const auto& [name, held] : held_) {
    event.partitions.push_back(name);
    if (held.outstanding || held.consumed != held.committed) lost_ = why;
  }
  ++life_;
  held_.clear();
  taking_up_.clear();
  target_.clear();
  giving_up_ = false;
  give_up_by_.reset();
  consumer_.Assign({});
  for (CommitWaiter& waiter : std::exchange(commit_waiters_, {})) waiter.done(why);
  Tell(std::move(event));
}

void GroupConsumer::ArmIdleTimer() {
  executor_.Cancel(idle_timer_);
  if (state_ != State::kMember) return;
  idle_timer_ = executor_.PostAfter(options_.max_poll_interval,
                                    lifetime_.Guard([this] { LeaveForIdleness(); }));
}

void GroupConsumer::LeaveForIdleness() {
  if (state_ != State::kMember || poll_) return;
  state_ = State::kLeft;
  leaving_ = true;
  executor_.Cancel(auto_commit_timer_);
  membership_.Leave(executor_.clock().Now() + kLeaveTimeout,
                    lifetime_.Guard([this](const absl::Status&) {
                      leaving_ = false;
                      if (std::exchange(rejoin_, false)) Subscribe(topics_);
                    }));
  Drop(MakeError(v1::UNKNOWN_MEMBER_ID,
                 absl::StrCat("Poll was not called for max_poll_interval, ",
                              options_.max_poll_interval.milliseconds(),
                              " ms, so the member left "
                              "group ",
                              options_.group,
                              " for others to go on; the next Poll joins "
                              "anew; poll for fewer records, or make the interval longer")));
}

void GroupConsumer::Tell(GroupEvent event) {
  std::string partitions;
  for (const TopicPartition& partition : event.partitions) {
    absl::StrAppend(&partitions, partitions.empty() ? "" : " ", ToString(partition));
  }
  const std::string where = absl::StrCat("group ", options_.group, ", member ", member_id(), ": ");
  switch (event.kind) {
    case GroupEvent::Kind::kAssigned:
      LOG(INFO) << where << "took up " << partitions << ": " << event.reason;
      break;
    case GroupEvent::Kind::kRevoked:
      LOG(INFO) << where << "gave up " << partitions << "; commit: " << Describe(event.status);
      break;
    case GroupEvent::Kind::kLost:
      LOG(WARNING) << "group " << options_.group << ": lost "
                   << (partitions.empty() ? "the membership" : partitions)
                   << " and joins anew. Why: " << Describe(event.status);
      break;
    case GroupEvent::Kind::kTrouble:
      LOG(WARNING) << where << Describe(event.status);
      break;
  }
  if (options_.on_event) options_.on_event(event);
}

}  // namespace conclave
