#ifndef CONCLAVE_BROKER_REPLICATION_TYPES_H_
#define CONCLAVE_BROKER_REPLICATION_TYPES_H_

#include <compare>
#include <cstdint>
#include <vector>

#include "common/types/ids.h"
#include "common/types/strong_int.h"

// The nouns of replication. Plain values.
namespace conclave::replication {

// Numbers the positionings of one follower's replica on one stream; raised by each. What carries
// another is of an earlier positioning, and dropped.
using Session = StrongInt<struct SessionTag, int64_t>;

// Numbers the times at which a leader asks whether it is followed still; 0: never.
using Round = StrongInt<struct RoundTag, int64_t>;

// "No epoch": of an empty log.
inline constexpr LeaderEpoch kNoEpoch{-1};

// How far a log goes. durable <= end; everything below `durable` is synced.
struct LogPosition {
  Offset end;
  Offset durable;

  friend constexpr bool operator==(const LogPosition&, const LogPosition&) = default;
};

// An epoch and where it ends: the first offset of the next one, or the log's end (KIP-101).
struct EpochEnd {
  LeaderEpoch epoch = kNoEpoch;
  Offset end;

  friend constexpr bool operator==(const EpochEnd&, const EpochEnd&) = default;
};

// A member of an ISR, and under which of its incarnations its position was acknowledged (KIP-903).
struct IsrMember {
  BrokerId broker;
  BrokerEpoch epoch;

  friend constexpr auto operator<=>(const IsrMember&, const IsrMember&) = default;
};

// What a replica's acknowledgement promises: that the records are synced, or that they are in its
// log.
enum class FlushPolicy { kFsync, kReplicated };

// What the metadata says of a partition that matters here.
struct PartitionState {
  LeaderEpoch leader_epoch;
  PartitionEpoch partition_epoch;
  std::vector<BrokerId> replicas;
  std::vector<BrokerId> isr;
  // Eligible as leaders beside the ISR, while it is under its minimum (KIP-966).
  std::vector<BrokerId> elr;
  // In effect, as the controller goes by it where a replica stops uncleanly.
  FlushPolicy flush_policy = FlushPolicy::kFsync;
};

}  // namespace conclave::replication

#endif  // CONCLAVE_BROKER_REPLICATION_TYPES_H_
