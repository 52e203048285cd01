#ifndef CONCLAVE_COMMON_TRANSPORT_WIRE_H_
#define CONCLAVE_COMMON_TRANSPORT_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/executor/executor.h"

namespace conclave {

// Decides when, and whether, what one node sends reaches another. A stream's events reach each end
// in the order they were given; a wire that cannot keep that breaks the stream (MemoryNetwork's
// BreakStreams).
class Wire {
 public:
  virtual ~Wire() = default;

  // Runs `deliver` on `receiver`, once, at a moment of the wire's choice; or drops it unrun.
  // `from` and `to` are node names; `stream` is the same number for all events of one direction of
  // one stream, in whose order they must run. Thread-safe.
  virtual void Carry(const std::string& from, const std::string& to, uint64_t stream, size_t bytes,
                     Executor& receiver, Executor::Task deliver) = 0;

  // Whether `from` can connect to `to` now. A refusal closes the new stream as UNAVAILABLE.
  virtual bool CanConnect(const std::string& from, const std::string& to) = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_WIRE_H_
