#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_RECORDER_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/consumer/consumer.h"
#include "common/metadata/image.h"
#include "tests/history/history.h"
#include "tests/history/recording.h"
#include "tests/simulation/cluster/cluster.h"

namespace conclave::cluster_sim {

// Records what the clients of a simulated cluster do and are told, for the history checker. A
// process of the history is a life of a client or a node.
class Recorder : public history::Recording {
 public:
  // `cluster` outlives it.
  explicit Recorder(Cluster& cluster)
      : Recording(
            [&cluster] { return (cluster.scheduler().now() - MonotonicTime()).nanoseconds(); }),
        cluster_(cluster) {}

  // Of a topic that is never deleted, once it is there.
  history::KeyIndex KeyOf(const std::string& topic, int partition);

  void Polled(std::string_view process, const PartitionRecords& records, history::Time invoke,
              std::string_view group = "");
  // `offset` -1: none was committed.
  void ReadCommitted(std::string_view process, std::string_view group, history::KeyIndex key,
                     int64_t offset, history::Time invoke);
  // What a node's image says of the partitions of `topic` that it did not say before.
  void Observe(int node, const MetadataImage& image, const std::string& topic);
  void ObserveActive(int controller, Term term);
  // Once faults are over and nothing is under way: who led, what the leaders of `topic` hold, and
  // what all its replicas hold.
  void RecordEnd(const std::string& topic, int partitions);

  // "", or the rules that the history breaks, with the first violation of each. All of them are
  // told to the plane's trace.
  std::string Check();

 private:
  // "broker-3#2"
  std::string LifeOf(int node);
  void RecordLeaders();
  void ReadToTheEnd(const std::string& topic, int partition);
  void DumpReplica(int node, const std::string& topic, int partition);

  Cluster& cluster_;
  std::map<std::pair<std::string, int>, history::KeyIndex, std::less<>> keys_;
  // By node and partition: what its present process knows.
  struct Known {
    uint64_t life = 0;
    LeaderEpoch epoch;
    BrokerId leader = kNoBroker;
  };
  std::map<std::pair<int, int>, Known> known_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_RECORDER_H_
