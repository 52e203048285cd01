#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/partition/replica.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "tests/simulation/cluster/durable_logs.h"
#include "tests/simulation/controllers/control_plane.h"

namespace conclave::cluster_sim {

// What must hold of the partitions of a simulated cluster, looked at after every event: what the
// event touched, and now and then everything.
//
//   one leader an epoch
//   the high watermark of a replica does not fall within its life, nor is anything below it
//     truncated
//   below their high watermarks all replicas have had the same batches, at the same offsets
//   what was acknowledged under acks=all is on as many disks as the minimum ISR asks for, synced
//     (flush.policy=fsync)
class DataInvariants {
 public:
  // `plane` outlives it, and tells it of replicas until then.
  explicit DataInvariants(control_sim::ControlPlane& plane);

  // Empty: all hold.
  std::string Check();

  // A client has been told that the record at `offset` is committed.
  std::string Acknowledged(const PartitionId& id, const std::string& topic, Offset offset,
                           size_t synced_copies);

  // The replica's log cannot be read as a whole, until another takes its place. What it had is
  // dropped then, so that of what has just been acknowledged a copy less may be left.
  void ExpectDamage(int node, const PartitionId& id) {
    damaged_.emplace(node, id);
    once_damaged_.insert(id);
  }
  // More has failed than the partition's flush policy survives: what was committed until now may be
  // lost, and something else be committed in its place.
  void ExcuseLoss(const PartitionId& id) { history_.erase(id); }

  struct Counters {
    uint64_t batches_committed = 0;
    uint64_t batches_compared = 0;
    uint64_t leaders = 0;
    uint64_t acknowledged = 0;
    uint64_t truncations = 0;
    uint64_t log_starts_moved = 0;
    // Followers that ended before the leader's log began.
    uint64_t begun_anew = 0;
    // Replicas in whose place another one was made, for they were damaged.
    uint64_t replaced = 0;
    // Logs that were shorter after a restart than before it, with what had not been synced.
    uint64_t recovered_shorter = 0;
  };
  const Counters& counters() const { return counters_; }
  // Who was seen to lead in each epoch.
  using Leaders = std::map<std::pair<PartitionId, LeaderEpoch>, BrokerId>;
  const Leaders& leaders() const { return leaders_; }

 private:
  struct Committed {
    uint32_t crc = 0;
    LeaderEpoch epoch;
    Offset next;
  };
  struct Seen {
    // Of the process, and of the replica within it.
    std::pair<uint64_t, uint64_t> life;
    Offset high_watermark;
    // Compared with the committed history up to here.
    Offset verified;
    Offset log_start;
    Offset log_end;
  };

  std::string CheckAll();
  std::string CheckReplica(int node, broker::Replica& replica);
  // With what was seen of it before.
  std::string Compare(int node, broker::Replica& replica, Seen& seen);
  // What is newly below its high watermark, with what others had there.
  std::string Verify(int node, broker::Replica& replica, Seen& seen);

  control_sim::ControlPlane& plane_;
  Leaders leaders_;
  std::map<PartitionId, std::map<Offset, Committed>> history_;
  // By node.
  std::vector<std::map<PartitionId, Seen>> seen_;
  // Since the last check.
  std::vector<std::pair<int, PartitionId>> changed_;
  uint64_t checks_ = 0;
  // By node; brokers' alone.
  std::map<int, DurableLogs> durable_;
  std::set<std::pair<int, PartitionId>> damaged_;
  std::set<PartitionId> once_damaged_;
  Counters counters_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_
