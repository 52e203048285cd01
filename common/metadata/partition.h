#ifndef CONCLAVE_COMMON_METADATA_PARTITION_H_
#define CONCLAVE_COMMON_METADATA_PARTITION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/types/ids.h"
#include "conclave/v1/metadata_records.pb.h"

namespace conclave {

// A partition's name across topics of the same name: topics are told apart by id.
struct PartitionId {
  TopicId topic;
  PartitionIndex index;

  friend constexpr auto operator<=>(const PartitionId& a, const PartitionId& b) = default;
};

// "<topic id>-<partition>"
std::string ToString(const PartitionId& id);

struct PartitionReplica {
  BrokerId broker;
  DirectoryId directory;

  friend constexpr bool operator==(const PartitionReplica&, const PartitionReplica&) = default;
};

struct Partition {
  // In assignment order: the first is preferred as leader. Never empty, a broker at most once.
  std::vector<PartitionReplica> replicas;
  // Among the replicas. Empty only when the last member has lost records, or may have; the note
  // says so.
  std::vector<BrokerId> isr;
  // Eligible leader replicas (KIP-966): among the replicas, none of them in the ISR. They left it
  // while it was under the minimum, so they have all that is committed.
  std::vector<BrokerId> elr;
  // In the ISR, or kNoBroker.
  BrokerId leader = kNoBroker;
  // Never falls; rises with every change of `leader` and every re-election of the same one.
  LeaderEpoch leader_epoch;
  // Rises with every change of any field.
  PartitionEpoch partition_epoch;
  // Why there is no leader, or that an election may have lost records; for people.
  std::string note;
  // While there is no leader: see PartitionRecord. In neither ISR nor ELR.
  std::vector<BrokerId> stopped_uncleanly;
  // In effect: see PartitionRecord.
  v1::FlushPolicy flush_policy = v1::FLUSH_POLICY_FSYNC;

  bool HasReplica(BrokerId broker) const;
  bool InIsr(BrokerId broker) const;
  bool InElr(BrokerId broker) const;
  bool HasStoppedUncleanly(BrokerId broker) const;
  // In assignment order, those of `brokers`.
  std::vector<BrokerId> InAssignmentOrder(const std::vector<BrokerId>& brokers) const;

  friend bool operator==(const Partition&, const Partition&) = default;
};

// What must hold of a partition by itself: see the fields.
absl::Status CheckPartition(const Partition& partition);

// What must hold between a partition and its next state: epochs rise, and no leader without one.
absl::Status CheckSuccession(const Partition& before, const Partition& after);

v1::PartitionRecord ToRecord(const PartitionId& id, const Partition& partition);

// Everything but the replicas, which stay.
v1::PartitionChangeRecord ToChangeRecord(const PartitionId& id, const Partition& partition);

// Refuses only what has no typed form; CheckPartition looks at the rest.
absl::StatusOr<Partition> PartitionFromRecord(const v1::PartitionRecord& record);

// `before` with the record's fields.
Partition PartitionAfter(const Partition& before, const v1::PartitionChangeRecord& record);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_PARTITION_H_
