#ifndef CONCLAVE_CONTROLLER_CORE_INVARIANTS_H_
#define CONCLAVE_CONTROLLER_CORE_INVARIANTS_H_

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "common/metadata/image.h"
#include "common/metadata/partition.h"
#include "common/types/ids.h"

// What must hold of metadata whatever happened. Written apart from the code that keeps it, to be
// run after every event of a test or a simulation.
namespace conclave::controller {

// Of any image, after any batch: a leader is registered, unfenced and in sync; the ISR is within
// the replicas, and empty only where a lost directory is noted; a fenced broker is in sync only as
// the last, without a leader; indexes agree with what they index.
absl::Status CheckImage(const MetadataImage& image);

// Of an image after all batches of a change: nobody is without a leader who could have one.
absl::Status CheckEverybodyIsLed(const MetadataImage& image);

// Of committed images in the order in which they came to be: one leader for each (partition, leader
// epoch), for ever; epochs and producer ids never fall.
class MetadataHistory {
 public:
  absl::Status Observe(const MetadataImage& committed);

 private:
  absl::Status ObservePartition(const PartitionId& id, const Partition& partition);

  struct Epochs {
    LeaderEpoch leader;
    PartitionEpoch partition;
  };

  std::map<PartitionId, Epochs> epochs_;
  std::map<std::pair<PartitionId, LeaderEpoch>, BrokerId> leaders_;
  std::map<BrokerId, BrokerEpoch> broker_epochs_;
  ProducerId next_producer_id_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_INVARIANTS_H_
