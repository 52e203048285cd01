#include "broker/group/image.h"

#include <glog/logging.h>

#include <iterator>
#include <utility>

namespace conclave::group {

PartitionSet Member::Assigned() const {
  PartitionSet assigned;
  for (const auto& [partition, holding] : held) {
    if (!holding.IsRevoked()) assigned.insert(assigned.end(), partition);
  }
  return assigned;
}

PartitionSet Member::Revoked() const {
  PartitionSet revoked;
  for (const auto& [partition, holding] : held) {
    if (holding.IsRevoked()) revoked.insert(revoked.end(), partition);
  }
  return revoked;
}

bool Group::IsStable() const {
  for (const auto& [id, member] : members) {
    if (member.held.size() != member.target.size()) return false;
    for (const auto& [partition, holding] : member.held) {
      if (holding.IsRevoked() || !member.target.contains(partition)) return false;
    }
  }
  return true;
}

absl::Status GroupImage::Apply(std::string_view key, std::optional<std::string_view> value) {
  const auto name = ParseRecordKey(key);
  if (!name.ok()) return name.status();
  if (name->kind == RecordKind::kOffset) {
    if (!value) {
      const auto found = groups_.find(name->group);
      if (found != groups_.end()) found->second.offsets.erase(name->partition);
    } else {
      auto offset = ParseOffsetValue(*value);
      if (!offset.ok()) return offset.status();
      groups_[name->group].offsets[name->partition] = *std::move(offset);
    }
    ForgetIfNothing(name->group);
    return absl::OkStatus();
  }
  absl::Status parsed;
  Group& group = groups_[name->group];
  if (name->kind == RecordKind::kGroup) {
    if (value) {
      parsed = ParseGroupValue(*value, group);
    } else {
      group.epoch = GroupEpoch(0);
      group.reason.clear();
      group.empty_since.reset();
    }
    ForgetIfNothing(name->group);
    return parsed;
  }
  Member& member = group.members[name->member];
  switch (name->kind) {
    case RecordKind::kMember:
      if (value) {
        parsed = ParseMemberValue(*value, member);
      } else {
        member.description.reset();
      }
      break;
    case RecordKind::kTarget:
      if (value) {
        parsed = ParseTargetValue(*value, member);
      } else {
        member.target.clear();
      }
      break;
    default:
      if (value) {
        parsed = ParseHoldingValue(*value, member);
      } else {
        member.epoch = GroupEpoch(0);
        member.held.clear();
      }
      break;
  }
  if (member == Member()) group.members.erase(name->member);
  ForgetIfNothing(name->group);
  return parsed;
}

void GroupImage::Apply(const GroupRecord& record) {
  std::optional<std::string_view> value;
  if (record.value) value = *record.value;
  const absl::Status applied = Apply(record.key, value);
  CHECK(applied.ok()) << "a record of our own making: " << applied;
}

void GroupImage::Settle() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    auto& members = group->second.members;
    for (auto member = members.begin(); member != members.end();) {
      member = member->second.description ? std::next(member) : members.erase(member);
    }
    group = group->second == Group() ? groups_.erase(group) : std::next(group);
  }
}

const Group* GroupImage::Find(const std::string& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

const Member* GroupImage::FindMember(const std::string& group, const std::string& member) const {
  const Group* found = Find(group);
  if (found == nullptr) return nullptr;
  const auto it = found->members.find(member);
  return it == found->members.end() ? nullptr : &it->second;
}

void GroupImage::ForgetIfNothing(const std::string& group) {
  const auto found = groups_.find(group);
  if (found != groups_.end() && found->second == Group()) groups_.erase(found);
}

}  // namespace conclave::group
