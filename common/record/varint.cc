#include "common/record/varint.h"

#include <limits>

namespace conclave {
namespace {

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

int64_t UnZigZag(uint64_t bits) { return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1)); }

}  // namespace

void AppendVarint(std::string& out, int64_t value) {
  uint64_t bits = ZigZag(value);
  while (bits >= 0x80) {
    out.push_back(static_cast<char>(bits | 0x80));
    bits >>= 7;
  }
  out.push_back(static_cast<char>(bits));
}

size_t VarintBytes(int64_t value) {
  size_t bytes = 1;
  for (uint64_t bits = ZigZag(value); bits >= 0x80; bits >>= 7) ++bytes;
  return bytes;
}

bool TakeVarint(std::string_view& in, int64_t& value) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kMaxVarintBytes && i < in.size(); ++i) {
    const auto byte = static_cast<uint8_t>(in[i]);
    // The tenth byte holds the 64th bit alone.
    if (i == kMaxVarintBytes - 1 && byte > 1) return false;
    bits |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if ((byte & 0x80) == 0) {
      in.remove_prefix(i + 1);
      value = UnZigZag(bits);
      return true;
    }
  }
  return false;
}

bool TakeVarint(std::string_view& in, int32_t& value) {
  int64_t wide = 0;
  if (!TakeVarint(in, wide)) return false;
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return false;
  }
  value = static_cast<int32_t>(wide);
  return true;
}

}  // namespace conclave
