#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/group/group_coordinator.h"
#include "common/error/error.h"

namespace conclave::group {
namespace {

// A group that is used without members counts as empty since its last commit, to about this.
constexpr int64_t kEmptySinceStepMs = 60'000;

const char* StateOf(const Group& group) {
  if (group.members.empty()) return "empty";
  return group.IsStable() ? "stable" : "reconciling";
}

}  // namespace

// --- Waiting calls

bool GroupCoordinator::TakeOn(RequestId request, Now now) {
  absl::Status refused = CheckServing();
  if (refused.ok() && requests_.size() >= config_.max_waiting_requests) {
    refused = MakeError(v1::OVERLOADED, absl::StrCat(config_.max_waiting_requests,
                                                     " calls wait at this coordinator, which is "
                                                     "as many as it takes; try again later"));
  }
  requests_[request] = now.mono + config_.request_timeout;
  if (!refused.ok()) {
    Refuse(request, refused);
    return false;
  }
  Wake(now.mono + config_.request_timeout);
  return true;
}

void GroupCoordinator::Answer(Reply reply) {
  // Otherwise its time has run out.
  if (requests_.erase(reply.request) > 0) Act(std::move(reply));
}

void GroupCoordinator::Refuse(RequestId request, const absl::Status& why) {
  Answer({request, why, {}});
}

// --- Commits

void GroupCoordinator::CommitOffsets(RequestId request, const v1::CommitOffsetsRequest& commit,
                                     Now now) {
  if (!TakeOn(request, now)) return;
  if (absl::Status may = CheckCommitter(commit); !may.ok()) return Refuse(request, may);
  Transaction transaction(speculative_, now.wall);
  v1::CommitOffsetsResponse response;
  for (const v1::OffsetCommit& offset : commit.offsets()) {
    v1::OffsetCommitResult& result = *response.add_offsets();
    result.set_topic(offset.topic());
    result.set_topic_id(offset.topic_id());
    result.set_partition(offset.partition());
    PartitionId partition;
    std::string topic;
    if (absl::Status good = CheckOffset(commit, offset, partition, topic); !good.ok()) {
      *result.mutable_error() = ErrorFromStatus(good);
      continue;
    }
    result.set_topic(topic);
    result.set_topic_id(partition.topic.ToBytes());
    transaction.Put(RecordOfOffset(commit.group(), partition,
                                   {Offset(offset.offset()), LeaderEpoch(offset.leader_epoch()),
                                    offset.metadata(), topic, now.wall}));
  }
  if (!transaction.empty() && commit.member_id().empty()) {
    Group header;
    const Group& group = *speculative_.Find(commit.group());
    header.epoch = group.epoch;
    header.reason = group.reason;
    header.empty_since = now.wall;
    if (!group.empty_since ||
        now.wall.unix_millis() - group.empty_since->unix_millis() >= kEmptySinceStepMs) {
      transaction.Put(RecordOfGroup(commit.group(), header));
    }
  }
  std::vector<Deferred> then;
  then.push_back(Reply{request, absl::OkStatus(), std::move(response)});
  Finish(transaction, std::move(then), now);
}

absl::Status GroupCoordinator::CheckCommitter(const v1::CommitOffsetsRequest& commit) const {
  if (absl::Status good = CheckGroupId(commit.group()); !good.ok()) return good;
  if (static_cast<size_t>(commit.offsets_size()) > config_.max_items_per_request) {
    return MakeError(
        v1::INVALID_REQUEST,
        absl::StrCat("a commit has at most ", config_.max_items_per_request, " offsets, not ",
                     commit.offsets_size(), "; send the rest in another"));
  }
  if (commit.member_id().empty()) {
    if (commit.member_epoch() != -1) {
      return MakeError(v1::INVALID_REQUEST,
                       "a commit without a member id has member epoch -1, and goes through while "
                       "the group is empty");
    }
    const Group* group = speculative_.Find(commit.group());
    if (group == nullptr || group->members.empty()) return absl::OkStatus();
    return MakeError(v1::NON_EMPTY_GROUP,
                     absl::StrCat("group ", commit.group(), " has ", group->members.size(),
                                  " members: only they commit; stop them, or commit as one"));
  }
  const Member* member = speculative_.FindMember(commit.group(), commit.member_id());
  if (member == nullptr) return UnknownMember({commit.group(), commit.member_id()});
  if (GroupEpoch(commit.member_epoch()) > member->epoch) {
    return MakeError(v1::FENCED_MEMBER_EPOCH,
                     absl::StrCat("member ", commit.member_id(), " of group ", commit.group(),
                                  " is at epoch ", member->epoch.value(), " and commits under ",
                                  commit.member_epoch(), ", which it was never given"));
  }
  return absl::OkStatus();
}

absl::Status GroupCoordinator::CheckOffset(const v1::CommitOffsetsRequest& commit,
                                           const v1::OffsetCommit& offset, PartitionId& partition,
                                           std::string& topic) const {
  const auto located = Locate(offset.topic(), offset.topic_id(), offset.partition());
  if (!located.ok()) return located.status();
  partition = *located;
  const TopicView::Named* named = topics_.Find(partition.topic);
  if (named == nullptr) {
    return MakeError(v1::UNKNOWN_TOPIC_ID,
                     absl::StrCat("there is no topic of id ", partition.topic.ToString(),
                                  ": it has been deleted, or is not known here yet"));
  }
  topic = named->name;
  if (partition.index.value() >= named->partitions) {
    return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                     absl::StrCat("topic ", topic, " has ", named->partitions,
                                  " partitions, and none of number ", offset.partition()));
  }
  if (offset.offset() < 0 || offset.leader_epoch() < -1) {
    return MakeError(
        v1::INVALID_REQUEST,
        absl::StrCat("offset ", offset.offset(), " at leader epoch ", offset.leader_epoch(),
                     " is no position of ", topic, "-", offset.partition()));
  }
  if (offset.metadata().size() > config_.max_offset_metadata_bytes) {
    return MakeError(
        v1::OFFSET_METADATA_TOO_LARGE,
        absl::StrCat("the metadata of an offset has at most ", config_.max_offset_metadata_bytes,
                     " bytes, not ", offset.metadata().size()));
  }
  if (commit.member_id().empty()) return absl::OkStatus();
  // A member commits for what it holds, and has held since the epoch it speaks under.
  const Member& member = *speculative_.FindMember(commit.group(), commit.member_id());
  const auto held = member.held.find(partition);
  if (held != member.held.end() && held->second.since <= GroupEpoch(commit.member_epoch())) {
    return absl::OkStatus();
  }
  return MakeError(
      v1::STALE_MEMBER_EPOCH,
      absl::StrCat("member ", commit.member_id(), " of group ", commit.group(),
                   held == member.held.end() ? " does not hold " : " has newly been given ", topic,
                   "-", offset.partition(), ": it commits under epoch ", commit.member_epoch(),
                   " and is at epoch ", member.epoch.value(), "; the offset is unchanged"));
}

