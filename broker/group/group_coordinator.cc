#include "broker/group/group_coordinator.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/group/rebalance.h"
#include "common/error/error.h"

namespace conclave::group {
namespace {

constexpr Duration kExpiryCheckInterval = Duration::Seconds(60);
constexpr Duration kSweepAgainAfter = Duration::Seconds(1);
constexpr size_t kMaxGroupIdBytes = 255;

std::string Hours(Duration duration) {
  return absl::StrCat(duration.milliseconds() / 3'600'000, " h");
}

bool Subscribes(const Group& group, const std::set<std::string>& topics) {
  for (const auto& [id, member] : group.members) {
    for (const std::string& topic : topics) {
      if (member.description->topics.contains(topic)) return true;
    }
  }
  return false;
}

// At most a few of them: reasons are for people.
std::string Names(const std::set<std::string>& names) {
  std::string text;
  int count = 0;
  for (const std::string& name : names) {
    if (++count > 3) return absl::StrCat(text, " and ", names.size() - 3, " more");
    absl::StrAppend(&text, count == 1 ? "" : ", ", name);
  }
  return text;
}

}  // namespace

GroupCoordinator::GroupCoordinator(CoordinatorConfig config, Random random)
    : config_(config), random_(random) {}

// --- Loading

absl::Status GroupCoordinator::Replay(std::string_view key, std::optional<std::string_view> value) {
  CHECK(state_ == State::kLoading && !epoch_start_);
  return committed_.Apply(key, value);
}

bool GroupCoordinator::IsKnownKey(std::string_view key) { return ParseRecordKey(key).ok(); }

void GroupCoordinator::LoadFailed(const absl::Status& why) {
  CHECK(state_ == State::kLoading && !why.ok());
  state_ = State::kFailed;
  load_failure_ = why;
}

void GroupCoordinator::ReplayedTo(Offset epoch_start, Now now) {
  CHECK(state_ == State::kLoading && !epoch_start_);
  epoch_start_ = epoch_start;
  if (high_watermark_ >= epoch_start) Activate(now);
}

void GroupCoordinator::Activate(Now now) {
  state_ = State::kServing;
  committed_.Settle();
  speculative_ = committed_;
  // Nobody can have spoken to this coordinator before: each has a full session.
  SyncSessions(now, absl::OkStatus());
  for (const auto& [name, session] : sessions_) WatchRevocations(name, now);
  Sweep(now);
  ExpireGroups(now);
}

// Brings every group in line with what is known of topics, where commands have not: after loading,
// and after an append failed.
void GroupCoordinator::Sweep(Now now) {
  next_sweep_ = MonotonicTime::Never();
  std::vector<std::string> groups;
  for (const auto& [name, group] : speculative_.groups()) groups.push_back(name);
  for (const std::string& group : groups) SweepGroup(group, now);
}

void GroupCoordinator::SweepGroup(const std::string& group, Now now) {
  Transaction transaction(speculative_, now.wall);
  std::vector<PartitionId> gone;
  for (const auto& [partition, offset] : speculative_.Find(group)->offsets) {
    if (deleted_topics_.Contains(partition.topic)) gone.push_back(partition);
  }
  for (const PartitionId& partition : gone) transaction.Put(EndOfOffset(group, partition));
  if (!gone.empty()) {
    Act(Note{absl::StrCat("group ", group, ": dropped ", gone.size(),
                          " committed offsets of deleted topics")});
  }
  const Group* now_group = speculative_.Find(group);
  if (now_group != nullptr && now_group->members.empty()) {
    if (!now_group->empty_since) transaction.Raise(group);
  } else if (now_group != nullptr) {
    if (TargetsAreOutdated(speculative_, group, topics_)) {
      Rebalance(transaction, group, topics_, "the topics it reads have changed");
    } else {
      Reconcile(transaction, group);
    }
  }
  Finish(transaction, {}, now);
}

// --- The log

void GroupCoordinator::Finish(Transaction& transaction, std::vector<Deferred> then, Now now) {
  for (const auto& [group, members] : transaction.changed()) {
    for (const std::string& member : members) {
      const MemberName name(group, member);
      WatchRevocations(name, now);
      const bool is_told = std::any_of(then.begin(), then.end(), [&](const Deferred& deferred) {
        const auto* tell = std::get_if<Tell>(&deferred);
        const auto* welcome = std::get_if<Welcome>(&deferred);
        return (tell != nullptr && tell->member == name) ||
               (welcome != nullptr && welcome->member == name);
      });
      if (!is_told) then.push_back(Tell{name});
    }
  }
  if (!transaction.empty()) {
    const AppendTicket ticket = ++last_ticket_;
    std::vector<GroupRecord> records = transaction.TakeRecords();
    Act(Append{ticket, records});
    in_flight_.push_back({ticket, std::nullopt, std::move(records), std::move(then)});
    return;
  }
  for (Deferred& deferred : then) Defer(std::move(deferred));
}

// It may rest on what is not committed yet.
void GroupCoordinator::Defer(Deferred deferred) {
  if (in_flight_.empty()) return Do(std::move(deferred));
  in_flight_.back().then.push_back(std::move(deferred));
}

void GroupCoordinator::Do(Deferred deferred) {
  if (auto* reply = std::get_if<Reply>(&deferred)) return Answer(std::move(*reply));
  if (const auto* tell = std::get_if<Tell>(&deferred)) return TellNow(tell->member);
  if (const auto* welcome = std::get_if<Welcome>(&deferred)) {
    const auto session = sessions_.find(welcome->member);
    if (session == sessions_.end() || session->second.stream != welcome->stream) return;
    session->second.welcomed = true;
    return TellNow(welcome->member);
  }
  auto& farewell = std::get<Farewell>(deferred);
  if (ending_.erase(farewell.stream) == 0) return;
  if (farewell.message) Act(Send{farewell.stream, *std::move(farewell.message)});
  Act(EndStream{farewell.stream, std::move(farewell.status)});
}

void GroupCoordinator::Fail(Deferred deferred, const absl::Status& why, Now now) {
  if (const auto* reply = std::get_if<Reply>(&deferred)) return Refuse(reply->request, why);
  if (const auto* welcome = std::get_if<Welcome>(&deferred)) {
    const auto bound = streams_.find(welcome->stream);
    if (bound == streams_.end()) return;
    StreamClosed(welcome->stream, now);
    return Act(EndStream{welcome->stream, why});
  }
  const auto* farewell = std::get_if<Farewell>(&deferred);
  if (farewell != nullptr && ending_.erase(farewell->stream) > 0) {
    Act(EndStream{farewell->stream, why});
  }
}

void GroupCoordinator::Appended(AppendTicket ticket, Offset end) {
  for (InFlight& batch : in_flight_) {
    if (batch.ticket == ticket) batch.end = end;
  }
}

void GroupCoordinator::AppendFailed(AppendTicket ticket, const absl::Status& why, Now now) {
  std::vector<Deferred> failed;
  while (!in_flight_.empty() && in_flight_.back().ticket >= ticket) {
    auto& then = in_flight_.back().then;
    failed.insert(failed.begin(), std::make_move_iterator(then.begin()),
                  std::make_move_iterator(then.end()));
    in_flight_.pop_back();
  }
  std::erase_if(actions_, [&](const Action& action) {
    const auto* append = std::get_if<Append>(&action);
    return append != nullptr && append->ticket >= ticket;
  });
  speculative_ = committed_;
  for (const InFlight& batch : in_flight_) {
    for (const GroupRecord& record : batch.records) speculative_.Apply(record);
  }
  SyncSessions(now, why);
  for (Deferred& deferred : failed) Fail(std::move(deferred), why, now);
  next_sweep_ = now.mono + kSweepAgainAfter;
  Wake(next_sweep_);
}

// Sessions are of those who are members, and the other way round.
void GroupCoordinator::SyncSessions(Now now, const absl::Status& why) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const auto& [name, session] = *it;
    if (speculative_.FindMember(name.first, name.second) != nullptr) {
      ++it;
      continue;
    }
    if (session.stream) {
      streams_.erase(*session.stream);
      Act(EndStream{*session.stream, why});
    }
    it = sessions_.erase(it);
  }
  for (const auto& [group_name, group] : speculative_.groups()) {
    for (const auto& [id, member] : group.members) {
      Session session;
      session.ends_at = now.mono + member.description->session_timeout;
      if (sessions_.emplace(MemberName(group_name, id), session).second) Wake(session.ends_at);
    }
  }
}

