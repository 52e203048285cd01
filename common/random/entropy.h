#ifndef CONCLAVE_COMMON_RANDOM_ENTROPY_H_
#define CONCLAVE_COMMON_RANDOM_ENTROPY_H_

#include <cstdint>

namespace conclave {

// 64 bits from the operating system's generator, to seed a Random with. Never called by a core.
uint64_t EntropySeed();

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RANDOM_ENTROPY_H_
