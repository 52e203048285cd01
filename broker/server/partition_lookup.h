#ifndef CONCLAVE_BROKER_SERVER_PARTITION_LOOKUP_H_
#define CONCLAVE_BROKER_SERVER_PARTITION_LOOKUP_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/partition/replica.h"
#include "broker/partition/replica_set.h"
#include "common/metadata/image.h"
#include "common/types/ids.h"

namespace conclave::broker {

// A partition as requests name it: the topic by name, by id (16 bytes), or by both, which must agree
// then.
struct PartitionName {
  const std::string& topic;
  const std::string& topic_id;
  int32_t partition;
};

// UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (also where name and id do not agree: the topic was
// made anew), INVALID_REQUEST.
absl::StatusOr<PartitionId> ResolvePartition(const MetadataImage& image, const PartitionName& name);

// The replica, which leads on this broker. Else as above; LEADER_NOT_AVAILABLE, or
// NOT_LEADER_OR_FOLLOWER with where the leader is (KIP-951).
absl::StatusOr<Replica*> FindLeader(ReplicaSet& replicas, const PartitionName& name);

// The leader epoch that a client believes in, if it says one (KIP-320): FENCED_LEADER_EPOCH if it
// is over, UNKNOWN_LEADER_EPOCH if it is ahead of this broker.
absl::Status CheckEpoch(const Replica& leader, std::optional<int32_t> epoch);

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_PARTITION_LOOKUP_H_
