#ifndef CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_
#define CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/replication.pb.h"

// The methods of ReplicationService (proto/conclave/v1/replication_service.proto).
namespace conclave::replication_methods {

inline constexpr Method<v1::FollowerMessage, v1::LeaderMessage> kReplicate{
    "/conclave.v1.ReplicationService/Replicate"};

}  // namespace conclave::replication_methods

#endif  // CONCLAVE_COMMON_RPC_REPLICATION_METHODS_H_
