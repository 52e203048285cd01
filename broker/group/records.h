#ifndef CONCLAVE_BROKER_GROUP_RECORDS_H_
#define CONCLAVE_BROKER_GROUP_RECORDS_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "broker/group/assignor.h"
#include "broker/group/types.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "common/types/time.h"

// Records of __consumer_offsets as values, and their bytes: proto/conclave/v1/group_records.proto.
namespace conclave::group {

struct Group;
struct Member;

// A record of the log. No value: what the key names is no more.
struct GroupRecord {
  std::string key;
  std::optional<std::string> value;

  friend bool operator==(const GroupRecord&, const GroupRecord&) = default;
};

// How a member introduced itself.
struct MemberDescription {
  // Empty: dynamic.
  std::string instance_id;
  std::string client_id;
  std::set<std::string> topics;
  Assignor assignor = Assignor::kUniform;
  Duration rebalance_timeout;
  Duration session_timeout;

  bool IsStatic() const { return !instance_id.empty(); }
  friend bool operator==(const MemberDescription&, const MemberDescription&) = default;
};

struct StoredOffset {
  // The next to be read.
  Offset offset;
  // Of the last record read; -1: unknown.
  LeaderEpoch leader_epoch{-1};
  std::string metadata;
  // As it was called when the offset was committed; for people.
  std::string topic;
  WallTime committed_at;

  friend bool operator==(const StoredOffset&, const StoredOffset&) = default;
};

GroupRecord RecordOfGroup(const std::string& name, const Group& group);
GroupRecord RecordOfMember(const std::string& group, const std::string& member,
                           const MemberDescription& description);
GroupRecord RecordOfTarget(const std::string& group, const std::string& member,
                           const PartitionSet& target);
// What the member holds, and its epoch.
GroupRecord RecordOfHolding(const std::string& group, const std::string& member,
                            const Member& holding);
GroupRecord RecordOfOffset(const std::string& group, const PartitionId& partition,
                           const StoredOffset& offset);

GroupRecord EndOfGroup(const std::string& group);
GroupRecord EndOfMember(const std::string& group, const std::string& member);
GroupRecord EndOfTarget(const std::string& group, const std::string& member);
GroupRecord EndOfHolding(const std::string& group, const std::string& member);
GroupRecord EndOfOffset(const std::string& group, const PartitionId& partition);

enum class RecordKind { kGroup, kMember, kTarget, kHolding, kOffset };

// What a key names.
struct RecordName {
  RecordKind kind = RecordKind::kGroup;
  std::string group;
  // Of the three kinds that are about members.
  std::string member;
  // Of offsets.
  PartitionId partition;
};

// CORRUPT_MESSAGE for bytes that are no key, UNSUPPORTED_VERSION for a key of an unknown kind.
absl::StatusOr<RecordName> ParseRecordKey(std::string_view key);

// The value of a key of the given kind, put where it belongs. CORRUPT_MESSAGE or
// UNSUPPORTED_VERSION, with nothing changed, where it is no such value.
absl::Status ParseGroupValue(std::string_view value, Group& group);
absl::Status ParseMemberValue(std::string_view value, Member& member);
absl::Status ParseTargetValue(std::string_view value, Member& member);
absl::Status ParseHoldingValue(std::string_view value, Member& member);
absl::StatusOr<StoredOffset> ParseOffsetValue(std::string_view value);

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_RECORDS_H_
