#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "broker/group/group_coordinator.h"
#include "broker/group/rebalance.h"
#include "common/error/error.h"
#include "common/types/uuid.h"

namespace conclave::group {
namespace {

constexpr int32_t kJoins = 0;
constexpr int32_t kLeaves = -1;
constexpr int32_t kLeavesForNow = -2;

constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxRemovalsRemembered = 1'000;

absl::Status Invalid(std::string why) { return MakeError(v1::INVALID_REQUEST, std::move(why)); }

std::string MsText(Duration duration) { return absl::StrCat(duration.milliseconds(), " ms"); }

absl::Status CheckNames(const v1::MemberMessage& message) {
  for (const std::string* name :
       {&message.member_id(), &message.instance_id(), &message.client_id()}) {
    if (name->size() > kMaxNameBytes) {
      return Invalid(absl::StrCat("a member, instance or client id has at most ", kMaxNameBytes,
                                  " bytes, not ", name->size(), "; choose a shorter one"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Duration> Timeout(const char* name, int32_t asked_ms, Duration otherwise,
                                 Duration min, Duration max) {
  if (asked_ms == 0) return otherwise;
  const Duration asked = Duration::Milliseconds(asked_ms);
  if (min <= asked && asked <= max) return asked;
  return Invalid(absl::StrCat("a ", name, " of ", asked_ms, " ms was asked for; it is from ",
                              MsText(min), " to ", MsText(max), ", or 0 for ", MsText(otherwise)));
}

}  // namespace

void GroupCoordinator::MemberSays(StreamId stream, const v1::MemberMessage& message, Now now) {
  if (absl::Status serving = CheckServing(); !serving.ok()) {
    return Act(EndStream{stream, std::move(serving)});
  }
  if (ending_.contains(stream)) return;
  const auto bound = streams_.find(stream);
  if (bound == streams_.end()) return FirstMessage(stream, message, now);
  const MemberName name = bound->second;
  if (absl::Status taken = Continue(stream, name, message, now); !taken.ok()) {
    // The member may come back on another stream.
    StreamClosed(stream, now);
    Act(EndStream{stream, std::move(taken)});
  }
}

void GroupCoordinator::FirstMessage(StreamId stream, const v1::MemberMessage& message, Now now) {
  absl::Status taken = CheckGroupId(message.group());
  if (taken.ok()) taken = CheckNames(message);
  if (taken.ok()) {
    const MemberName name(message.group(), message.member_id());
    if (message.member_epoch() == kJoins) {
      taken = Join(stream, message, now);
    } else if (message.member_epoch() > 0) {
      taken = Resume(stream, message, now);
    } else if (message.member_epoch() < kLeavesForNow) {
      taken = Invalid(absl::StrCat("member epoch ", message.member_epoch(),
                                   " means nothing: 0 joins, -1 leaves, -2 leaves for now"));
    } else if (speculative_.FindMember(name.first, name.second) == nullptr) {
      taken = UnknownMember(name);
    } else {
      Leave(stream, name, message.member_epoch() == kLeavesForNow, now);
    }
  }
  if (!taken.ok()) Act(EndStream{stream, std::move(taken)});
}

// --- Joining and coming back

absl::Status GroupCoordinator::Join(StreamId stream, const v1::MemberMessage& message, Now now) {
  if (!message.has_subscription()) {
    return Invalid("a member that joins says what it subscribes to");
  }
  const auto description = Describe(message, nullptr);
  if (!description.ok()) return description.status();
  const std::string& group = message.group();
  const std::string id = message.member_id().empty() ? DrawMemberId() : message.member_id();
  const auto replaced = IdToReplace(group, message.instance_id(), id);
  if (!replaced.ok()) return replaced.status();
  const Member* before = speculative_.FindMember(group, replaced->empty() ? id : *replaced);
  const Group* found = speculative_.Find(group);
  if (before == nullptr && found != nullptr &&
      found->members.size() >= config_.max_members_per_group) {
    return MakeError(v1::GROUP_MAX_SIZE_REACHED,
                     absl::StrCat("group ", group, " has ", found->members.size(),
                                  " members, which is as many as it takes"));
  }

  Transaction transaction(speculative_, now.wall);
  const Member inherited = before == nullptr ? Member() : *before;
  if (!replaced->empty()) {
    RemoveMember(transaction, group, *replaced);
    RememberRemoval({group, *replaced},
                    absl::StrCat("instance ", message.instance_id(), " came back as member ", id));
    sessions_.erase({group, *replaced});
  }
  transaction.Put(RecordOfMember(group, id, *description));
  if (!replaced->empty()) transaction.Put(RecordOfTarget(group, id, inherited.target));
  const std::string reason =
      absl::StrCat("member ", id, before == nullptr ? " joined" : " joined anew");
  // What it holds from before, it holds from now: whatever its earlier life still commits is of
  // older epochs.
  Member fresh;
  fresh.epoch = transaction.Raise(group, reason);
  for (const PartitionId& partition : inherited.Assigned()) {
    fresh.held[partition] = {fresh.epoch, GroupEpoch(0)};
  }
  transaction.Put(RecordOfHolding(group, id, fresh));
  Rebalance(transaction, group, topics_, reason);
  Bind(stream, {group, id}, now);
  Finish(transaction, {Welcome{{group, id}, stream}}, now);
  return absl::OkStatus();
}

absl::Status GroupCoordinator::Resume(StreamId stream, const v1::MemberMessage& message, Now now) {
  const MemberName name(message.group(), message.member_id());
  const Member* member = speculative_.FindMember(name.first, name.second);
  if (member == nullptr) return UnknownMember(name);
  if (absl::Status good = CheckEpoch(name, message); !good.ok()) return good;
  if (GroupEpoch(message.member_epoch()) < member->epoch && !message.has_owned()) {
    return MakeError(
        v1::FENCED_MEMBER_EPOCH,
        absl::StrCat("member ", name.second, " of group ", name.first, " comes back at epoch ",
                     message.member_epoch(), ", is at epoch ", member->epoch.value(),
                     ", and does not say what it owns; say so, or join anew at epoch 0"));
  }
  if (message.has_subscription()) {
    const auto description = Describe(message, &*member->description);
    if (!description.ok()) return description.status();
  }
  Bind(stream, name, now);
  return TakeIn(name, message, now, {Welcome{name, stream}});
}

absl::Status GroupCoordinator::Continue(StreamId stream, const MemberName& name,
                                        const v1::MemberMessage& message, Now now) {
  if (absl::Status good = CheckNames(message); !good.ok()) return good;
  if ((!message.group().empty() && message.group() != name.first) ||
      (!message.member_id().empty() && message.member_id() != name.second)) {
    return Invalid(absl::StrCat("this stream is that of member ", name.second, " of group ",
                                name.first, "; open another for another"));
  }
  if (message.member_epoch() < 0) {
    Leave(stream, name, message.member_epoch() == kLeavesForNow, now);
    return absl::OkStatus();
  }
  if (absl::Status good = CheckEpoch(name, message); !good.ok()) return good;
  return TakeIn(name, message, now, {});
}

absl::Status GroupCoordinator::CheckEpoch(const MemberName& name,
                                          const v1::MemberMessage& message) const {
  const Member& member = *speculative_.FindMember(name.first, name.second);
  const GroupEpoch epoch(message.member_epoch());
  if (epoch > member.epoch) {
    return MakeError(v1::FENCED_MEMBER_EPOCH,
                     absl::StrCat("member ", name.second, " of group ", name.first, " is at epoch ",
                                  member.epoch.value(), " and speaks under ", epoch.value(),
                                  ", which it was never given; join anew at epoch 0"));
  }
  if (!message.has_owned()) return absl::OkStatus();
  for (const PartitionId& partition : OwnedOf(message.owned())) {
    const auto held = member.held.find(partition);
    if (held != member.held.end() && held->second.since <= epoch) continue;
    return MakeError(v1::FENCED_MEMBER_EPOCH,
                     absl::StrCat("member ", name.second, " of group ", name.first,
                                  " says that it owns partition ", ToString(partition),
                                  " under epoch ", epoch.value(),
                                  ", and was not given it by then; give everything up and join "
                                  "anew at epoch 0"));
  }
  return absl::OkStatus();
}

absl::Status GroupCoordinator::TakeIn(const MemberName& name, const v1::MemberMessage& message,
                                      Now now, std::vector<Deferred> then) {
  const auto& [group, id] = name;
  const MemberDescription before = *speculative_.FindMember(group, id)->description;
  MemberDescription after = before;
  if (message.has_subscription()) {
    auto description = Describe(message, &before);
    if (!description.ok()) return description.status();
    after = *std::move(description);
  }
  Session& session = sessions_.at(name);
  if (message.has_owned()) session.owned = OwnedOf(message.owned());
  session.ends_at = now.mono + after.session_timeout;
  Wake(session.ends_at);

  Transaction transaction(speculative_, now.wall);
  if (after != before) transaction.Put(RecordOfMember(group, id, after));
  if (session.owned &&
      GiveUp(transaction, group, id, GroupEpoch(message.member_epoch()), *session.owned)) {
    Reconcile(transaction, group);
  }
  if (after.topics != before.topics || after.assignor != before.assignor) {
    Rebalance(transaction, group, topics_, absl::StrCat("member ", id, " subscribed otherwise"));
  }
  WatchRevocations(name, now);
  const bool heartbeat = transaction.empty() && then.empty();
  if (heartbeat && session.told > GroupEpoch(0)) {
    v1::CoordinatorMessage alive;
    alive.set_member_id(id);
    alive.set_member_epoch(session.told.value());
    alive.set_heartbeat_interval_ms(
        static_cast<int32_t>(config_.heartbeat_interval.milliseconds()));
    Act(Send{*session.stream, std::move(alive)});
  }
  Finish(transaction, std::move(then), now);
  return absl::OkStatus();
}

absl::StatusOr<MemberDescription> GroupCoordinator::Describe(
    const v1::MemberMessage& message, const MemberDescription* before) const {
  const v1::MemberSubscription& asked = message.subscription();
  if (static_cast<size_t>(asked.topics_size()) > config_.max_items_per_request) {
    return Invalid(absl::StrCat("a member subscribes to at most ", config_.max_items_per_request,
                                " topics, not ", asked.topics_size()));
  }
  const auto assignor = ParseAssignor(asked.assignor());
  if (!assignor) {
    return MakeError(
        v1::UNSUPPORTED_ASSIGNOR,
        absl::StrCat("there is no assignor ", absl::CHexEscape(asked.assignor().substr(0, 64)),
                     "; there are uniform, range and sticky"));
  }
  const auto rebalance =
      Timeout("rebalance timeout", asked.rebalance_timeout_ms(), config_.rebalance_timeout,
              Duration::Milliseconds(1), config_.rebalance_timeout_max);
  if (!rebalance.ok()) return rebalance.status();
  const auto session =
      Timeout("session timeout", asked.session_timeout_ms(), config_.session_timeout,
              config_.session_timeout_min, config_.session_timeout_max);
  if (!session.ok()) return session.status();
  MemberDescription description;
  description.instance_id = before == nullptr ? message.instance_id() : before->instance_id;
  description.client_id = message.client_id();
  if (before != nullptr && message.client_id().empty()) description.client_id = before->client_id;
  description.topics = {asked.topics().begin(), asked.topics().end()};
  description.assignor = *assignor;
  description.rebalance_timeout = *rebalance;
  description.session_timeout = *session;
  return description;
}

// The member that was this instance so far, if its place can be taken: nobody speaks for it.
absl::StatusOr<std::string> GroupCoordinator::IdToReplace(const std::string& group,
                                                          const std::string& instance,
                                                          const std::string& member) const {
  const Group* found = speculative_.Find(group);
  if (instance.empty() || found == nullptr) return std::string();
  for (const auto& [id, other] : found->members) {
    if (id == member || other.description->instance_id != instance) continue;
    if (!sessions_.at({group, id}).stream) return id;
    return MakeError(
        v1::UNRELEASED_INSTANCE_ID,
        absl::StrCat("instance ", instance, " of group ", group, " is in use by member ", id,
                     "; stop that one first, or give this one another instance id"));
  }
  return std::string();
}

std::string GroupCoordinator::DrawMemberId() {
  const uint64_t high = random_.Next();
  return Uuid<struct MemberIdTag>::FromRandom(high, random_.Next()).ToString();
}

void GroupCoordinator::Bind(StreamId stream, const MemberName& name, Now now) {
  Session& session = sessions_[name];
  if (session.stream && *session.stream != stream) {
    streams_.erase(*session.stream);
    Act(EndStream{*session.stream,
                  MakeError(v1::FENCED_MEMBER_EPOCH,
                            absl::StrCat("member ", name.second, " of group ", name.first,
                                         " has come back on another stream"))});
  }
  // What it has to give up is not forgotten; all else is of the other stream.
  session.stream = stream;
  session.welcomed = false;
  session.grace_ends_at = MonotonicTime::Never();
  session.owned.reset();
  session.told = GroupEpoch(0);
  session.ends_at =
      now.mono + speculative_.FindMember(name.first, name.second)->description->session_timeout;
  Wake(session.ends_at);
  streams_[stream] = name;
}

// --- What a member is told

void GroupCoordinator::TellNow(const MemberName& name) {
  const auto session = sessions_.find(name);
  const Member* member = committed_.FindMember(name.first, name.second);
  if (session == sessions_.end() || member == nullptr) return;
  if (!session->second.stream || !session->second.welcomed) return;
  session->second.told = member->epoch;
  v1::CoordinatorMessage message;
  message.set_member_id(name.second);
  message.set_member_epoch(member->epoch.value());
  message.set_heartbeat_interval_ms(
      static_cast<int32_t>(config_.heartbeat_interval.milliseconds()));
  *message.mutable_assignment() = ToProto(member->Assigned());
  message.set_reason(committed_.Find(name.first)->reason);
  Act(Send{*session->second.stream, std::move(message)});
}

v1::OwnedPartitions GroupCoordinator::ToProto(const PartitionSet& partitions) const {
  v1::OwnedPartitions out;
  v1::GroupTopicPartitions* topic = nullptr;
  std::optional<TopicId> id;
  for (const PartitionId& partition : partitions) {
    if (id != partition.topic) {
      id = partition.topic;
      topic = out.add_topics();
      topic->set_topic_id(id->ToBytes());
      if (const TopicView::Named* named = topics_.Find(*id)) topic->set_topic(named->name);
    }
    topic->add_partitions(partition.index.value());
  }
  return out;
}

// A topic that is not known by its name alone cannot be held.
PartitionSet GroupCoordinator::OwnedOf(const v1::OwnedPartitions& owned) const {
  PartitionSet partitions;
  for (const v1::GroupTopicPartitions& topic : owned.topics()) {
    for (const int32_t number : topic.partitions()) {
      const auto partition = Locate(topic.topic(), topic.topic_id(), number);
      if (partition.ok()) partitions.insert(*partition);
    }
  }
  return partitions;
}

// --- Leaving

void GroupCoordinator::Leave(StreamId stream, const MemberName& name, bool will_be_back, Now now) {
  const Member& member = *speculative_.FindMember(name.first, name.second);
  if (will_be_back && member.description->IsStatic()) {
    // It keeps what it holds until its session ends, for who takes its place.
    StreamClosed(stream, now);
    return Act(EndStream{stream, absl::OkStatus()});
  }
  Session& session = sessions_.at(name);
  if (session.stream != stream) Bind(stream, name, now);
  RemoveMembers(name.first, {{name.second, ""}}, now);
}

void GroupCoordinator::StreamClosed(StreamId stream, Now now) {
  ending_.erase(stream);
  const auto bound = streams_.find(stream);
  if (bound == streams_.end()) return;
  const MemberName name = bound->second;
  streams_.erase(bound);
  Session& session = sessions_.at(name);
  session.stream.reset();
  session.welcomed = false;
  session.told = GroupEpoch(0);
  if (speculative_.FindMember(name.first, name.second)->description->IsStatic()) return;
  session.grace_ends_at = now.mono + config_.stream_grace;
  Wake(session.grace_ends_at);
}

// Without a reason: they leave.
void GroupCoordinator::RemoveMembers(const std::string& group,
                                     const std::map<std::string, std::string>& reasons, Now now) {
  Transaction transaction(speculative_, now.wall);
  std::vector<Deferred> then;
  std::string all;
  for (const auto& [id, given] : reasons) {
    const std::string reason = given.empty() ? "it left" : given;
    RemoveMember(transaction, group, id);
    RememberRemoval({group, id}, reason);
    absl::StrAppend(&all, all.empty() ? "" : "; ", "member ", id, " is out: ", reason);
    const auto session = sessions_.find({group, id});
    if (session == sessions_.end()) continue;
    if (session->second.stream) {
      streams_.erase(*session->second.stream);
      ending_.insert(*session->second.stream);
      v1::CoordinatorMessage last;
      last.set_member_id(id);
      last.set_member_epoch(kLeaves);
      last.set_reason(reason);
      absl::Status status = given.empty() ? absl::OkStatus() : UnknownMember({group, id});
      if (!status.ok()) *last.mutable_error() = ErrorFromStatus(status);
      then.push_back(Farewell{*session->second.stream, std::move(last), std::move(status)});
    }
    sessions_.erase(session);
  }
  Act(Note{absl::StrCat("group ", group, ": ", all)});
  Rebalance(transaction, group, topics_, all);
  Finish(transaction, std::move(then), now);
}

void GroupCoordinator::EndSessions(Now now) {
  std::map<std::string, std::map<std::string, std::string>> ended;
  for (const auto& [name, session] : sessions_) {
    const MemberDescription& member =
        *speculative_.FindMember(name.first, name.second)->description;
    std::string& reason = ended[name.first][name.second];
    if (session.grace_ends_at <= now.mono) {
      reason =
          absl::StrCat("its stream broke and was not back within ", MsText(config_.stream_grace));
    } else if (session.rebalance_ends_at <= now.mono) {
      reason = absl::StrCat("it did not give up its partitions within its rebalance timeout of ",
                            MsText(member.rebalance_timeout));
    } else if (session.ends_at <= now.mono) {
      reason = absl::StrCat("nothing was heard from it for its session timeout of ",
                            MsText(member.session_timeout));
    } else {
      ended[name.first].erase(name.second);
      Wake(std::min({session.grace_ends_at, session.rebalance_ends_at, session.ends_at}));
    }
  }
  for (const auto& [group, reasons] : ended) {
    if (!reasons.empty()) RemoveMembers(group, reasons, now);
  }
}

void GroupCoordinator::WatchRevocations(const MemberName& name, Now now) {
  const auto session = sessions_.find(name);
  const Member* member = speculative_.FindMember(name.first, name.second);
  if (session == sessions_.end() || member == nullptr) return;
  const bool revoking = std::any_of(member->held.begin(), member->held.end(),
                                    [](const auto& holding) { return holding.second.IsRevoked(); });
  MonotonicTime& ends_at = session->second.rebalance_ends_at;
  if (!revoking) {
    ends_at = MonotonicTime::Never();
  } else if (ends_at == MonotonicTime::Never()) {
    ends_at = now.mono + member->description->rebalance_timeout;
    Wake(ends_at);
  }
}

absl::Status GroupCoordinator::UnknownMember(const MemberName& name) const {
  const auto removal = removals_.find(name);
  return MakeError(
      v1::UNKNOWN_MEMBER_ID,
      absl::StrCat("group ", name.first, " has no member ", name.second,
                   removal == removals_.end() ? "" : absl::StrCat(": ", removal->second),
                   "; join at epoch 0, and take up nothing that was owned before"));
}

void GroupCoordinator::RememberRemoval(const MemberName& name, const std::string& reason) {
  if (removals_.insert_or_assign(name, reason).second) removals_in_order_.push_back(name);
  if (removals_in_order_.size() <= kMaxRemovalsRemembered) return;
  removals_.erase(removals_in_order_.front());
  removals_in_order_.pop_front();
}

}  // namespace conclave::group
