#ifndef CONCLAVE_COMMON_RPC_GROUP_METHODS_H_
#define CONCLAVE_COMMON_RPC_GROUP_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/group.pb.h"

// The methods of GroupService (proto/conclave/v1/group_service.proto).
namespace conclave::group_methods {

inline constexpr Method<v1::FindCoordinatorRequest, v1::FindCoordinatorResponse> kFindCoordinator{
    "/conclave.v1.GroupService/FindCoordinator"};
inline constexpr Method<v1::MemberMessage, v1::CoordinatorMessage> kMember{
    "/conclave.v1.GroupService/Member"};
inline constexpr Method<v1::CommitOffsetsRequest, v1::CommitOffsetsResponse> kCommitOffsets{
    "/conclave.v1.GroupService/CommitOffsets"};
inline constexpr Method<v1::FetchOffsetsRequest, v1::FetchOffsetsResponse> kFetchOffsets{
    "/conclave.v1.GroupService/FetchOffsets"};
inline constexpr Method<v1::ListGroupsRequest, v1::ListGroupsResponse> kListGroups{
    "/conclave.v1.GroupService/ListGroups"};
inline constexpr Method<v1::DescribeGroupsRequest, v1::DescribeGroupsResponse> kDescribeGroups{
    "/conclave.v1.GroupService/DescribeGroups"};

}  // namespace conclave::group_methods

#endif  // CONCLAVE_COMMON_RPC_GROUP_METHODS_H_
