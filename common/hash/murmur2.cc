#include "common/hash/murmur2.h"

#include <cstddef>

namespace conclave {
namespace {

constexpr uint32_t kSeed = 0x9747b28c;
constexpr uint32_t kMultiplier = 0x5bd1e995;
constexpr int kShift = 24;

uint32_t Byte(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

}  // namespace

uint32_t Murmur2(std::string_view bytes) {
  uint32_t hash = kSeed ^ static_cast<uint32_t>(bytes.size());
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t word = Byte(bytes, at) | Byte(bytes, at + 1) << 8 | Byte(bytes, at + 2) << 16 |
                    Byte(bytes, at + 3) << 24;
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash *= kMultiplier;
    hash ^= word;
  }
  if (at < bytes.size()) {
    for (size_t i = bytes.size(); i-- > at;) hash ^= Byte(bytes, i) << (8 * (i - at));
    hash *= kMultiplier;
  }
  hash ^= hash >> 13;
  hash *= kMultiplier;
  hash ^= hash >> 15;
  return hash;
}

}  // namespace conclave
