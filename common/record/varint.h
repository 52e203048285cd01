#ifndef CONCLAVE_COMMON_RECORD_VARINT_H_
#define CONCLAVE_COMMON_RECORD_VARINT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Zigzag varints, the integers inside a record (Kafka protocol, record format): small magnitudes of
// either sign take few bytes.
namespace conclave {

inline constexpr size_t kMaxVarintBytes = 10;

namespace varint_internal {

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

}  // namespace varint_internal

// How many bytes it takes.
inline size_t VarintBytes(int64_t value) {
  return (static_cast<size_t>(std::bit_width(varint_internal::ZigZag(value) | 1)) + 6) / 7;
}

// Writes it to `out`, which has room, and returns the place behind it.
inline char* WriteVarint(char* out, int64_t value) {
  uint64_t bits = varint_internal::ZigZag(value);
  for (; bits >= 0x80; bits >>= 7) *out++ = static_cast<char>(bits | 0x80);
  *out++ = static_cast<char>(bits);
  return out;
}

void AppendVarint(std::string& out, int64_t value);

// Takes a varint off the front. False, with `in` unspecified, if it is cut short or does not fit in
// 64 bits.
bool TakeVarint(std::string_view& in, int64_t& value);

// The same for 32 bits.
bool TakeVarint(std::string_view& in, int32_t& value);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_VARINT_H_
