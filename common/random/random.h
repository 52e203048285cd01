#ifndef CONCLAVE_COMMON_RANDOM_RANDOM_H_
#define CONCLAVE_COMMON_RANDOM_RANDOM_H_

#include <cstdint>
#include <string_view>

namespace conclave {

// A stream of pseudo-random numbers that is a function of its seed alone (xoshiro256**). The same
// on every machine and compiler, which <random>'s distributions are not.
//
// Production seeds it from the operating system once (see EntropySeed); tests and the simulation
// from a printed seed. Not for secrets. Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed);

  // An independent stream named by `salt`, for example "network". Depends on the seed and the salt,
  // not on how much of this stream has been drawn, so a new user of one stream shifts no other.
  Random Fork(std::string_view salt) const;

  uint64_t Next();
  // Uniform over [0, bound); bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform over [low, high], both included.
  int64_t Between(int64_t low, int64_t high);
  // True with the given probability, 0 to 1.
  bool Chance(double probability);

  // For <algorithm>'s and <random>'s concept of a generator.
  using result_type = uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~0ULL; }
  result_type operator()() { return Next(); }

 private:
  uint64_t seed_;
  uint64_t state_[4];
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RANDOM_RANDOM_H_
