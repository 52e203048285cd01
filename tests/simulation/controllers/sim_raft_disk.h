#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIM_RAFT_DISK_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIM_RAFT_DISK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "raft/core/bootstrap.h"
#include "raft/core/ready.h"
#include "raft/storage/log_storage.h"

namespace conclave::control_sim {

// What a controller's disk holds, beyond the lives of its processes. A batch is there, whole, from
// the moment the storage executor has run it; batches that still wait are lost with the process.
class SimRaftDisk {
 public:
  explicit SimRaftDisk(raft::RecoveredState formatted) : state_(std::move(formatted)) {}

  const raft::RecoveredState& state() const { return state_; }

  // The next batch fails with EIO; whether it is on the disk nevertheless is `written`'s to say.
  void FailNext(bool written);
  // For this process's part of it. The disk outlives the storage.
  std::unique_ptr<raft::LogStorage> NewStorage();

  // What should never have been written: a term that falls, a second vote in a term. Empty:
  // nothing.
  const std::string& violation() const { return violation_; }

 private:
  class Storage;

  absl::Status Append(const std::vector<raft::Write>& writes);
  void Apply(const raft::Write& write);

  raft::RecoveredState state_;
  bool fail_ = false;
  bool fail_written_ = false;
  std::string violation_;
};

}  // namespace conclave::control_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_SIM_RAFT_DISK_H_
