#include "common/random/entropy.h"

#include <glog/logging.h>
#include <sys/random.h>

namespace conclave {

uint64_t EntropySeed() {
  uint64_t seed = 0;
  // Up to 256 bytes come whole or not at all (getrandom(2)).
  PCHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed) << "getrandom failed";
  return seed;
}

}  // namespace conclave
