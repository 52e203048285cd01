#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_REMOVAL_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_REMOVAL_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "tests/simulation/cluster/cluster.h"

namespace conclave::cluster_sim {

// Somebody who deletes records by offset (KIP-107), often up to within a batch. What was answered
// as deleted is below the log's start ever after.
class RemovalWorkload {
 public:
  RemovalWorkload(Cluster& cluster, const Random& random, std::string topic, int partitions)
      : cluster_(cluster),
        random_(random),
        topic_(std::move(topic)),
        removed_(static_cast<size_t>(partitions)) {}

  void Start(Duration mean_pause);
  void Stop() { running_ = false; }
  bool idle() const { return open_ == 0; }
  uint64_t done() const { return done_; }
  // "", or what is served again. Once all partitions are led, and nothing is under way.
  std::string CheckFinal();

 private:
  void Next();
  void Remove(int partition);

  Cluster& cluster_;
  Random random_;
  const std::string topic_;
  Duration mean_pause_;
  bool running_ = false;
  int open_ = 0;
  uint64_t done_ = 0;
  // By partition: before which offset records were deleted.
  std::vector<Offset> removed_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_REMOVAL_WORKLOAD_H_
