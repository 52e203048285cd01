#ifndef CONCLAVE_COMMON_RPC_METADATA_METHODS_H_
#define CONCLAVE_COMMON_RPC_METADATA_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/metadata.pb.h"

// The methods of MetadataService (proto/conclave/v1/metadata_service.proto).
namespace conclave::metadata_methods {

inline constexpr Method<v1::GetMetadataRequest, v1::GetMetadataResponse> kGetMetadata{
    "/conclave.v1.MetadataService/GetMetadata"};

}  // namespace conclave::metadata_methods

#endif  // CONCLAVE_COMMON_RPC_METADATA_METHODS_H_
