#ifndef CONCLAVE_BROKER_GROUP_IMAGE_H_
#define CONCLAVE_BROKER_GROUP_IMAGE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "broker/group/assignor.h"
#include "broker/group/records.h"
#include "broker/group/types.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave::group {

// A partition that a member holds: nobody else is given it before the member has given it up, or is
// no member any more.
struct Held {
  // The member epoch that gave it. What the member says of it under an older epoch is of an earlier
  // holding.
  GroupEpoch since;
  // The member epoch that asked for it back; 0: it is the member's to keep.
  GroupEpoch revoked;

  bool IsRevoked() const { return revoked != GroupEpoch(0); }
  friend bool operator==(const Held&, const Held&) = default;
};

struct Member {
  // How it introduced itself. Without a description it is not a member: see GroupImage::Settle.
  std::optional<MemberDescription> description;
  GroupEpoch epoch;
  std::map<PartitionId, Held> held;
  PartitionSet target;

  // What it is to hold now: what it holds and has not been asked back.
  PartitionSet Assigned() const;
  PartitionSet Revoked() const;
  friend bool operator==(const Member&, const Member&) = default;
};

struct Group {
  GroupEpoch epoch;
  std::string reason;
  // Absent while it has members, and where no record has told it.
  std::optional<WallTime> empty_since;
  std::map<std::string, Member> members;
  std::map<PartitionId, StoredOffset> offsets;

  bool IsStable() const;
  friend bool operator==(const Group&, const Group&) = default;
};

// The groups of one partition of __consumer_offsets, as its records say. Changed by replay and by
// nothing else. A value type; copying is linear.
class GroupImage {
 public:
  // CORRUPT_MESSAGE or UNSUPPORTED_VERSION where the record is none of ours, with nothing changed.
  absl::Status Apply(std::string_view key, std::optional<std::string_view> value);
  void Apply(const GroupRecord& record);

  // Once a log has been replayed: forgets what is left of members and groups whose own records a
  // compaction has taken away.
  void Settle();

  const std::map<std::string, Group>& groups() const { return groups_; }
  // nullptr: there is none. Valid until the image changes.
  const Group* Find(const std::string& group) const;
  const Member* FindMember(const std::string& group, const std::string& member) const;

  friend bool operator==(const GroupImage&, const GroupImage&) = default;

 private:
  void ForgetIfNothing(const std::string& group);

  std::map<std::string, Group> groups_;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_IMAGE_H_
