#ifndef CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_
#define CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_

#include "common/buffer/payload.h"
#include "common/rpc/method.h"
#include "conclave/v1/replication.pb.h"

namespace conclave {

template <>
struct PayloadPathOf<v1::LeaderMessage> {
  static constexpr PayloadPath kPath{v1::LeaderMessage::kPartitionsFieldNumber,
                                     v1::LeaderPartition::kBatchesFieldNumber};
};

}  // namespace conclave

// The methods of ReplicationService (proto/conclave/v1/replication_service.proto).
namespace conclave::replication_methods {

// Batches are not copied.
using LeaderMessage = WithPayloads<v1::LeaderMessage>;

inline constexpr Method<v1::FollowerMessage, LeaderMessage> kReplicate{
    "/conclave.v1.ReplicationService/Replicate"};

}  // namespace conclave::replication_methods

#endif  // CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_
