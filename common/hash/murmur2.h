#ifndef CONCLAVE_COMMON_HASH_MURMUR2_H_
#define CONCLAVE_COMMON_HASH_MURMUR2_H_

#include <cstdint>
#include <string_view>

namespace conclave {

// MurmurHash2 with the seed that Kafka's clients use for keys (0x9747b28c), so that a key goes to
// the same partition whichever client sends it. Java shows the same bits as a signed int. The same
// on every machine: bytes are read as little-endian.
uint32_t Murmur2(std::string_view bytes);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_HASH_MURMUR2_H_
