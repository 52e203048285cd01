#ifndef CONCLAVE_CONTROLLER_CORE_CHANGE_H_
#define CONCLAVE_CONTROLLER_CORE_CHANGE_H_

#include <vector>

#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/controller.pb.h"
#include "conclave/v1/metadata_records.pb.h"

namespace conclave::controller {

// The moment of a call, on both clocks: the monotonic one times sessions, the wall clock is written
// into records, for people.
struct Now {
  MonotonicTime time;
  WallTime wall;
};

// To be appended in order. Each leaves the image consistent, so that any number of them, from the
// first on, may be all that is ever committed.
using Batches = std::vector<v1::MetadataBatch>;

// What a handler decided. `response` leaves once the last of `batches` is committed; without any,
// once everything appended before is.
template <class Response>
struct Change {
  Batches batches;
  Response response;
};

struct NoResponse {};

// Puts in what only the append could tell: to be called once all batches of the change are
// appended, the last of them at `last`. Of no effect on responses that need nothing.
template <class Response>
void CompleteResponse(LogIndex last, Response& response) {
  static_cast<void>(last);
  static_cast<void>(response);
}

// A broker's epoch is where its registration stands. Set already where it is no new registration.
inline void CompleteResponse(LogIndex last, v1::RegisterBrokerResponse& response) {
  if (response.broker_epoch() == 0) {
    response.set_broker_epoch(static_cast<int64_t>(last.value()));
  }
}

}  // namespace conclave::controller

#endif  // CONCLAVE_CONTROLLER_CORE_CHANGE_H_
