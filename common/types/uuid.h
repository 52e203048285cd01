#ifndef CONCLAVE_COMMON_TYPES_UUID_H_
#define CONCLAVE_COMMON_TYPES_UUID_H_

#include <array>
#include <compare>
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
  constexpr explicit Uuid(Bytes bytes) : bytes_(bytes) {}

  // `high` and `low` come from the caller's source of randomness. A text that starts with '-' would
  // read as a flag on a command line, so the first six bits are never 62.
  static constexpr Uuid FromRandom(uint64_t high, uint64_t low) {
    Bytes b;
    for (int i = 0; i < 8; ++i) {
      b[i] = static_cast<uint8_t>(high >> (56 - 8 * i));
      b[8 + i] = static_cast<uint8_t>(low >> (56 - 8 * i));
    }
    if ((b[0] >> 2) == 62) b[0] &= 0x7F;
    if (Uuid(b).IsNone()) b[15] = 1;
    return Uuid(b);
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

  constexpr bool IsNone() const { return bytes_ == Bytes{}; }
  std::string ToBytes() const { return std::string(bytes_.begin(), bytes_.end()); }
  std::string ToString() const;

  friend constexpr auto operator<=>(const Uuid& a, const Uuid& b) = default;
  friend std::ostream& operator<<(std::ostream& out, const Uuid& id) {
    return out << id.ToString();
  }

  template <typename H>
  friend H AbslHashValue(H state, const Uuid& id) {
    return H::combine(std::move(state), id.bytes_);
  }

 private:
  Bytes bytes_{};
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
  return internal::UuidToText(bytes_);
}

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TYPES_UUID_H_
