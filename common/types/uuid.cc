#include "common/types/uuid.h"

namespace conclave::internal {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kTextLength = 22;

}  // namespace

std::string UuidToText(const std::array<uint8_t, 16>& bytes) {
  std::string text;
  text.reserve(kTextLength);
  uint32_t bits = 0;
  int held = 0;
  for (uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    held += 8;
    while (held >= 6) {
      held -= 6;
      text.push_back(kAlphabet[bits >> held & 63]);
    }
  }
  text.push_back(kAlphabet[bits << (6 - held) & 63]);
  return text;
}

std::optional<std::array<uint8_t, 16>> UuidFromText(std::string_view text) {
  if (text.size() != kTextLength) return std::nullopt;
  std::array<uint8_t, 16> bytes{};
  uint32_t bits = 0;
  int held = 0;
  size_t out = 0;
  for (char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[out++] = static_cast<uint8_t>(bits >> held);
    }
  }
  // 22 characters carry 132 bits; the 4 beyond the id must be 0, so that each id has one text.
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace conclave::internal
