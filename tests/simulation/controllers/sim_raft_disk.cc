#include "tests/simulation/controllers/sim_raft_disk.h"

#include <glog/logging.h>

#include <utility>

#include "common/error/error.h"

namespace conclave::control_sim {

class SimRaftDisk::Storage : public raft::LogStorage {
 public:
  explicit Storage(SimRaftDisk& disk) : disk_(disk) {}

  absl::Status Append(const std::vector<raft::Write>& writes) override {
    if (failed_) return MakeError(v1::STORAGE_ERROR, "it failed before");
    absl::Status appended = disk_.Append(writes);
    failed_ = !appended.ok();
    return appended;
  }

 private:
  SimRaftDisk& disk_;
  bool failed_ = false;
};

std::unique_ptr<raft::LogStorage> SimRaftDisk::NewStorage() {
  fail_ = false;
  return std::make_unique<Storage>(*this);
}

void SimRaftDisk::FailNext(bool written) {
  fail_ = true;
  fail_written_ = written;
}

absl::Status SimRaftDisk::Append(const std::vector<raft::Write>& writes) {
  const bool fails = std::exchange(fail_, false);
  if (!fails || fail_written_) {
    for (const raft::Write& write : writes) Apply(write);
  }
  if (fails) return MakeError(v1::STORAGE_ERROR, "injected EIO");
  return absl::OkStatus();
}

void SimRaftDisk::Apply(const raft::Write& write) {
  if (write.hard_state) {
    const raft::HardState& before = state_.hard_state;
    if (write.hard_state->term < before.term) violation_ = "a term on disk fell";
    if (write.hard_state->term == before.term && before.vote &&
        write.hard_state->vote != before.vote) {
      violation_ = "a vote on disk changed within its term";
    }
    state_.hard_state = *write.hard_state;
  }
  if (write.truncate_from) {
    CHECK_LE(write.truncate_from->value(), state_.entries.size() + 1);
    state_.entries.resize(write.truncate_from->value() - 1);
  }
  for (const raft::Entry& entry : write.entries) {
    CHECK_EQ(entry.index.value(), state_.entries.size() + 1);
    state_.entries.push_back(entry);
  }
}

}  // namespace conclave::control_sim
