#ifndef CONCLAVE_COMMON_RPC_CONTROLLER_METHODS_H_
#define CONCLAVE_COMMON_RPC_CONTROLLER_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/admin.pb.h"
#include "conclave/v1/controller.pb.h"

// The methods of ControllerService (proto/conclave/v1/controller_service.proto).
namespace conclave::controller_methods {

inline constexpr Method<v1::RegisterBrokerRequest, v1::RegisterBrokerResponse> kRegisterBroker{
    "/conclave.v1.ControllerService/RegisterBroker"};
inline constexpr Method<v1::BrokerHeartbeat, v1::BrokerHeartbeatReply> kBrokerSession{
    "/conclave.v1.ControllerService/BrokerSession"};
inline constexpr Method<v1::AlterPartitionRequest, v1::AlterPartitionResponse> kAlterPartition{
    "/conclave.v1.ControllerService/AlterPartition"};
inline constexpr Method<v1::AllocateProducerIdsRequest, v1::AllocateProducerIdsResponse>
    kAllocateProducerIds{"/conclave.v1.ControllerService/AllocateProducerIds"};
inline constexpr Method<v1::CreateTopicsRequest, v1::CreateTopicsResponse> kCreateInternalTopics{
    "/conclave.v1.ControllerService/CreateInternalTopics"};
inline constexpr Method<v1::WatchMetadataRequest, v1::WatchMetadataResponse> kWatchMetadata{
    "/conclave.v1.ControllerService/WatchMetadata"};

}  // namespace conclave::controller_methods

#endif  // CONCLAVE_COMMON_RPC_CONTROLLER_METHODS_H_
