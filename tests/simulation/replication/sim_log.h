#ifndef CONCLAVE_TESTS_SIMULATION_REPLICATION_SIM_LOG_H_
#define CONCLAVE_TESTS_SIMULATION_REPLICATION_SIM_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "broker/replication/follower_replica.h"
#include "broker/replication/leader_replica.h"
#include "common/buffer/buffer.h"
#include "common/random/random.h"

namespace conclave::replication_simulation {

struct SimRecord {
  int32_t epoch = 0;
  uint64_t value = 0;

  friend bool operator==(const SimRecord&, const SimRecord&) = default;
};

// A partition's log in memory, of which a crash keeps what was synced and a part of the rest.
class SimLog : public replication::LeaderLog, public replication::FollowerLog {
 public:
  replication::LogPosition position() const override {
    return {Offset(static_cast<int64_t>(records_.size())), Offset(durable_)};
  }
  LeaderEpoch last_epoch() const override;
  replication::EpochEnd EndOfEpoch(LeaderEpoch epoch) const override;
  // Nothing is ever removed.
  Offset log_start() const override { return Offset(0); }
  // What becomes of damaged logs is the whole cluster's simulation to see.
  bool begins_anew() const override { return false; }
  bool counts_unsynced() const override { return true; }
  Offset first_batch() const override { return Offset(0); }
  absl::Status ResetTo(Offset, const v1::RememberedProducers&) override {
    return absl::InternalError("nothing was removed");
  }
  absl::Status RemoveBefore(Offset) override { return absl::OkStatus(); }
  absl::Status TruncateTo(Offset end) override;
  absl::Status Append(const Buffer& batches) override;

  void AppendOwn(SimRecord record) { records_.push_back(record); }
  Buffer Read(Offset from, size_t max_records) const;

  // A sync covers what was there when it began, unless the log was cut meanwhile.
  struct Sync {
    int64_t end = 0;
    uint64_t cuts = 0;
  };
  Sync BeginSync() const { return {static_cast<int64_t>(records_.size()), cuts_}; }
  void EndSync(const Sync& sync);

  // Whether something was lost.
  bool Crash(Random& random);

  const std::vector<SimRecord>& records() const { return records_; }
  uint64_t cuts() const { return cuts_; }

 private:
  std::vector<SimRecord> records_;
  int64_t durable_ = 0;
  uint64_t cuts_ = 0;
};

}  // namespace conclave::replication_simulation

#endif  // CONCLAVE_TESTS_SIMULATION_REPLICATION_SIM_LOG_H_
