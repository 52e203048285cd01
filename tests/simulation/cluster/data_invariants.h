#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "broker/partition/replica.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"
#include "tests/simulation/controllers/control_plane.h"

namespace conclave::cluster_sim {

// What must hold of the partitions of a simulated cluster, looked at after every event: what the
// event touched, not everything.
//
//   one leader an epoch
//   the high watermark of a replica does not fall within the life of its process, nor is anything
//     below it truncated
//   below their high watermarks all replicas have had the same batches, at the same offsets
//   what was acknowledged under acks=all is on as many disks as the minimum ISR asks for, synced
//
// Each log has one segment, and nothing is ever removed from its front.
class DataInvariants {
 public:
  explicit DataInvariants(control_sim::ControlPlane& plane) : plane_(plane) {}

  // Empty: all hold.
  std::string Check();

  // A client has been told that the record at `offset` is committed.
  std::string Acknowledged(const PartitionId& id, const std::string& topic, Offset offset,
                           size_t min_isr);

  struct Counters {
    uint64_t batches_committed = 0;
    uint64_t batches_compared = 0;
    uint64_t leaders = 0;
    uint64_t acknowledged = 0;
    uint64_t truncations = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Committed {
    uint32_t crc = 0;
    LeaderEpoch epoch;
    Offset next;
    // Where it ends in the segment's file.
    uint64_t end_position = 0;
  };
  struct Seen {
    uint64_t life = 0;
    Offset high_watermark;
    // Compared with the committed history up to here.
    Offset verified;
    Offset log_end;
  };

  std::string CheckReplica(int node, broker::Replica& replica, Seen& seen);
  std::string Verify(int node, broker::Replica& replica, Seen& seen);

  control_sim::ControlPlane& plane_;
  std::map<std::pair<PartitionId, LeaderEpoch>, BrokerId> leaders_;
  std::map<PartitionId, std::map<Offset, Committed>> history_;
  std::array<std::map<PartitionId, Seen>, control_sim::ControlPlane::kNodes> seen_;
  uint64_t checks_ = 0;
  Counters counters_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_DATA_INVARIANTS_H_
