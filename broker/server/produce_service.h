#ifndef CONCLAVE_BROKER_SERVER_PRODUCE_SERVICE_H_
#define CONCLAVE_BROKER_SERVER_PRODUCE_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "broker/partition/replica_set.h"
#include "broker/server/producer_ids.h"
#include "common/executor/executor.h"
#include "common/rpc/produce_methods.h"
#include "common/rpc/server.h"
#include "conclave/v1/produce.pb.h"

namespace conclave::broker {

// Takes records in (produce.proto): checks each batch, appends it to the log of the partition, and
// answers as `acks` asks: once the high watermark has passed it (all), at once (1), or not at all
// (0). Idempotent producers' repeats are answered with where the batch is.
//
// Not thread-safe; on the partitions' executor. What is passed by reference outlives it.
class ProduceService {
 public:
  ProduceService(ReplicaSet& replicas, ProducerIds& producer_ids, Executor& executor);
  ~ProduceService();

  void AddMethods(MethodTable& table);

  using Answer = std::function<void(v1::ProduceResponse)>;
  // `answer` is called once, possibly before this returns.
  void Produce(produce_methods::ProduceRequest request, Answer answer);

 private:
  class Request;
  class Link;

  ReplicaSet& replicas_;
  ProducerIds& producer_ids_;
  Executor& executor_;
  uint64_t last_link_ = 0;
  std::map<uint64_t, std::shared_ptr<Link>> links_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_PRODUCE_SERVICE_H_
