#ifndef CONCLAVE_BROKER_PARTITION_LEADER_STREAMS_H_
#define CONCLAVE_BROKER_PARTITION_LEADER_STREAMS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/partition/replica.h"
#include "common/executor/executor.h"
#include "common/metadata/partition.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"

namespace conclave::broker {

// The follower's ends of the replication streams: one to each broker that leads partitions for this
// one. Positions the replicas, takes in what the leaders push, and acknowledges it; while one
// message is under way the next acknowledgements gather.
//
// Not thread-safe; on the partitions' executor. Destroyed after that has stopped.
class LeaderStreams {
 public:
  struct Options {
    ClusterId cluster_id;
    BrokerId self;
  };
  struct Partitions {
    std::function<Replica*(const PartitionId&)> find;
    std::function<void(Replica&)> touch;
    // Another log takes the place of one that has lost records, and follows.
    std::function<void(const PartitionId&)> replace;
  };

  LeaderStreams(Options options, Partitions partitions, Transport& transport, Executor& executor);
  ~LeaderStreams();

  // Streams opened from now on carry this epoch; those that are open are opened anew.
  void SetBrokerEpoch(BrokerEpoch epoch);
  // Where brokers are; a stream to one that moved, or has another process, is opened anew.
  struct Address {
    std::string endpoint;
    BrokerEpoch epoch;
    friend bool operator==(const Address&, const Address&) = default;
  };
  void SetBrokers(std::map<BrokerId, Address> brokers);

  // The replica has begun to follow, or follows another epoch: position it.
  void Begin(const Replica& replica);
  // It follows nobody any more, or is gone.
  void End(const PartitionId& id);

  // The replica's log may have come further.
  void Offer(const Replica& replica);
  void Flush();
  // Every FollowerStreams::kSignOfLife or so.
  void Tick();

 private:
  class Link;

  Link& LinkTo(BrokerId leader);

  const Options options_;
  const Partitions partitions_;
  Transport& transport_;
  Executor& executor_;
  BrokerEpoch epoch_;
  std::map<BrokerId, Address> brokers_;
  // Made when first needed, and kept: brokers are few.
  std::map<BrokerId, std::unique_ptr<Link>> links_;
  std::map<PartitionId, BrokerId> followed_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_LEADER_STREAMS_H_
