#ifndef CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_
#define CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_

#include "common/rpc/method.h"
#include "conclave/v1/produce.pb.h"

// The methods of ProduceService (proto/conclave/v1/produce_service.proto).
namespace conclave::produce_methods {

inline constexpr Method<v1::ProduceRequest, v1::ProduceResponse> kProduce{
    "/conclave.v1.ProduceService/Produce"};
inline constexpr Method<v1::ProduceRequest, v1::ProduceResponse> kProduceStream{
    "/conclave.v1.ProduceService/ProduceStream"};
inline constexpr Method<v1::InitProducerIdRequest, v1::InitProducerIdResponse> kInitProducerId{
    "/conclave.v1.ProduceService/InitProducerId"};

}  // namespace conclave::produce_methods

#endif  // CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_
