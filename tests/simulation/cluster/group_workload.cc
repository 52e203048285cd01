#include "tests/simulation/cluster/group_workload.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kGroup[] = "members";

}  // namespace

GroupWorkload::GroupWorkload(Cluster& cluster, const Random& random, Recorder& recorder,
                             std::string topic, int partitions, int members, Coverage& coverage)
    : cluster_(cluster),
      recorder_(recorder),
      random_(random),
      commits_itself_(random.Fork("user commits").Chance(0.5)),
      topic_(std::move(topic)),
      partitions_(partitions),
      coverage_(coverage),
      polled_(static_cast<size_t>(partitions)),
      committed_(static_cast<size_t>(partitions), -1) {
  for (int i = 0; i < members; ++i) {
    auto member = std::make_unique<Member>();
    member->number = i;
    member->host = std::make_unique<ClientHost>(cluster.scheduler(), cluster.plane().network(),
                                                "member-" + std::to_string(i));
    members_.push_back(std::move(member));
  }
}

GroupWorkload::~GroupWorkload() {
  for (const auto& member : members_) member->host->executor().Stop();
}

std::vector<std::string> GroupWorkload::names() const {
  std::vector<std::string> names;
  for (const auto& member : members_) names.push_back(member->host->name());
  return names;
}

void GroupWorkload::Start() {
  for (const auto& member : members_) StartMember(*member);
}

void GroupWorkload::StartMember(Member& member) {
  const uint64_t life = ++member.life;
  member.process = member.host->name() + "#" + std::to_string(life);
  member.heard = recorder_.Now();
  member.shares.assign(static_cast<size_t>(partitions_), {});
  for (Share& share : member.shares) share.free = member.heard;
  GroupConsumerOptions options;
  options.consumer.bootstrap = cluster_.plane().BrokerEndpoints();
  options.consumer.reset = ResetPolicy::kEarliest;
  options.consumer.on_event = [this](const ConsumerEvent& event) {
    // From the start, where nothing was committed yet, is no reset that anybody suffers.
    const bool began = event.kind == ConsumerEvent::Kind::kReset && event.from == Offset(-1);
    if (began || event.kind == ConsumerEvent::Kind::kTrouble) return;
    cluster_.Break("a member was told of a reset, a hole or a malformed batch: " +
                   Describe(event.status));
  };
  options.group = kGroup;
  options.auto_commit = !commits_itself_;
  options.auto_commit_interval = Duration::Milliseconds(500);
  options.on_event = [this, &member](const GroupEvent& event) { OnEvent(member, event); };
  member.consumer = std::make_unique<GroupConsumer>(
      options, member.host->transport(), member.host->executor(),
      random_.Fork("member " + std::to_string(member.number) + "#" + std::to_string(life)));
  member.host->executor().Post([this, &member] {
    member.consumer->Subscribe({topic_});
    Poll(member);
    ReadCommitted(member);
  });
}

void GroupWorkload::OnEvent(Member& member, const GroupEvent& event) {
  if (event.kind == GroupEvent::Kind::kTrouble) return;
  const bool assigned = event.kind == GroupEvent::Kind::kAssigned;
  for (const TopicPartition& partition : event.partitions) {
    if (assigned) {
      TakenUp(member, partition.partition.value());
      continue;
    }
    Share& share = member.shares[static_cast<size_t>(partition.partition.value())];
    share.owned = false;
    share.free = recorder_.Now();
  }
  if (event.kind == GroupEvent::Kind::kLost) {
    coverage_.Count("members lost their partitions");
    member.heard = recorder_.Now();
    return;
  }
  coverage_.Count(assigned ? "partitions assigned" : "partitions revoked");
  RecordAssignment(member);
}

void GroupWorkload::TakenUp(Member& member, int partition) {
  Share& share = member.shares[static_cast<size_t>(partition)];
  const auto committed = member.consumer->LastCommitted({topic_, PartitionIndex(partition)});
  const history::KeyIndex key = recorder_.KeyOf(topic_, partition);
  share.owned = true;
  ++share.takings;
  share.handed = share.committed = committed ? committed->value() : -1;
  recorder_.ReadCommitted(member.process, kGroup, key, share.committed, share.free);
  auto position = recorder_.Seen<history::Position>(member.process, recorder_.Now());
  position.key = key;
  position.group = recorder_.NameOf(kGroup);
  position.from = committed ? committed->value() : 0;
  recorder_.Add(std::move(position));
  // Where it begins counts as consumed, too.
  if (!committed) MayCommit(member, partition, 0);
}

