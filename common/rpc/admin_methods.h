#ifndef CONCLAVE_COMMON_RPC_ADMIN_METHODS_H_
#define CONCLAVE_COMMON_RPC_ADMIN_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/admin.pb.h"

// The methods of AdminService (proto/conclave/v1/admin_service.proto).
namespace conclave::admin_methods {

inline constexpr Method<v1::CreateTopicsRequest, v1::CreateTopicsResponse> kCreateTopics{
    "/conclave.v1.AdminService/CreateTopics"};
inline constexpr Method<v1::DeleteTopicsRequest, v1::DeleteTopicsResponse> kDeleteTopics{
    "/conclave.v1.AdminService/DeleteTopics"};
inline constexpr Method<v1::DescribeTopicsRequest, v1::DescribeTopicsResponse> kDescribeTopics{
    "/conclave.v1.AdminService/DescribeTopics"};
inline constexpr Method<v1::AlterConfigsRequest, v1::AlterConfigsResponse> kAlterConfigs{
    "/conclave.v1.AdminService/AlterConfigs"};
inline constexpr Method<v1::ElectLeadersRequest, v1::ElectLeadersResponse> kElectLeaders{
    "/conclave.v1.AdminService/ElectLeaders"};
inline constexpr Method<v1::DescribeQuorumRequest, v1::DescribeQuorumResponse> kDescribeQuorum{
    "/conclave.v1.AdminService/DescribeQuorum"};
inline constexpr Method<v1::DescribeClusterRequest, v1::DescribeClusterResponse> kDescribeCluster{
    "/conclave.v1.AdminService/DescribeCluster"};
// Of the partitions' leaders.
inline constexpr Method<v1::DeleteRecordsRequest, v1::DeleteRecordsResponse> kDeleteRecords{
    "/conclave.v1.AdminService/DeleteRecords"};

}  // namespace conclave::admin_methods

#endif  // CONCLAVE_COMMON_RPC_ADMIN_METHODS_H_
