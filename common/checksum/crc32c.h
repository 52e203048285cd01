#ifndef CONCLAVE_COMMON_CHECKSUM_CRC32C_H_
#define CONCLAVE_COMMON_CHECKSUM_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace conclave {

// CRC-32C (Castagnoli), as iSCSI and Kafka's record batches use it: reflected, initial value and
// final xor of all ones.
uint32_t Crc32c(std::string_view bytes);

// Goes on from a checksum of the bytes before: Extend(Crc32c(a), b) is Crc32c(a + b).
uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CHECKSUM_CRC32C_H_
