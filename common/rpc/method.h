#ifndef CONCLAVE_COMMON_RPC_METHOD_H_
#define CONCLAVE_COMMON_RPC_METHOD_H_

namespace conclave {

// A method of a service in proto/conclave/v1, with its types. `name` is gRPC's:
// "/conclave.v1.Service/Method". The constants stand in a header a service beside this one.
template <class RequestType, class ResponseType>
struct Method {
  using Request = RequestType;
  using Response = ResponseType;

  const char* name;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RPC_METHOD_H_
