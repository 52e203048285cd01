#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/producer/producer.h"
#include "common/random/random.h"
#include "tests/simulation/cluster/client_host.h"
#include "tests/simulation/cluster/cluster.h"

namespace conclave::cluster_sim {

// A producer of the client library that sends numbered values, each once, and remembers what it was
// told of each.
class ProducerWorkload {
 public:
  struct Counters {
    uint64_t sent = 0;
    uint64_t acknowledged = 0;
    uint64_t refused = 0;
    uint64_t unknown = 0;
  };

  // `number`: of this one among those that send to the topic.
  ProducerWorkload(Cluster& cluster, const Random& random, std::string topic, int partitions,
                   int number);
  ~ProducerWorkload();

  const std::string& name() const { return host_.name(); }

  // Sends every `mean_pause` or so until Stop.
  void Start(Duration mean_pause);
  void Stop() { running_ = false; }
  void Pause(Duration how_long);
  // Nothing is under way.
  bool idle() const { return open_ == 0; }

  // Reads the whole topic, once the cluster is whole again: what was acknowledged is there once, at
  // its offset; nothing is there twice, or that was refused; of each partition the values rise, as
  // they were sent. Broken rules end the run.
  void CheckFinal();

  const Counters& counters() const { return counters_; }

 private:
  struct Acknowledged {
    int partition = 0;
    Offset offset;
  };

  void Next();
  void SendOne();
  // The number of records that retention had removed.
  size_t CheckPartition(int partition, const std::vector<std::optional<std::string>>& values);

  Cluster& cluster_;
  Random random_;
  const std::string topic_;
  const int partitions_;
  const uint64_t number_;
  ClientHost host_;
  std::unique_ptr<Producer> producer_;
  Duration mean_pause_;
  bool running_ = false;
  uint64_t open_ = 0;
  uint64_t last_value_ = 0;
  std::map<uint64_t, Acknowledged> acknowledged_;
  // Certainly not stored.
  std::map<uint64_t, std::string> refused_;
  std::map<uint64_t, int> seen_;
  Counters counters_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_
