#ifndef CONCLAVE_BROKER_SERVER_FETCH_SERVICE_H_
#define CONCLAVE_BROKER_SERVER_FETCH_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "broker/partition/replica.h"
#include "broker/partition/replica_set.h"
#include "common/executor/executor.h"
#include "common/rpc/server.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave::broker {

// Gives records out, and says where they are (fetch.proto). A stream is pushed what comes below the
// high watermark, as fast as its client takes it; a unary fetch waits for it.
//
// Not thread-safe; on the partitions' executor. What is passed by reference outlives it.
class FetchService {
 public:
  FetchService(ReplicaSet& replicas, Executor& executor);
  ~FetchService();

  void AddMethods(MethodTable& table);

  v1::OffsetsForLeaderEpochResponse OffsetsForLeaderEpoch(
      const v1::OffsetsForLeaderEpochRequest& request);

 private:
  class LongPoll;
  class Push;

  struct Listing;

  void ListOffsets(std::shared_ptr<Listing> listing);
  void ListOffset(const v1::ListOffsetsPartition& asked, v1::ListOffsetsResult& result);
  static absl::Status LookUp(Replica& replica, const v1::ListOffsetsPartition& asked,
                             v1::ListOffsetsResult& result);

  ReplicaSet& replicas_;
  Executor& executor_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, std::unique_ptr<LongPoll>> polls_;
  std::map<uint64_t, std::unique_ptr<Push>> pushes_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_FETCH_SERVICE_H_
