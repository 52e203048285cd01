#ifndef CONCLAVE_TESTS_SIMULATION_RAFT_SIM_DISK_H_
#define CONCLAVE_TESTS_SIMULATION_RAFT_SIM_DISK_H_

#include <deque>
#include <optional>
#include <vector>

#include "common/random/random.h"
#include "raft/core/bootstrap.h"
#include "raft/core/ready.h"
#include "raft/core/types.h"

namespace conclave::raft::sim {

// One replica's storage: writes queue up and become durable in order, each whole. A crash keeps
// some of those at the head of the queue, as a disk may have finished what it had not reported.
class SimDisk {
 public:
  // A disk that stores every hard state without its vote: the deliberate fault "vote forgotten".
  void ForgetVotes() { forget_votes_ = true; }

  void Format(const RecoveredState& state) { durable_ = state; }

  void Submit(Write write) { queue_.push_back(std::move(write)); }
  size_t queued() const { return queue_.size(); }
  // The oldest `count` writes become durable. Returns the newest ticket among them.
  WriteTicket Complete(size_t count);
  // Power is lost. Returns how many writes were lost with it.
  size_t Crash(Random& random);

  const RecoveredState& durable() const { return durable_; }
  bool Holds(LogPosition position) const;

 private:
  void Apply(const Write& write);

  bool forget_votes_ = false;
  RecoveredState durable_;
  std::deque<Write> queue_;
};

}  // namespace conclave::raft::sim

#endif  // CONCLAVE_TESTS_SIMULATION_RAFT_SIM_DISK_H_
