#ifndef CONCLAVE_BROKER_PARTITION_FOLLOWER_STREAMS_H_
#define CONCLAVE_BROKER_PARTITION_FOLLOWER_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "broker/partition/replica.h"
#include "common/executor/executor.h"
#include "common/metadata/partition.h"
#include "common/rpc/replication_methods.h"
#include "common/rpc/server.h"
#include "common/types/ids.h"
#include "conclave/v1/replication.pb.h"

namespace conclave::broker {

// The leader's ends of the replication streams: one from each broker that follows partitions here,
// bound to the follower's broker epoch (semantics, section 3). What was appended is pushed as soon
// as the stream takes it; while one message is under way the next gathers, many partitions in one.
//
// Not thread-safe; on the partitions' executor.
class FollowerStreams {
 public:
  using Stream = TypedServerStream<v1::FollowerMessage, replication_methods::LeaderMessage>;

  struct Options {
    ClusterId cluster_id;
    BrokerId self;
    // Of batches in one message; one batch more than that at the least.
    size_t message_bytes = size_t{1} << 20;
  };
  struct Partitions {
    // nullptr: not on this broker.
    std::function<Replica*(const PartitionId&)> find;
    // Something was done with the replica: settle it.
    std::function<void(Replica&)> touch;
    // Of the broker's registration, as the metadata has it; nullopt: it is not registered.
    std::function<std::optional<BrokerEpoch>(BrokerId)> epoch_of;
  };

  // A peer that says nothing for that long is gone; both sides send a sign of life more often.
  static constexpr Duration kSilence = Duration::Seconds(5);
  static constexpr Duration kSignOfLife = Duration::Seconds(1);

  FollowerStreams(Options options, Partitions partitions, Executor& executor);
  ~FollowerStreams();

  void Accept(std::unique_ptr<Stream> stream);

  // The replica may have something for its followers: batches, or a high watermark.
  void Offer(const Replica& replica);
  // Sends what was offered, as far as the streams take it.
  void Flush();
  // Every kSignOfLife or so.
  void Tick();

 private:
  class Link;

  void Erase(uint64_t number);

  const Options options_;
  const Partitions partitions_;
  Executor& executor_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::unique_ptr<Link>> links_;
  // The newest of each follower.
  std::map<BrokerId, Link*> by_follower_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_PARTITION_FOLLOWER_STREAMS_H_
