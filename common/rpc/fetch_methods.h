#ifndef CONCLAVE_COMMON_RPC_FETCH_METHODS_H_
#define CONCLAVE_COMMON_RPC_FETCH_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/fetch.pb.h"

// The methods of FetchService (proto/conclave/v1/fetch_service.proto).
namespace conclave::fetch_methods {

inline constexpr Method<v1::FetchRequest, v1::FetchResponse> kFetch{
    "/conclave.v1.FetchService/Fetch"};
inline constexpr Method<v1::FetchRequest, v1::FetchResponse> kFetchStream{
    "/conclave.v1.FetchService/FetchStream"};
inline constexpr Method<v1::ListOffsetsRequest, v1::ListOffsetsResponse> kListOffsets{
    "/conclave.v1.FetchService/ListOffsets"};
inline constexpr Method<v1::OffsetsForLeaderEpochRequest, v1::OffsetsForLeaderEpochResponse>
    kOffsetsForLeaderEpoch{"/conclave.v1.FetchService/OffsetsForLeaderEpoch"};

}  // namespace conclave::fetch_methods

#endif  // CONCLAVE_COMMON_RPC_FETCH_METHODS_H_