void GroupWorkload::RecordAssignment(Member& member) {
  if (member.consumer->member_epoch() <= 0) return;
  auto assignment = recorder_.Seen<history::Assignment>(member.process, member.heard);
  assignment.group = recorder_.NameOf(kGroup);
  assignment.member = recorder_.NameOf(member.consumer->member_id());
  assignment.epoch = member.consumer->member_epoch();
  for (const TopicPartition& owned : member.consumer->Owned()) {
    assignment.keys.push_back(recorder_.KeyOf(topic_, owned.partition.value()));
  }
  recorder_.Add(std::move(assignment));
}

void GroupWorkload::Poll(Member& member) {
  const history::Time invoke = recorder_.Now();
  const MonotonicTime deadline = cluster_.scheduler().now() + Duration::Seconds(1);
  member.consumer->Poll(50, deadline, [this, &member, invoke](Consumer::PollResult result) {
    if (!result.ok()) {
      return cluster_.Break("a member's poll failed: " + Describe(result.status()));
    }
    for (const PartitionRecords& part : *result) Polled(member, part, invoke);
    // As a user that works on what it was given for a while.
    member.host->executor().PostAfter(Soon(20), [this, &member] { CommitOrPoll(member); });
  });
}

void GroupWorkload::Polled(Member& member, const PartitionRecords& part, history::Time invoke) {
  const auto partition = static_cast<size_t>(part.partition.partition.value());
  recorder_.Polled(member.process, part, invoke, kGroup);
  auto& polled = polled_[partition];
  uint64_t again = 0;
  for (const RecordView& record : part.records) {
    const auto at = static_cast<size_t>(record.offset.value());
    if (at >= polled.size()) polled.resize(at + 1);
    again += polled[at];
    polled[at] = true;
  }
  coverage_.Count("records handed out again", again);
  coverage_.Count("records handed out", part.records.size() - again);
  member.shares[partition].handed = part.next.value();
  if (!commits_itself_) MayCommit(member, part.partition.partition.value(), part.next.value());
}

size_t GroupWorkload::MayCommit(const Member& member, int partition, int64_t offset) {
  auto commit = recorder_.Begun<history::Commit>(member.process);
  commit.group = recorder_.NameOf(kGroup);
  commit.key = recorder_.KeyOf(topic_, partition);
  commit.offset = offset;
  return recorder_.Add(std::move(commit));
}

void GroupWorkload::CommitOrPoll(Member& member) {
  std::vector<Committing> commits;
  for (size_t i = 0; i < member.shares.size(); ++i) {
    const Share& share = member.shares[i];
    if (!commits_itself_ || !share.owned || share.handed == share.committed) continue;
    const size_t place = MayCommit(member, static_cast<int>(i), share.handed);
    commits.push_back({place, i, share.takings, share.handed});
  }
  if (commits.empty()) return Poll(member);
  member.consumer->Commit([this, &member, commits = std::move(commits)](
                              const absl::Status& status) { CommitDone(member, commits, status); });
}

void GroupWorkload::CommitDone(Member& member, const std::vector<Committing>& commits,
                               const absl::Status& status) {
  coverage_.Count(status.ok() ? "group commits acknowledged" : "group commits unknown");
  for (const Committing& one : commits) {
    Share& share = member.shares[one.partition];
    // What was given up meanwhile may not have been among it.
    if (!status.ok() || !share.owned || share.takings != one.takings) continue;
    history::Commit& commit = recorder_.At<history::Commit>(one.place);
    commit.outcome = history::Outcome::kOk;
    commit.complete = recorder_.Now();
    share.committed = one.offset;
  }
  member.host->executor().Post([this, &member] { Poll(member); });
}

