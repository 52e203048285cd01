#include "raft/core/voter_set.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "conclave/v1/raft.pb.h"

namespace conclave::raft {

absl::StatusOr<VoterSet> VoterSet::Of(std::vector<Member> members) {
  if (members.empty()) return absl::InvalidArgumentError("a voter set without voters");
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.key < b.key; });
  for (size_t i = 0; i < members.size(); ++i) {
    const ReplicaKey& key = members[i].key;
    if (key.node < NodeId(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("voter id ", key.node.value(), " is negative"));
    }
    if (key.directory.IsNone()) {
      return absl::InvalidArgumentError(
          absl::StrCat("voter ", key.node.value(), " has no directory id"));
    }
    if (i > 0 && members[i - 1].key.node == key.node) {
      return absl::InvalidArgumentError(
          absl::StrCat("voter id ", key.node.value(), " is there twice"));
    }
  }
  VoterSet set;
  set.members_ = std::move(members);
  return set;
}

absl::StatusOr<VoterSet> VoterSet::Parse(std::string_view data) {
  v1::VoterSet proto;
  if (!proto.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
    return absl::InvalidArgumentError("a voter set that does not parse");
  }
  std::vector<Member> members;
  for (const v1::Voter& voter : proto.voters()) {
    const auto directory = DirectoryId::FromBytes(voter.directory_id());
    if (!directory) {
      return absl::InvalidArgumentError(absl::StrCat("voter ", voter.node_id(),
                                                     " has a directory id of ",
                                                     voter.directory_id().size(), " bytes"));
    }
    members.push_back({{NodeId(voter.node_id()), *directory}, voter.endpoint()});
  }
  return Of(std::move(members));
}

std::string VoterSet::Serialize() const {
  v1::VoterSet proto;
  for (const Member& member : members_) {
    v1::Voter* voter = proto.add_voters();
    voter->set_node_id(member.key.node.value());
    voter->set_directory_id(member.key.directory.ToBytes());
    voter->set_endpoint(member.endpoint);
  }
  return proto.SerializeAsString();
}

bool VoterSet::Contains(const ReplicaKey& key) const {
  // A handful at most: a scan is the fastest search.
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.key == key; });
}

}  // namespace conclave::raft
