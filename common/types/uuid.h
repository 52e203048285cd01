#ifndef CONCLAVE_COMMON_TYPES_UUID_H_
#define CONCLAVE_COMMON_TYPES_UUID_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace conclave {

// 128 random bits, written as 22 characters of unpadded URL-safe base64, as Kafka writes its ids.
// The all-zero value means "none". On the wire and on disk an id is its 16 bytes.
//
// `Tag` keeps kinds apart: a TopicId is no DirectoryId.
template <typename Tag>
class Uuid {
 public:
  using Bytes = std::array<uint8_t, 16>;

  constexpr Uuid() = default;
  constexpr explicit Uuid(const Bytes& bytes) {
    for (size_t i = 0; i < 8; ++i) {
      high_ = high_ << 8 | bytes[i];
      low_ = low_ << 8 | bytes[8 + i];
    }
  }

  // `high` and `low` come from the caller's source of randomness. A text that starts with '-' would
  // read as a flag on a command line, so the first six bits are never 62.
  static constexpr Uuid FromRandom(uint64_t high, uint64_t low) {
    Uuid id;
    id.high_ = high;
    id.low_ = low;
    if ((high >> 58) == 62) id.high_ &= ~(uint64_t{0x80} << 56);
    if (id.IsNone()) id.low_ = 1;
    return id;
  }

  // The 16 bytes of the wire form; nullopt for any other length.
  static std::optional<Uuid> FromBytes(std::string_view bytes) {
    if (bytes.size() != 16) return std::nullopt;
    Bytes b;
    for (size_t i = 0; i < 16; ++i) b[i] = static_cast<uint8_t>(bytes[i]);
    return Uuid(b);
  }

  // The 22-character text; nullopt for anything else, also for stray bits in the last character.
  static std::optional<Uuid> Parse(std::string_view text);

  constexpr bool IsNone() const { return high_ == 0 && low_ == 0; }
  constexpr Bytes AsArray() const {
    Bytes bytes;
    for (size_t i = 0; i < 8; ++i) {
      bytes[i] = static_cast<uint8_t>(high_ >> (56 - 8 * i));
      bytes[8 + i] = static_cast<uint8_t>(low_ >> (56 - 8 * i));
    }
    return bytes;
  }
  std::string ToBytes() const {
    const Bytes bytes = AsArray();
    return std::string(bytes.begin(), bytes.end());
  }
  std::string ToString() const;

  // In the order of the bytes.
  friend constexpr auto operator<=>(const Uuid& a, const Uuid& b) = default;
  friend std::ostream& operator<<(std::ostream& out, const Uuid& id) {
    return out << id.ToString();
  }

  template <typename H>
  friend H AbslHashValue(H state, const Uuid& id) {
    return H::combine(std::move(state), id.high_, id.low_);
  }

 private:
  // The first eight bytes and the last, the first of each on top: maps compare ids all the time.
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

namespace internal {
std::string UuidToText(const std::array<uint8_t, 16>& bytes);
std::optional<std::array<uint8_t, 16>> UuidFromText(std::string_view text);
}  // namespace internal

template <typename Tag>
std::optional<Uuid<Tag>> Uuid<Tag>::Parse(std::string_view text) {
  auto bytes = internal::UuidFromText(text);
  if (!bytes) return std::nullopt;
  return Uuid(*bytes);
}

template <typename Tag>
std::string Uuid<Tag>::ToString() const {
  return internal::UuidToText(AsArray());
}

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TYPES_UUID_H_
