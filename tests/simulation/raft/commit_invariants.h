#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_COMMIT_INVARIANTS_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_COMMIT_INVARIANTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "raft/core/log.h"
#include "raft/core/ready.h"
#include "raft/core/types.h"
#include "raft/core/voter_set.h"
#include "tests/simulation/raft/violation.h"

namespace conclave::raft::sim {

// What has been committed, by any replica at any time, and what follows from it:
//   state machine safety   every replica, after every start, gets the same entries in one order
//   leader completeness    who comes to lead a term holds all that older terms committed
//   durability of commits  when an entry is first committed, a majority has it on its disks
//   reads are current      a read sees all that was committed before it was asked for
class CommitInvariants {
 public:
  // Whether a voter's disk holds an entry at this moment.
  using OnDisk = std::function<bool(const ReplicaKey&, LogPosition)>;

  void OnStart(const ReplicaKey& replica) { delivered_[replica] = LogIndex(0); }
  // `replica`, in `term`, was handed `entry` as committed.
  MaybeViolation OnCommitted(const ReplicaKey& replica, Term term, const Entry& entry,
                             const VoterSet& voters, const OnDisk& on_disk);
  MaybeViolation OnLeader(const ReplicaKey& replica, Term term, const RaftLog& log) const;

  void OnReadAsked(ReadContext context) { reads_[context] = last_committed(); }
  MaybeViolation OnReadConfirmed(const ConfirmedRead& read) const;

  LogIndex last_committed() const { return LogIndex(committed_.size()); }

 private:
  struct Committed {
    Term term;
    uint64_t content;
    Term committed_in;
  };

  std::vector<Committed> committed_;  // [i] is index i + 1
  std::map<ReplicaKey, LogIndex> delivered_;
  std::map<ReadContext, LogIndex> reads_;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_COMMIT_INVARIANTS_H_
