#include "common/random/random.h"

namespace conclave {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014), the recommended seeding of the xoshiro family.
uint64_t SplitMix(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15ULL;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
  return z ^ z >> 31;
}

uint64_t RotateLeft(uint64_t x, int by) { return x << by | x >> (64 - by); }

}  // namespace

Random::Random(uint64_t seed) : seed_(seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

Random Random::Fork(std::string_view salt) const {
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (char c : salt) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  uint64_t mixed = seed_ ^ hash;
  return Random(SplitMix(mixed));
}

uint64_t Random::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  // Rejection keeps it uniform: the last, incomplete run of `bound` values is drawn again.
  const uint64_t threshold = -bound % bound;
  for (;;) {
    const uint64_t r = Next();
    if (r >= threshold) return r % bound;
  }
}

int64_t Random::Between(int64_t low, int64_t high) {
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (span == 0) return static_cast<int64_t>(Next());
  return static_cast<int64_t>(static_cast<uint64_t>(low) + Below(span));
}

bool Random::Chance(double probability) {
  return static_cast<double>(Next() >> 11) * 0x1.0p-53 < probability;
}

}  // namespace conclave
