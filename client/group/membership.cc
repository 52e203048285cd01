#include "client/group/membership.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/rpc/group_methods.h"
#include "common/types/uuid.h"

namespace conclave {
namespace {

constexpr int32_t kLeaves = -1;
constexpr int32_t kLeavesForNow = -2;

bool IsLoss(const absl::Status& status) {
  const v1::ErrorCode code = ErrorCodeOf(status);
  return code == v1::UNKNOWN_MEMBER_ID || code == v1::FENCED_MEMBER_EPOCH;
}

// It would be refused again. Of other errors nobody knows.
bool IsFinal(const absl::Status& status) {
  return !IsRetriable(status) && HasNoEffect(ErrorCodeOf(status));
}

}  // namespace

Membership::Membership(Options options, CoordinatorCaller& caller, Transport& transport,
                       Executor& executor, const Random& random, Owner& owner)
    : options_(std::move(options)),
      caller_(caller),
      transport_(transport),
      executor_(executor),
      random_(random.Fork("membership")),
      owner_(owner) {
  BeginLife();
}

Membership::~Membership() {
  executor_.Cancel(beat_timer_);
  executor_.Cancel(connect_timer_);
  executor_.Cancel(leave_timer_);
}

void Membership::BeginLife() {
  const uint64_t high = random_.Next();
  member_id_ = Uuid<struct MemberIdTag>::FromRandom(high, random_.Next()).ToString();
  member_epoch_ = 0;
  introduced_ = false;
  owned_.clear();
}

// --- What the owner asks for

void Membership::Subscribe(std::vector<std::string> topics) {
  CHECK(state_ != State::kLeaving);
  topics_ = std::move(topics);
  if (state_ == State::kOut) {
    state_ = State::kMember;
    return Connect();
  }
  if (stream_ == nullptr) return;
  v1::MemberMessage message;
  message.set_member_epoch(member_epoch_);
  Fill(*message.mutable_subscription());
  if (welcomed_) return stream_->Send(message);
  // A stream that is not welcomed yet has no epoch to speak under.
  stream_.reset();
  ConnectSoon();
}

void Membership::SayOwned(const GroupPartitions& owned) {
  owned_ = owned;
  if (stream_ == nullptr || !welcomed_ || state_ != State::kMember) return;
  v1::MemberMessage message;
  message.set_member_epoch(member_epoch_);
  Fill(*message.mutable_owned());
  stream_->Send(message);
}

void Membership::Lost(const absl::Status& why) {
  if (state_ != State::kMember) return;
  VLOG(1) << "group " << caller_.group() << ": " << Describe(why);
  stream_.reset();
  BeginLife();
  ConnectSoon();
  owner_.OnLost(why);
}

void Membership::Leave(MonotonicTime deadline, absl::AnyInvocable<void(absl::Status)> done) {
  CHECK(state_ != State::kLeaving);
  state_ = State::kLeaving;
  left_ = std::move(done);
  if (!introduced_) {
    executor_.Post(lifetime_.Guard([this] { FinishLeaving(absl::OkStatus()); }));
    return;
  }
  leave_timer_ = executor_.PostAt(deadline, lifetime_.Guard([this] {
    FinishLeaving(MakeError(
        v1::REQUEST_TIMED_OUT,
        absl::StrCat("the coordinator of group ", caller_.group(),
                     " was not reached to be told that member ", member_id_,
                     " leaves; its partitions are given away when its session times out")));
  }));
  if (stream_ == nullptr) return Connect();
  v1::MemberMessage message;
  message.set_member_epoch(LeavingEpoch());
  stream_->Send(message);
}

void Membership::FinishLeaving(absl::Status status) {
  if (state_ != State::kLeaving) return;
  state_ = State::kOut;
  stream_.reset();
  executor_.Cancel(leave_timer_);
  executor_.Cancel(beat_timer_);
  executor_.Cancel(connect_timer_);
  BeginLife();
  auto done = std::move(left_);
  done(std::move(status));
}

int32_t Membership::LeavingEpoch() const {
  return options_.instance_id.empty() ? kLeaves : kLeavesForNow;
}

// --- The stream

void Membership::ConnectSoon() {
  executor_.Cancel(connect_timer_);
  connect_timer_ =
      executor_.PostAfter(pause_.Next(random_), lifetime_.Guard([this] { Connect(); }));
}

void Membership::Connect() {
  if (stream_ != nullptr || state_ == State::kOut || std::exchange(finding_, true)) return;
  caller_.Find(MonotonicTime::Never(),
               lifetime_.Guard([this](absl::StatusOr<std::string> endpoint) {
                 finding_ = false;
                 if (state_ == State::kOut || stream_ != nullptr) return;
                 if (!endpoint.ok()) return Ended(endpoint.status());
                 Open(*endpoint);
               }));
}

void Membership::Open(const std::string& endpoint) {
  executor_.Cancel(connect_timer_);
  endpoint_ = endpoint;
  welcomed_ = false;
  heard_at_ = executor_.clock().Now();
  stream_ = std::make_unique<Stream>(transport_, endpoint, group_methods::kMember, CallOptions{},
                                     executor_,
                                     static_cast<MessageHandler<v1::CoordinatorMessage>*>(this));
  v1::MemberMessage message;
  message.set_group(caller_.group());
  message.set_member_id(member_id_);
  message.set_instance_id(options_.instance_id);
  message.set_client_id(options_.client_id);
  if (state_ == State::kLeaving) {
    message.set_member_epoch(LeavingEpoch());
  } else {
    message.set_member_epoch(member_epoch_);
    Fill(*message.mutable_subscription());
    if (member_epoch_ > 0) Fill(*message.mutable_owned());
    introduced_ = true;
  }
  stream_->Send(message);
  ArmBeat();
}

void Membership::OnMessage(v1::CoordinatorMessage message) {
  heard_at_ = executor_.clock().Now();
  // A farewell: the end of the stream, which follows, says why.
  if (message.member_epoch() < 0 || state_ != State::kMember) return;
  pause_.Reset();
  member_epoch_ = message.member_epoch();
  if (message.heartbeat_interval_ms() > 0) {
    beat_interval_ = Duration::Milliseconds(message.heartbeat_interval_ms());
  }
  if (!std::exchange(welcomed_, true)) ArmBeat();
  if (!message.has_assignment()) return;
  GroupPartitions partitions;
  for (const v1::GroupTopicPartitions& topic : message.assignment().topics()) {
    const auto id = TopicId::FromBytes(topic.topic_id());
    // A topic without a name is deleted, and about to be taken away.
    if (!id || topic.topic().empty()) continue;
    for (const int32_t partition : topic.partitions()) {
      partitions[{topic.topic(), PartitionIndex(partition)}] = *id;
    }
  }
  owner_.OnAssigned(std::move(partitions), message.reason());
}

void Membership::OnClosed(absl::Status status) {
  stream_.reset();
  Ended(status);
}

void Membership::Ended(const absl::Status& status) {
  VLOG(1) << "member stream of group " << caller_.group() << " at " << endpoint_ << ": "
          << Describe(status);
  executor_.Cancel(beat_timer_);
  if (state_ == State::kLeaving) {
    if (status.ok() || IsLoss(status)) return FinishLeaving(absl::OkStatus());
    if (IsFinal(status)) return FinishLeaving(status);
  } else if (IsLoss(status)) {
    return Lost(status);
  } else if (IsFinal(status)) {
    state_ = State::kOut;
    BeginLife();
    return owner_.OnRefused(status);
  }
  caller_.Failed(endpoint_,
                 status.ok() ? MakeError(v1::NETWORK_EXCEPTION, "the stream was ended") : status);
  ConnectSoon();
}

void Membership::ArmBeat() {
  executor_.Cancel(beat_timer_);
  beat_timer_ = executor_.PostAfter(beat_interval_, lifetime_.Guard([this] { Beat(); }));
}

// A heartbeat is answered: where nothing comes for long, the coordinator is looked for elsewhere
// before the session is over.
void Membership::Beat() {
  if (stream_ == nullptr) return;
  const Duration silence = executor_.clock().Now() - heard_at_;
  if (silence >= std::max(options_.session_timeout / 2, beat_interval_ * 3)) {
    stream_.reset();
    return Ended(MakeError(v1::NETWORK_EXCEPTION, absl::StrCat(endpoint_, " has been silent for ",
                                                               silence.milliseconds(), " ms")));
  }
  if (welcomed_ && state_ == State::kMember) {
    v1::MemberMessage message;
    message.set_member_epoch(member_epoch_);
    stream_->Send(message);
  }
  ArmBeat();
}

void Membership::Fill(v1::MemberSubscription& subscription) const {
  for (const std::string& topic : topics_) subscription.add_topics(topic);
  subscription.set_assignor(options_.assignor);
  subscription.set_session_timeout_ms(
      static_cast<int32_t>(options_.session_timeout.milliseconds()));
  subscription.set_rebalance_timeout_ms(
      static_cast<int32_t>(options_.rebalance_timeout.milliseconds()));
}

void Membership::Fill(v1::OwnedPartitions& owned) const {
  for (const auto& [partition, id] : owned_) {
    v1::GroupTopicPartitions* topic =
        owned.topics_size() == 0 ? nullptr : owned.mutable_topics(owned.topics_size() - 1);
    if (topic == nullptr || topic->topic_id() != id.ToBytes()) {
      topic = owned.add_topics();
      topic->set_topic(partition.topic);
      topic->set_topic_id(id.ToBytes());
    }
    topic->add_partitions(partition.partition.value());
  }
}

}  // namespace conclave
