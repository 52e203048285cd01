#include "tests/simulation/raft/election_invariants.h"

#include <algorithm>
#include <sstream>

namespace conclave::raft::sim {
namespace {

template <typename... Parts>
Violation Broken(const char* invariant, const Parts&... parts) {
  std::ostringstream detail;
  (detail << ... << parts);
  return {invariant, detail.str()};
}

}  // namespace

MaybeViolation ElectionInvariants::OnLeader(const ReplicaKey& leader, Term term) {
  const auto [it, first] = leaders_.emplace(term, leader);
  if (first || it->second == leader) return std::nullopt;
  return Broken(kElectionSafety, "term ", term, " is led by ", it->second, " and by ", leader);
}

MaybeViolation ElectionInvariants::OnSent(const ReplicaKey& from, const v1::RaftMessage& message) {
  const Term term(message.term());
  Term& named = terms_[from].named;
  named = std::max(named, term);
  if (message.has_vote_request()) return OnVote(from, term, from);
  if (message.has_vote_response() && message.vote_response().granted()) {
    return OnVote(
        from, term,
        {NodeId(message.to().node_id()), *DirectoryId::FromBytes(message.to().directory_id())});
  }
  return std::nullopt;
}

MaybeViolation ElectionInvariants::OnVote(const ReplicaKey& voter, Term term,
                                          const ReplicaKey& candidate) {
  const auto [it, first] = votes_.emplace(std::pair(voter, term), candidate);
  if (first || it->second == candidate) return std::nullopt;
  return Broken(kOneVote, voter, " voted in term ", term, " for ", it->second, " and for ",
                candidate);
}

MaybeViolation ElectionInvariants::OnTerm(const ReplicaKey& replica, Term term) {
  Terms& terms = terms_[replica];
  if (term < terms.in_memory || term < terms.named) {
    return Broken(kTermsNeverFall, replica, " is in term ", term, " after ",
                  std::max(terms.in_memory, terms.named));
  }
  terms.in_memory = term;
  return std::nullopt;
}

void ElectionInvariants::OnCrash(const ReplicaKey& replica) { terms_[replica].in_memory = Term(0); }

}  // namespace conclave::raft::sim
