#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_ELECTION_INVARIANTS_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_ELECTION_INVARIANTS_H_

#include <map>
#include <utility>

#include "conclave/v1/raft.pb.h"
#include "raft/core/types.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {

// What may be said and claimed in a term, over all replicas and their crashes:
//   election safety   at most one replica leads a term
//   one vote a term   what a replica says it voted never names two in one term
//   terms never fall  a replica's term is never under one that it was in or has named
class ElectionInvariants {
 public:
  MaybeViolation OnLeader(const ReplicaKey& leader, Term term);
  // `message` left its sender, and cannot be taken back.
  MaybeViolation OnSent(const ReplicaKey& from, const v1::RaftMessage& message);
  MaybeViolation OnTerm(const ReplicaKey& replica, Term term);
  // What was only in memory may be lost; what was said is not.
  void OnCrash(const ReplicaKey& replica);

  size_t terms_led() const { return leaders_.size(); }

 private:
  struct Terms {
    Term in_memory;
    Term named;
  };

  MaybeViolation OnVote(const ReplicaKey& voter, Term term, const ReplicaKey& candidate);

  std::map<Term, ReplicaKey> leaders_;
  std::map<std::pair<ReplicaKey, Term>, ReplicaKey> votes_;
  std::map<ReplicaKey, Terms> terms_;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_ELECTION_INVARIANTS_H_
