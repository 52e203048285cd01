#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/producer/producer.h"
#include "common/random/random.h"
#include "tests/simulation/cluster/client_host.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/recorder.h"

namespace conclave::cluster_sim {

// A producer of the client library that sends numbered values, each once.
class ProducerWorkload {
 public:
  struct Counters {
    uint64_t sent = 0;
    uint64_t acknowledged = 0;
    uint64_t refused = 0;
    uint64_t unknown = 0;
    // Acknowledged by a leader that found them stored before.
    uint64_t duplicates = 0;
  };

  // `number`: of this one among those that send to the topic. `recorder` outlives it.
  ProducerWorkload(Cluster& cluster, const Random& random, Recorder& recorder, std::string topic,
                   int partitions, int number);
  ~ProducerWorkload();

  const std::string& name() const { return host_.name(); }

  // Sends every `mean_pause` or so until Stop.
  void Start(Duration mean_pause);
  void Stop() { running_ = false; }
  void Pause(Duration how_long);
  // Nothing is under way.
  bool idle() const { return open_ == 0; }

  const Counters& counters() const { return counters_; }
  // Of the last record that was not acknowledged.
  const absl::Status& last_failure() const { return last_failure_; }

 private:
  void Next();
  void SendOne();
  void Delivered(size_t send, const Delivery& delivery);

  Cluster& cluster_;
  Recorder& recorder_;
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
  Counters counters_;
  absl::Status last_failure_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_PRODUCER_WORKLOAD_H_
