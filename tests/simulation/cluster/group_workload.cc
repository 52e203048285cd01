#include "tests/simulation/cluster/group_workload.h"

#include <algorithm>
#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kGroup[] = "members";

}  // namespace

GroupWorkload::GroupWorkload(Cluster& cluster, const Random& random, std::string topic,
                             int partitions, int members, Coverage& coverage)
    : cluster_(cluster),
      random_(random),
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
  options.auto_commit_interval = Duration::Milliseconds(500);
  options.on_event = [this](const GroupEvent& event) {
    if (event.kind == GroupEvent::Kind::kAssigned) coverage_.Count("partitions assigned");
    if (event.kind == GroupEvent::Kind::kRevoked) coverage_.Count("partitions revoked");
    if (event.kind == GroupEvent::Kind::kLost) coverage_.Count("members lost their partitions");
  };
  member.consumer = std::make_unique<GroupConsumer>(
      options, member.host->transport(), member.host->executor(),
      random_.Fork("member " + std::to_string(member.number) + "#" + std::to_string(life)));
  member.host->executor().Post([this, &member] {
    member.consumer->Subscribe({topic_});
    Poll(member);
    ReadCommitted(member);
  });
}

void GroupWorkload::Poll(Member& member) {
  const MonotonicTime deadline = cluster_.scheduler().now() + Duration::Seconds(1);
  member.consumer->Poll(50, deadline, [this, &member](Consumer::PollResult result) {
    if (!result.ok()) {
      return cluster_.Break("a member's poll failed: " + Describe(result.status()));
    }
    for (const PartitionRecords& part : *result) {
      auto& polled = polled_[static_cast<size_t>(part.partition.partition.value())];
      for (const RecordView& record : part.records) {
        const auto at = static_cast<size_t>(record.offset.value());
        if (at >= polled.size()) polled.resize(at + 1);
        coverage_.Count(polled[at] ? "records handed out again" : "records handed out");
        polled[at] = true;
      }
    }
    // As a user that works on what it was given for a while.
    member.host->executor().PostAfter(Soon(20), [this, &member] { Poll(member); });
  });
}

void GroupWorkload::ReadCommitted(Member& member) {
  const std::vector<int64_t> at_least = committed_;
  member.consumer->Committed(
      cluster_.scheduler().now() + Duration::Seconds(5), [this, &member, at_least](auto offsets) {
        if (offsets.ok()) Committed(at_least, *offsets);
        member.host->executor().PostAfter(Soon(1'000), [this, &member] { ReadCommitted(member); });
      });
}

void GroupWorkload::Committed(const std::vector<int64_t>& at_least,
                              const GroupConsumer::Offsets& offsets) {
  coverage_.Count("group offsets read");
  for (size_t i = 0; i < committed_.size(); ++i) {
    const auto it = offsets.find({topic_, PartitionIndex(static_cast<int32_t>(i))});
    const int64_t offset = it == offsets.end() ? -1 : it->second.value();
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
  StartMember(member);
}

void GroupWorkload::PauseMember(Duration how_long) {
  Member& member = *members_[random_.Below(members_.size())];
  coverage_.Count("members paused");
  cluster_.plane().Say("pause " + member.host->name());
  member.host->executor().Pause();
  cluster_.scheduler().After(how_long, [&member, life = member.life] {
    if (member.life == life) member.host->executor().Resume();
  });
}

bool GroupWorkload::IsAtEnd() {
  for (int i = 0; i < partitions_; ++i) {
    const auto end = static_cast<int64_t>(cluster_.ReadAll(topic_, i).size());
    if (end > 0 && committed_[static_cast<size_t>(i)] != end) return false;
  }
  return true;
}

void GroupWorkload::CheckFinal() {
  for (size_t i = 0; i < polled_.size(); ++i) {
    const auto missing = std::find(polled_[i].begin(), polled_[i].end(), false);
    if (missing == polled_[i].end()) continue;
    return cluster_.Break("offset " + std::to_string(missing - polled_[i].begin()) +
                          " of partition " + std::to_string(i) + " was handed to no member");
  }
}

}  // namespace conclave::cluster_sim