void GroupCoordinator::HighWatermark(Offset high_watermark, Now now) {
  high_watermark_ = std::max(high_watermark_, high_watermark);
  if (state_ == State::kLoading && epoch_start_ && high_watermark_ >= *epoch_start_) Activate(now);
  while (!in_flight_.empty() && in_flight_.front().end &&
         *in_flight_.front().end <= high_watermark_) {
    InFlight batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const GroupRecord& record : batch.records) committed_.Apply(record);
    for (Deferred& deferred : batch.then) Do(std::move(deferred));
  }
}

void GroupCoordinator::OutcomeUnknown(const absl::Status& why) {
  for (const InFlight& batch : in_flight_) {
    for (const Deferred& deferred : batch.then) {
      if (const auto* reply = std::get_if<Reply>(&deferred)) Refuse(reply->request, why);
    }
  }
}

void GroupCoordinator::Resign(const v1::NodeHint& hint) {
  if (state_ == State::kResigned) return;
  state_ = State::kResigned;
  hint_ = hint;
  const absl::Status moved = CheckServing();
  const absl::Status unknown = MakeError(
      v1::LEADER_CHANGED_AFTER_APPEND,
      "the group's coordinator changed before this was committed: it is kept or lost; find the "
      "coordinator again and repeat it",
      hint);
  for (const auto& [stream, name] : streams_) Act(EndStream{stream, moved});
  streams_.clear();
  sessions_.clear();
  for (InFlight& batch : std::exchange(in_flight_, {})) {
    for (Deferred& deferred : batch.then) {
      Fail(std::move(deferred), batch.end ? unknown : moved, Now());
    }
  }
  // Reads, and whatever else waits.
  while (!requests_.empty()) Refuse(requests_.begin()->first, moved);
  std::erase_if(actions_, [](const Action& a) { return std::holds_alternative<Append>(a); });
  round_reads_.clear();
  next_reads_.clear();
  round_under_way_ = false;
  committed_ = GroupImage();
  speculative_ = GroupImage();
  next_deadline_ = MonotonicTime::Never();
}

