#ifndef CONCLAVE_COMMON_TYPES_TIME_H_
#define CONCLAVE_COMMON_TYPES_TIME_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>

// Time as the cores see it: plain values. <chrono> stays out of them, for it brings clocks along.
namespace conclave {

// A span of time in nanoseconds, possibly negative.
class Duration {
 public:
  constexpr Duration() = default;

  static constexpr Duration Nanoseconds(int64_t n) { return Duration(n); }
  static constexpr Duration Microseconds(int64_t n) { return Duration(n * 1000); }
  static constexpr Duration Milliseconds(int64_t n) { return Duration(n * 1000 * 1000); }
  static constexpr Duration Seconds(int64_t n) { return Duration(n * 1000 * 1000 * 1000); }
  static constexpr Duration Infinite() { return Duration(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t nanoseconds() const { return ns_; }
  constexpr int64_t microseconds() const { return ns_ / 1000; }
  constexpr int64_t milliseconds() const { return ns_ / (1000 * 1000); }
  constexpr double seconds() const { return static_cast<double>(ns_) / 1e9; }

  friend constexpr auto operator<=>(Duration a, Duration b) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration(a.ns_ + b.ns_); }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.ns_ - b.ns_); }
  friend constexpr Duration operator*(Duration a, int64_t n) { return Duration(a.ns_ * n); }
  friend constexpr Duration operator/(Duration a, int64_t n) { return Duration(a.ns_ / n); }

 private:
  constexpr explicit Duration(int64_t ns) : ns_(ns) {}

  int64_t ns_ = 0;
};

// A moment on a clock that never steps back. Its origin is arbitrary and differs between processes,
// so it is never sent or stored.
class MonotonicTime {
 public:
  constexpr MonotonicTime() = default;

  static constexpr MonotonicTime FromNanoseconds(int64_t ns) { return MonotonicTime(ns); }
  // Later than every other moment.
  static constexpr MonotonicTime Never() {
    return MonotonicTime(std::numeric_limits<int64_t>::max());
  }

  constexpr int64_t nanoseconds() const { return ns_; }

  friend constexpr auto operator<=>(MonotonicTime a, MonotonicTime b) = default;
  // Stays at Never() instead of overflowing.
  friend constexpr MonotonicTime operator+(MonotonicTime t, Duration d) {
    if (d.nanoseconds() > 0 && t.ns_ > std::numeric_limits<int64_t>::max() - d.nanoseconds()) {
      return Never();
    }
    return MonotonicTime(t.ns_ + d.nanoseconds());
  }
  friend constexpr MonotonicTime operator-(MonotonicTime t, Duration d) {
    return MonotonicTime(t.ns_ - d.nanoseconds());
  }
  friend constexpr Duration operator-(MonotonicTime a, MonotonicTime b) {
    return Duration::Nanoseconds(a.ns_ - b.ns_);
  }

 private:
  constexpr explicit MonotonicTime(int64_t ns) : ns_(ns) {}

  int64_t ns_ = 0;
};

// A moment on the wall clock: milliseconds since 1970 in UTC, the unit of record timestamps. It may
// step in either direction, so it orders nothing and times nothing.
class WallTime {
 public:
  constexpr WallTime() = default;
  static constexpr WallTime FromUnixMillis(int64_t ms) {
    WallTime t;
    t.ms_ = ms;
    return t;
  }
  constexpr int64_t unix_millis() const { return ms_; }
  friend constexpr auto operator<=>(WallTime a, WallTime b) = default;

 private:
  int64_t ms_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, Duration d) {
  return out << static_cast<double>(d.nanoseconds()) / 1e6 << " ms";
}
inline std::ostream& operator<<(std::ostream& out, MonotonicTime t) {
  return out << "t+" << static_cast<double>(t.nanoseconds()) / 1e6 << " ms";
}

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TYPES_TIME_H_
