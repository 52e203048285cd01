#include "raft/storage/tail_check.h"

#include <algorithm>
#include <cstdint>

#include "common/checksum/crc32c.h"

namespace conclave::raft {
namespace {

// RocksDB's log format (db/log_format.h): blocks of 32 KiB; records do not cross them, but come in
// fragments that do not; what is left of a block and too short for a header is padding. A header is
// a masked CRC-32C of type and payload, the payload's length, both little-endian, and the type.
constexpr size_t kBlock = 32 << 10;
constexpr size_t kHeader = 7;
constexpr uint8_t kZeroType = 0;
constexpr uint8_t kFullType = 1;
constexpr uint8_t kFirstType = 2;

struct Fragment {
  uint32_t masked_crc = 0;
  size_t length = 0;
  uint8_t type = kZeroType;
};

uint8_t ByteAt(std::string_view file, size_t at) { return static_cast<uint8_t>(file[at]); }

Fragment HeaderAt(std::string_view file, size_t at) {
  Fragment fragment;
  for (size_t i = 0; i < 4; ++i) {
    fragment.masked_crc |= static_cast<uint32_t>(ByteAt(file, at + i)) << (8 * i);
  }
  fragment.length = ByteAt(file, at + 4) | static_cast<size_t>(ByteAt(file, at + 5)) << 8;
  fragment.type = ByteAt(file, at + 6);
  return fragment;
}

size_t LeftOfBlock(size_t at) { return kBlock - at % kBlock; }

bool ChecksumMatches(std::string_view file, size_t at, const Fragment& fragment) {
  const uint32_t crc = Crc32c(file.substr(at + kHeader - 1, 1 + fragment.length));
  return fragment.masked_crc == ((crc >> 15 | crc << 17) + 0xa282ead8U);
}

// The first place that looks like the end of what was written; nullopt if there is none.
std::optional<size_t> FirstIncomplete(std::string_view file) {
  size_t at = 0;
  while (at < file.size()) {
    if (LeftOfBlock(at) < kHeader) {
      at += LeftOfBlock(at);
      continue;
    }
    if (file.size() - at < kHeader) return at;
    const Fragment fragment = HeaderAt(file, at);
    if (fragment.type == kZeroType && fragment.length == 0) return at;
    if (fragment.length > file.size() - at - kHeader) return at;
    at += kHeader + fragment.length;
  }
  return std::nullopt;
}

bool RecordBeginsAt(std::string_view file, size_t at) {
  if (std::min(LeftOfBlock(at), file.size() - at) < kHeader) return false;
  const Fragment fragment = HeaderAt(file, at);
  if (fragment.type != kFullType && fragment.type != kFirstType) return false;
  if (kHeader + fragment.length > std::min(LeftOfBlock(at), file.size() - at)) return false;
  return ChecksumMatches(file, at, fragment);
}

}  // namespace

std::optional<TailDamage> FindTailDamage(std::string_view file) {
  const std::optional<size_t> incomplete = FirstIncomplete(file);
  if (!incomplete) return std::nullopt;
  for (size_t at = *incomplete + 1; at < file.size(); ++at) {
    if (RecordBeginsAt(file, at)) return TailDamage{*incomplete, at};
  }
  return std::nullopt;
}

}  // namespace conclave::raft
