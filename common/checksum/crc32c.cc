#include "common/checksum/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace conclave {

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
  // ISA-L's function neither reads its bytes as writable nor inverts before and after.
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const size_t step = std::min<size_t>(bytes.size(), std::numeric_limits<int>::max());
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(step), state);
    bytes.remove_prefix(step);
  }
  return ~state;
}

uint32_t Crc32c(std::string_view bytes) { return ExtendCrc32c(0, bytes); }

}  // namespace conclave
