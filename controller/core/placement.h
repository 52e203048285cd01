#ifndef CONCLAVE_CONTROLLER_CORE_PLACEMENT_H_
#define CONCLAVE_CONTROLLER_CORE_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/types/ids.h"

namespace conclave::controller {

// Chooses brokers for the partitions of new topics, from those that are eligible in an image.
//
// Leaders are even within a topic, then in the cluster; replicas likewise; ties by chance.
// Followers go to racks that the partition does not use yet, where there are any; a broker without
// a rack counts as a rack of its own.
class Placement {
 public:
  explicit Placement(const MetadataImage& image);

  size_t broker_count() const { return candidates_.size(); }

  // Brokers of each partition, the leader first. Remembered as load for the topics that follow.
  // `replicas` is at most broker_count().
  std::vector<std::vector<BrokerId>> Place(size_t partitions, size_t replicas, Random& random);

 private:
  static constexpr size_t kNoRack = SIZE_MAX;

  struct Candidate {
    BrokerId broker;
    // Brokers of one rack share a number; kNoRack for none.
    size_t rack = kNoRack;
    size_t leaders = 0;
    size_t replicas = 0;
    // Within the topic that is being placed.
    size_t topic_leaders = 0;
    size_t topic_replicas = 0;
    // Within the partition that is being placed.
    bool chosen = false;
  };

  bool IsRackUsed(const Candidate& candidate) const;
  Candidate& ChooseLeader(Random& random);
  Candidate& ChooseFollower(Random& random);
  std::vector<BrokerId> PlaceOne(size_t replicas, Random& random);

  std::vector<Candidate> candidates_;
  // By the partition that is being placed; as short as its replicas are few.
  std::vector<size_t> used_racks_;
};

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_PLACEMENT_H_
