#ifndef CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_
#define CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_

#include "common/buffer/payload.h"
#include "common/rpc/method.h"
#include "conclave/v1/produce.pb.h"

namespace conclave {

template <>
struct PayloadPathOf<v1::ProduceRequest> {
  static constexpr PayloadPath kPath{v1::ProduceRequest::kPartitionsFieldNumber,
                                     v1::ProducePartition::kBatchFieldNumber};
};

}  // namespace conclave

// The methods of ProduceService (proto/conclave/v1/produce_service.proto). Those with payloads are
// the same on the wire, and do not copy batches.
namespace conclave::produce_methods {

using ProduceRequest = WithPayloads<v1::ProduceRequest>;

inline constexpr Method<v1::ProduceRequest, v1::ProduceResponse> kProduce{
    "/conclave.v1.ProduceService/Produce"};
inline constexpr Method<v1::ProduceRequest, v1::ProduceResponse> kProduceStream{
    "/conclave.v1.ProduceService/ProduceStream"};
inline constexpr Method<ProduceRequest, v1::ProduceResponse> kProduceWithPayloads{kProduce.name};
inline constexpr Method<ProduceRequest, v1::ProduceResponse> kProduceStreamWithPayloads{
    kProduceStream.name};
inline constexpr Method<v1::InitProducerIdRequest, v1::InitProducerIdResponse> kInitProducerId{
    "/conclave.v1.ProduceService/InitProducerId"};

}  // namespace conclave::produce_methods

#endif  // CONCLAVE_COMMON_RPC_PRODUCE_METHODS_H_
