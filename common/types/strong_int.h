#ifndef CONCLAVE_COMMON_TYPES_STRONG_INT_H_
#define CONCLAVE_COMMON_TYPES_STRONG_INT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace conclave {

// An integer that mixes only with its own kind: a Term never passes for a LogIndex.
//
// `Tag` names the kind and is never defined. Default construction gives 0. Arithmetic covers what
// positions and counters need: adding a plain distance, and the distance between two values.
template <typename Tag, typename Rep>
class StrongInt {
 public:
  using rep = Rep;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(StrongInt a, StrongInt b) = default;

  constexpr StrongInt operator+(Rep distance) const { return StrongInt(value_ + distance); }
  constexpr StrongInt operator-(Rep distance) const { return StrongInt(value_ - distance); }
  friend constexpr Rep operator-(StrongInt a, StrongInt b) { return a.value_ - b.value_; }
  constexpr StrongInt& operator+=(Rep distance) {
    value_ += distance;
    return *this;
  }
  constexpr StrongInt& operator++() {
    ++value_;
    return *this;
  }

  // For absl::flat_hash_map and friends.
  template <typename H>
  friend H AbslHashValue(H state, StrongInt v) {
    return H::combine(std::move(state), v.value_);
  }

 private:
  Rep value_ = 0;
};

template <typename Tag, typename Rep>
std::ostream& operator<<(std::ostream& out, StrongInt<Tag, Rep> v) {
  return out << +v.value();
}

template <typename Tag, typename Rep>
std::string ToString(StrongInt<Tag, Rep> v) {
  return std::to_string(v.value());
}

}  // namespace conclave

template <typename Tag, typename Rep>
struct std::hash<conclave::StrongInt<Tag, Rep>> {
  size_t operator()(conclave::StrongInt<Tag, Rep> v) const noexcept {
    return std::hash<Rep>()(v.value());
  }
};

#endif  // CONCLAVE_COMMON_TYPES_STRONG_INT_H_
