#include "common/record/varint.h"

#include <limits>

namespace conclave {
namespace {

int64_t UnZigZag(uint64_t bits) { return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1)); }

}  // namespace

void AppendVarint(std::string& out, int64_t value) {
  char bytes[kMaxVarintBytes];
  out.append(bytes, WriteVarint(bytes, value));
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
