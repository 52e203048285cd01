#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_CONSUMER_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_CONSUMER_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/consumer/consumer.h"
#include "common/random/random.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/recorder.h"

namespace conclave::cluster_sim {

// A consumer of the client library that reads a topic from its start.
//
// Of each partition offsets follow each other without a gap or a repeat; the position is never
// reset once it is set.
class ConsumerWorkload {
 public:
  // `recorder` outlives it.
  ConsumerWorkload(Cluster& cluster, const Random& random, Recorder& recorder, std::string topic,
                   int partitions);

  void Start();

  // It has seen as much of each partition as the leader has committed.
  bool IsAtEnd();
  uint64_t polled() const { return polled_; }

 private:
  void Poll();
  void Take(const PartitionRecords& records, history::Time invoke);

  Cluster& cluster_;
  Recorder& recorder_;
  const std::string topic_;
  const int partitions_;
  std::unique_ptr<Consumer> consumer_;
  // By partition: all below was polled.
  std::vector<int64_t> next_;
  uint64_t polled_ = 0;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_CONSUMER_WORKLOAD_H_