void GroupWorkload::ReadCommitted(Member& member) {
  const std::vector<int64_t> at_least = committed_;
  const history::Time invoke = recorder_.Now();
  member.consumer->Committed(cluster_.scheduler().now() + Duration::Seconds(5),
                             [this, &member, at_least, invoke](auto offsets) {
                               if (offsets.ok()) Committed(member, at_least, *offsets, invoke);
                               member.host->executor().PostAfter(
                                   Soon(1'000), [this, &member] { ReadCommitted(member); });
                             });
}

void GroupWorkload::Committed(const Member& member, const std::vector<int64_t>& at_least,
                              const GroupConsumer::Offsets& offsets, history::Time invoke) {
  coverage_.Count("group offsets read");
  for (size_t i = 0; i < committed_.size(); ++i) {
    const auto it = offsets.find({topic_, PartitionIndex(static_cast<int32_t>(i))});
    const int64_t offset = it == offsets.end() ? -1 : it->second.value();
    recorder_.ReadCommitted(member.process, kGroup, recorder_.KeyOf(topic_, static_cast<int>(i)),
                            offset, invoke);
    const std::string where = " of partition " + std::to_string(i) + " for group " + kGroup;
    if (offset < at_least[i]) {
      return cluster_.Break("the committed offset" + where + " fell from " +
                            std::to_string(at_least[i]) + " to " + std::to_string(offset));
    }
    const auto& polled = polled_[i];
    const auto until = std::min(polled.begin() + std::max<int64_t>(offset, 0), polled.end());
    if (offset > static_cast<int64_t>(polled.size()) ||
        std::find(polled.begin(), until, false) != until) {
      return cluster_.Break("skipped: offset " + std::to_string(offset) + where +
                            " is committed, and not all below it was handed to a member");
    }
    committed_[i] = std::max(committed_[i], offset);
  }
}

void GroupWorkload::CrashMember() {
  Member& member = *members_[random_.Below(members_.size())];
  coverage_.Count("members crashed");
  cluster_.plane().Say("crash " + member.host->name());
  member.host->Crash(member.consumer);
  member.paused_until = MonotonicTime();
  StartMember(member);
}

void GroupWorkload::PauseMember(Duration how_long) {
  Member& member = *members_[random_.Below(members_.size())];
  coverage_.Count("members paused");
  cluster_.plane().Say("pause " + member.host->name());
  member.host->executor().Pause();
  member.paused_until = cluster_.scheduler().now() + how_long;
  cluster_.scheduler().After(how_long, [&member, life = member.life] {
    if (member.life == life) member.host->executor().Resume();
  });
}

bool GroupWorkload::IsStable() const {
  std::vector<TopicPartition> owned;
  for (const auto& member : members_) {
    // One that stands still does not know what became of it.
    if (cluster_.scheduler().now() < member->paused_until) return false;
    if (member->consumer->member_epoch() <= 0) return false;
    const auto its = member->consumer->Owned();
    owned.insert(owned.end(), its.begin(), its.end());
  }
  const std::set<TopicPartition> distinct(owned.begin(), owned.end());
  return owned.size() == static_cast<size_t>(partitions_) && distinct.size() == owned.size();
}

int64_t GroupWorkload::Committed() const {
  return std::accumulate(committed_.begin(), committed_.end(), int64_t{0});
}

bool GroupWorkload::IsAtEnd() {
  if (!IsStable()) return false;
  for (int i = 0; i < partitions_; ++i) {
    const auto end = cluster_.EndOf(topic_, i);
    if (!end) return false;
    if (*end > Offset(0) && committed_[static_cast<size_t>(i)] != end->value()) return false;
  }
  return true;
}

void GroupWorkload::RecordEnd() {
  for (const auto& member : members_) RecordAssignment(*member);
  auto epoch = recorder_.Seen<history::GroupEpoch>("members", recorder_.Now());
  epoch.group = recorder_.NameOf(kGroup);
  for (const auto& member : members_) {
    const int64_t since = member->consumer->member_epoch();
    epoch.members.emplace_back(recorder_.NameOf(member->consumer->member_id()), since);
    epoch.epoch = std::max(epoch.epoch, since);
  }
  for (int i = 0; i < partitions_; ++i) epoch.keys.push_back(recorder_.KeyOf(topic_, i));
  recorder_.Add(std::move(epoch));
}

}  // namespace conclave::cluster_sim
