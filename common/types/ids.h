#ifndef CONCLAVE_COMMON_TYPES_IDS_H_
#define CONCLAVE_COMMON_TYPES_IDS_H_

#include <cstdint>

#include "common/types/strong_int.h"
#include "common/types/uuid.h"

// The names every room shares. Ids say which thing, epochs and terms which reign, offsets and
// indexes which position.
namespace conclave {

// --- Quorum
// ---------------------------------------------------------------------------------------

// A controller's number, given by the operator at format. Positive or 0; -1 is "none".
using NodeId = StrongInt<struct NodeIdTag, int32_t>;
inline constexpr NodeId kNoNode{-1};

// A Raft term (Raft paper, section 5.1). 0 is before the first election.
using Term = StrongInt<struct TermTag, uint64_t>;

// A position in the Raft log. The first entry is 1; 0 is "before the first".
using LogIndex = StrongInt<struct LogIndexTag, uint64_t>;

// --- Cluster
// --------------------------------------------------------------------------------------

using ClusterId = Uuid<struct ClusterIdTag>;

// One data directory of one node, drawn when it is formatted; a wiped disk has a new one (KIP-858).
using DirectoryId = Uuid<struct DirectoryIdTag>;

// Drawn anew each time a broker process starts (KIP-631).
using IncarnationId = Uuid<struct IncarnationIdTag>;

using TopicId = Uuid<struct TopicIdTag>;

// A broker's number. Positive or 0; -1 is "none", for a partition without a leader.
using BrokerId = StrongInt<struct BrokerIdTag, int32_t>;
inline constexpr BrokerId kNoBroker{-1};

// The index of a broker's registration record in the Raft log: it rises with every incarnation.
using BrokerEpoch = StrongInt<struct BrokerEpochTag, int64_t>;

// --- Partitions
// -----------------------------------------------------------------------------------

// A partition's number within its topic, from 0.
using PartitionIndex = StrongInt<struct PartitionIndexTag, int32_t>;

// Rises with every election of the partition, also of the same broker (KIP-101). -1 is "none".
using LeaderEpoch = StrongInt<struct LeaderEpochTag, int32_t>;

// Rises with every change of the partition's record (KIP-497).
using PartitionEpoch = StrongInt<struct PartitionEpochTag, int32_t>;

// A record's position in a partition. An offset that ends a range is exclusive.
using Offset = StrongInt<struct OffsetTag, int64_t>;

using ProducerId = StrongInt<struct ProducerIdTag, int64_t>;
using ProducerEpoch = StrongInt<struct ProducerEpochTag, int16_t>;

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TYPES_IDS_H_
