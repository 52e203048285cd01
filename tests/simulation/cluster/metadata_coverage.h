#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_METADATA_COVERAGE_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_METADATA_COVERAGE_H_

#include <map>
#include <vector>

#include "common/metadata/image.h"
#include "common/metadata/position.h"
#include "common/types/ids.h"
#include "tests/simulation/cluster/coverage.h"

namespace conclave::cluster_sim {

// Counts what controllers decide, from the committed images as they come to be known.
class MetadataCoverage {
 public:
  // `coverage` outlives it.
  explicit MetadataCoverage(Coverage& coverage) : coverage_(coverage) {}

  // Of any node; those that are no newer than others were are passed over.
  void Observe(const MetadataImage& image);

 private:
  void Compare(const Topic& topic, const Partition& before, const Partition& after);
  void Compare(const Broker& before, const Broker& after);

  Coverage& coverage_;
  MetadataPosition newest_;
  std::map<TopicId, std::vector<Partition>> partitions_;
  std::map<BrokerId, Broker> brokers_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_METADATA_COVERAGE_H_
