#ifndef CONCLAVE_COMMON_RPC_FETCH_METHODS_H_
#define CONCLAVE_COMMON_RPC_FETCH_METHODS_H_

#include "common/buffer/payload.h"
#include "common/rpc/method.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave {

template <>
struct PayloadPathOf<v1::FetchResponse> {
  static constexpr PayloadPath kPath{v1::FetchResponse::kPartitionsFieldNumber,
                                     v1::FetchPartitionResult::kBatchesFieldNumber};
};

}  // namespace conclave

// The methods of FetchService (proto/conclave/v1/fetch_service.proto). Those with payloads are the
// same on the wire, and do not copy batches.
namespace conclave::fetch_methods {

using FetchResponse = WithPayloads<v1::FetchResponse>;

inline constexpr Method<v1::FetchRequest, v1::FetchResponse> kFetch{
    "/conclave.v1.FetchService/Fetch"};
inline constexpr Method<v1::FetchRequest, v1::FetchResponse> kFetchStream{
    "/conclave.v1.FetchService/FetchStream"};
inline constexpr Method<v1::FetchRequest, FetchResponse> kFetchWithPayloads{kFetch.name};
inline constexpr Method<v1::FetchRequest, FetchResponse> kFetchStreamWithPayloads{
    kFetchStream.name};
inline constexpr Method<v1::ListOffsetsRequest, v1::ListOffsetsResponse> kListOffsets{
    "/conclave.v1.FetchService/ListOffsets"};
inline constexpr Method<v1::OffsetsForLeaderEpochRequest, v1::OffsetsForLeaderEpochResponse>
    kOffsetsForLeaderEpoch{"/conclave.v1.FetchService/OffsetsForLeaderEpoch"};

}  // namespace conclave::fetch_methods

#endif  // CONCLAVE_COMMON_RPC_FETCH_METHODS_H_