// By the id where it is given, else by the name.
absl::StatusOr<PartitionId> GroupCoordinator::Locate(const std::string& topic,
                                                     const std::string& topic_id,
                                                     int32_t partition) const {
  if (partition < 0) {
    return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                     absl::StrCat("there is no partition ", partition, " of topic ", topic));
  }
  if (!topic_id.empty()) {
    const auto id = TopicId::FromBytes(topic_id);
    if (id && !id->IsNone()) return PartitionId{*id, PartitionIndex(partition)};
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("the id given for topic ", topic, " is no 16 bytes"));
  }
  const TopicInfo* found = topics_.Find(topic);
  if (found != nullptr) return PartitionId{found->id, PartitionIndex(partition)};
  return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                   absl::StrCat("topic ", topic, " does not exist, or is not known here yet"));
}

// --- Reads: answered from committed state, once the leadership was confirmed after they came

void GroupCoordinator::FetchOffsets(RequestId request, const v1::FetchOffsetsRequest& fetch,
                                    Now now) {
  StartRead(request, {request, fetch}, now);
}

void GroupCoordinator::DescribeGroups(RequestId request, const v1::DescribeGroupsRequest& describe,
                                      Now now) {
  StartRead(request, {request, describe}, now);
}

void GroupCoordinator::StartRead(RequestId request, Read read, Now now) {
  if (!TakeOn(request, now)) return;
  next_reads_.push_back(std::move(read));
  if (!round_under_way_) StartRound();
}

void GroupCoordinator::StartRound() {
  round_under_way_ = true;
  round_reads_ = std::exchange(next_reads_, {});
  Act(ConfirmLeadership{++last_round_});
}

void GroupCoordinator::LeadershipConfirmed(ReadRound round) {
  if (!round_under_way_ || round != last_round_) return;
  round_under_way_ = false;
  for (const Read& read : std::exchange(round_reads_, {})) Answer(ReplyTo(read));
  if (!next_reads_.empty()) StartRound();
}

void GroupCoordinator::LeadershipNotConfirmed(ReadRound round, const absl::Status& why) {
  if (!round_under_way_ || round != last_round_) return;
  round_under_way_ = false;
  for (const Read& read : std::exchange(round_reads_, {})) Refuse(read.request, why);
  if (!next_reads_.empty()) StartRound();
}