absl::Status GroupCoordinator::CheckServing() const {
  switch (state_) {
    case State::kServing:
      return absl::OkStatus();
    case State::kLoading:
      return MakeError(v1::COORDINATOR_LOAD_IN_PROGRESS,
                       absl::StrCat("broker ", config_.self.value(),
                                    " is reading the group's state; try again in a moment"));
    case State::kFailed:
      return load_failure_;
    case State::kResigned:
      break;
  }
  return MakeError(v1::NOT_COORDINATOR,
                   absl::StrCat("broker ", config_.self.value(),
                                " does not coordinate this group any more; find its coordinator "
                                "again"),
                   hint_);
}

absl::Status GroupCoordinator::CheckGroupId(const std::string& group) const {
  if (!group.empty() && group.size() <= kMaxGroupIdBytes) return absl::OkStatus();
  return MakeError(v1::INVALID_GROUP_ID,
                   absl::StrCat("a group id has 1 to ", kMaxGroupIdBytes, " bytes, not ",
                                group.size(), "; choose another name for the group"));
}

// --- Metadata

void GroupCoordinator::TopicsChanged(const std::vector<TopicChange>& changes,
                                     const std::vector<TopicId>& deleted, Now now) {
  std::set<std::string> changed;
  bool any_deleted = false;
  const auto note_deleted = [&](TopicId id) {
    if (!deleted_topics_.Contains(id)) deleted_topics_.Add(id);
    any_deleted = true;
  };
  for (const TopicChange& change : changes) {
    const TopicInfo* before = topics_.Find(change.name);
    if (before == nullptr ? !change.topic : change.topic && *before == *change.topic) continue;
    if (before != nullptr && (!change.topic || before->id != change.topic->id)) {
      note_deleted(before->id);
    }
    topics_.Set(change.name, change.topic);
    changed.insert(change.name);
  }
  for (const TopicId& id : deleted) note_deleted(id);
  if (state_ != State::kServing) return;
  std::vector<std::string> groups;
  for (const auto& [name, group] : speculative_.groups()) groups.push_back(name);
  for (const std::string& group : groups) {
    if (Subscribes(*speculative_.Find(group), changed)) {
      Transaction transaction(speculative_, now.wall);
      Rebalance(transaction, group, topics_,
                absl::StrCat("the partitions of ", Names(changed), " have changed"));
      Finish(transaction, {}, now);
    }
    if (any_deleted) SweepGroup(group, now);
  }
}

// --- Time

void GroupCoordinator::Tick(Now now) {
  if (state_ != State::kServing) return;
  next_deadline_ = MonotonicTime::Never();
  for (auto it = requests_.begin(); it != requests_.end();) {
    const auto [request, until] = *it++;
    if (until > now.mono) {
      Wake(until);
      continue;
    }
    Refuse(request, MakeError(v1::REQUEST_TIMED_OUT,
                              "the replicas of the group's log did not answer in time: what was "
                              "asked may still happen; repeat it"));
  }
  EndSessions(now);
  if (next_sweep_ <= now.mono) Sweep(now);
  if (next_expiry_check_ <= now.mono) ExpireGroups(now);
  Wake(next_sweep_);
  Wake(next_expiry_check_);
}

void GroupCoordinator::ExpireGroups(Now now) {
  next_expiry_check_ = now.mono + kExpiryCheckInterval;
  Wake(next_expiry_check_);
  std::vector<std::string> expired;
  for (const auto& [name, group] : speculative_.groups()) {
    if (!group.members.empty() || !group.empty_since) continue;
    const int64_t empty_ms = now.wall.unix_millis() - group.empty_since->unix_millis();
    if (empty_ms >= config_.offsets_retention.milliseconds()) expired.push_back(name);
  }
  for (const std::string& name : expired) {
    Transaction transaction(speculative_, now.wall);
    std::vector<PartitionId> partitions;
    for (const auto& [id, offset] : speculative_.Find(name)->offsets) partitions.push_back(id);
    for (const PartitionId& id : partitions) transaction.Put(EndOfOffset(name, id));
    transaction.Put(EndOfGroup(name));
    Act(Note{absl::StrCat("group ", name, " has been empty for ", Hours(config_.offsets_retention),
                          ": forgot it with ", partitions.size(), " committed offsets")});
    Finish(transaction, {}, now);
  }
}

}  // namespace conclave::group
