#ifndef CONCLAVE_RAFT_CORE_VOTER_SET_H_
#define CONCLAVE_RAFT_CORE_VOTER_SET_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "raft/core/types.h"

namespace conclave::raft {

// Who votes and is counted: (node, directory) pairs (KIP-853), each node at most once. Immutable;
// the default one is empty, as with an empty log, and makes nobody a voter.
class VoterSet {
 public:
  struct Member {
    ReplicaKey key;
    std::string endpoint;  // host:port

    friend bool operator==(const Member&, const Member&) = default;
  };

  VoterSet() = default;

  // InvalidArgument for no members, a negative or repeated node id, or a directory of zeros.
  static absl::StatusOr<VoterSet> Of(std::vector<Member> members);
  // Reads the data of a VOTERS entry. InvalidArgument as for Of, and for what does not parse.
  static absl::StatusOr<VoterSet> Parse(std::string_view data);
  std::string Serialize() const;

  bool Contains(const ReplicaKey& key) const;
  // Ascending by key.
  const std::vector<Member>& members() const { return members_; }
  size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }

  friend bool operator==(const VoterSet&, const VoterSet&) = default;

 private:
  std::vector<Member> members_;
};

}  // namespace conclave::raft

#endif  // CONCLAVE_RAFT_CORE_VOTER_SET_H_
