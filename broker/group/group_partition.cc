#include "broker/group/group_partition.h"

#include <cstddef>
#include <limits>

#include "common/text/utf8.h"

namespace conclave::group {
namespace {

// The character at `at` of valid UTF-8, which is moved behind it.
uint32_t NextCharacter(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t first = byte(at);
  const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t character = length == 1 ? first : first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) character = character << 6 | (byte(at + i) & 0x3Fu);
  at += length;
  return character;
}

}  // namespace

int32_t JavaStringHash(std::string_view text) {
  const std::string valid = ToValidUtf8(text);
  uint32_t hash = 0;
  for (size_t at = 0; at < valid.size();) {
    const uint32_t character = NextCharacter(valid, at);
    if (character < 0x10000) {
      hash = 31 * hash + character;
      continue;
    }
    hash = 31 * hash + (0xD800u + ((character - 0x10000) >> 10));
    hash = 31 * hash + (0xDC00u + ((character - 0x10000) & 0x3FFu));
  }
  return static_cast<int32_t>(hash);
}

int32_t PartitionOfGroup(std::string_view group, int32_t partitions) {
  const int32_t hash = JavaStringHash(group);
  if (hash == std::numeric_limits<int32_t>::min()) return 0;
  return (hash < 0 ? -hash : hash) % partitions;
}

}  // namespace conclave::group
