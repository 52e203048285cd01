#ifndef CONCLAVE_CLIENT_BASE_BACKOFF_H_
#define CONCLAVE_CLIENT_BASE_BACKOFF_H_

#include <algorithm>

#include "common/random/random.h"
#include "common/types/time.h"

namespace conclave {

// Pauses between tries: each twice the one before up to a limit, and up to a fifth more or less, so
// that many clients do not come back in step. Not thread-safe.
class Backoff {
 public:
  Backoff(Duration first, Duration limit) : first_(first), limit_(limit), next_(first) {}

  Duration Next(Random& random) {
    const Duration pause = next_;
    next_ = std::min(next_ * 2, limit_);
    return pause * random.Between(80, 120) / 100;
  }
  void Reset() { next_ = first_; }

 private:
  Duration first_;
  Duration limit_;
  Duration next_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_BASE_BACKOFF_H_
