#ifndef CONCLAVE_BROKER_SERVER_DELETE_RECORDS_SERVICE_H_
#define CONCLAVE_BROKER_SERVER_DELETE_RECORDS_SERVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "broker/partition/replica.h"
#include "broker/partition/replica_set.h"
#include "common/executor/executor.h"
#include "common/rpc/server.h"
#include "common/types/ids.h"
#include "conclave/v1/admin.pb.h"

namespace conclave::broker {

// Moves where partitions begin that this broker leads (KIP-107; DeleteRecords in admin.proto), and
// answers once every in-sync replica has moved, or when the time is over.
//
// Not thread-safe; on the partitions' executor. What is passed by reference outlives it.
class DeleteRecordsService {
 public:
  DeleteRecordsService(ReplicaSet& replicas, Executor& executor)
      : replicas_(replicas), executor_(executor) {}

  void AddMethods(MethodTable& table);

 private:
  class Request;

  ReplicaSet& replicas_;
  Executor& executor_;
};

}  // namespace conclave::broker

#endif  // CONCLAVE_BROKER_SERVER_DELETE_RECORDS_SERVICE_H_
