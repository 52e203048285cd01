#ifndef CONCLAVE_COMMON_RPC_RAFT_METHODS_H_
#define CONCLAVE_COMMON_RPC_RAFT_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/raft.pb.h"
#include "conclave/v1/raft_service.pb.h"

// The methods of RaftService (proto/conclave/v1/raft_service.proto).
namespace conclave::raft_methods {

inline constexpr Method<v1::RaftMessage, v1::RaftStreamClosed> kMessages{
    "/conclave.v1.RaftService/Messages"};

}  // namespace conclave::raft_methods

#endif  // CONCLAVE_COMMON_RPC_RAFT_METHODS_H_
