#ifndef CONCLAVE_BROKER_PARTITION_REPLICA_REPORT_H_
#define CONCLAVE_BROKER_PARTITION_REPLICA_REPORT_H_

#include <compare>
#include <map>
#include <string>

#include "common/metadata/partition.h"
#include "common/types/ids.h"

namespace conclave::broker {

// What the controller has to know of this broker's replicas, for as long as it is so: goes with
// every heartbeat.
struct ReplicaReport {
  struct Damage {
    // Which file, and which offsets; for people.
    std::string what;
    // The log is open, and what is not damaged can be served.
    bool open = false;

    friend bool operator==(const Damage&, const Damage&) = default;
  };
  struct End {
    // -1: the log is empty.
    LeaderEpoch last_epoch;
    Offset log_end;

    friend bool operator==(const End&, const End&) = default;
  };

  std::map<PartitionId, Damage> damaged;
  // Of partitions that wait for all their replicas that stopped uncleanly.
  std::map<PartitionId, End> ends;

  friend bool operator==(const ReplicaReport&, const ReplicaReport&) = default;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_REPLICA_REPORT_H_
