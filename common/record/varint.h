#ifndef CONCLAVE_COMMON_RECORD_VARINT_H_
#define CONCLAVE_COMMON_RECORD_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Zigzag varints, the integers inside a record (Kafka protocol, record format): small magnitudes of
// either sign take few bytes.
namespace conclave {

inline constexpr size_t kMaxVarintBytes = 10;

void AppendVarint(std::string& out, int64_t value);

// How many bytes AppendVarint writes.
size_t VarintBytes(int64_t value);

// Takes a varint off the front. False, with `in` unspecified, if it is cut short or does not fit in
// 64 bits.
bool TakeVarint(std::string_view& in, int64_t& value);

// The same for 32 bits.
bool TakeVarint(std::string_view& in, int32_t& value);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_VARINT_H_
