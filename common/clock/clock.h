#ifndef CONCLAVE_COMMON_CLOCK_CLOCK_H_
#define CONCLAVE_COMMON_CLOCK_CLOCK_H_

#include "common/types/time.h"

namespace conclave {

// Where time comes from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Never steps back; for every timeout.
  virtual MonotonicTime Now() const = 0;
  // May step either way; for record timestamps and for people.
  virtual WallTime WallNow() const = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CLOCK_CLOCK_H_