Reply GroupCoordinator::ReplyTo(const Read& read) const {
  Reply reply{read.request, absl::OkStatus(), {}};
  if (const auto* fetch = std::get_if<v1::FetchOffsetsRequest>(&read.what)) {
    reply.status = CheckGroupId(fetch->group());
    if (reply.status.ok()) reply.response = OffsetsOf(*fetch);
    return reply;
  }
  v1::DescribeGroupsResponse response;
  for (const std::string& group : std::get<v1::DescribeGroupsRequest>(read.what).groups()) {
    *response.add_groups() = DescriptionOf(group);
  }
  reply.response = std::move(response);
  return reply;
}

v1::CommittedOffset GroupCoordinator::OffsetToProto(const PartitionId& partition,
                                                    const StoredOffset* offset) const {
  v1::CommittedOffset out;
  out.set_topic_id(partition.topic.ToBytes());
  out.set_partition(partition.index.value());
  const TopicView::Named* named = topics_.Find(partition.topic);
  if (named != nullptr) out.set_topic(named->name);
  out.set_leader_epoch(-1);
  if (offset == nullptr) return out;
  if (named == nullptr) out.set_topic(offset->topic);
  out.set_offset(offset->offset.value());
  out.set_leader_epoch(offset->leader_epoch.value());
  out.set_metadata(offset->metadata);
  return out;
}

v1::FetchOffsetsResponse GroupCoordinator::OffsetsOf(const v1::FetchOffsetsRequest& fetch) const {
  v1::FetchOffsetsResponse response;
  const Group* group = committed_.Find(fetch.group());
  if (fetch.topics().empty()) {
    if (group == nullptr) return response;
    for (const auto& [partition, offset] : group->offsets) {
      *response.add_offsets() = OffsetToProto(partition, &offset);
    }
    return response;
  }
  for (const v1::GroupTopicPartitions& topic : fetch.topics()) {
    for (const int32_t number : topic.partitions()) {
      const auto partition = Locate(topic.topic(), topic.topic_id(), number);
      if (!partition.ok()) {
        v1::CommittedOffset& out = *response.add_offsets();
        out.set_topic(topic.topic());
        out.set_topic_id(topic.topic_id());
        out.set_partition(number);
        *out.mutable_error() = ErrorFromStatus(partition.status());
        continue;
      }
      const StoredOffset* offset = nullptr;
      if (group != nullptr) {
        const auto found = group->offsets.find(*partition);
        if (found != group->offsets.end()) offset = &found->second;
      }
      *response.add_offsets() = OffsetToProto(*partition, offset);
    }
  }
  return response;
}

v1::GroupDescription GroupCoordinator::DescriptionOf(const std::string& name) const {
  v1::GroupDescription out;
  out.set_group(name);
  const Group* group = committed_.Find(name);
  if (group == nullptr) {
    *out.mutable_error() = ErrorFromStatus(
        MakeError(v1::GROUP_ID_NOT_FOUND,
                  absl::StrCat("there is no group ", name, "; list the groups to see which are")));
    return out;
  }
  out.set_state(StateOf(*group));
  out.set_epoch(group->epoch.value());
  out.set_coordinator(config_.self.value());
  for (const auto& [id, member] : group->members) {
    v1::MemberDescription& described = *out.add_members();
    described.set_member_id(id);
    described.set_instance_id(member.description->instance_id);
    described.set_client_id(member.description->client_id);
    described.set_member_epoch(member.epoch.value());
    v1::OwnedPartitions assigned = ToProto(member.Assigned());
    described.mutable_assignment()->Swap(assigned.mutable_topics());
    v1::OwnedPartitions revoked = ToProto(member.Revoked());
    described.mutable_revoking()->Swap(revoked.mutable_topics());
  }
  for (const auto& [partition, offset] : group->offsets) {
    *out.add_offsets() = OffsetToProto(partition, &offset);
  }
  return out;
}

void GroupCoordinator::ListGroups(RequestId request) {
  v1::ListGroupsResponse response;
  absl::Status serving = CheckServing();
  if (serving.ok()) {
    for (const auto& [name, group] : committed_.groups()) {
      v1::GroupListing& listing = *response.add_groups();
      listing.set_group(name);
      listing.set_state(StateOf(group));
      listing.set_members(static_cast<int32_t>(group.members.size()));
    }
    Act(Reply{request, absl::OkStatus(), std::move(response)});
  } else {
    Act(Reply{request, std::move(serving), {}});
  }
}

}  // namespace conclave::group
