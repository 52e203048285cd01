#include "tools/cli/bench_records.h"

#include <glog/logging.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "common/checksum/crc32c.h"
#include "common/random/random.h"
#include "common/record/batch_header.h"

namespace conclave::tools {
namespace {

// Little enough to stay in a core's own cache.
constexpr size_t kPadBytes = size_t{64} << 10;

// splitmix64's last step: every bit of the input reaches every bit of the output.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Of the seed and the number; what follows them is compared as a whole.
uint32_t CheckOf(uint64_t seed, uint64_t number) {
  return static_cast<uint32_t>(Mix(Mix(number) ^ seed) >> 32);
}

}  // namespace

BenchRecords::BenchRecords(uint64_t seed, size_t record_bytes)
    : seed_(seed), record_bytes_(record_bytes) {
  CHECK_GE(record_bytes, kBenchRecordMin);
  Random random = Random(seed).Fork("bench records");
  // Twice, so that a record may begin anywhere in it.
  pad_.resize(kPadBytes + record_bytes);
  for (size_t i = 0; i < kPadBytes; i += 16) {
    uint64_t bits = random.Next();
    for (size_t n = 0; n < 16; ++n, bits >>= 4) pad_[i + n] = "0123456789abcdef"[bits & 15];
  }
  for (size_t i = kPadBytes; i < pad_.size(); ++i) pad_[i] = pad_[i - kPadBytes];
}

std::string_view BenchRecords::PadOf(uint64_t number) const {
  return std::string_view(pad_).substr(Mix(number ^ seed_) % kPadBytes,
                                       record_bytes_ - kBenchRecordMin);
}

std::string BenchRecords::Make(uint64_t number) const {
  std::string value;
  MakeIn(value, number);
  return value;
}

void BenchRecords::MakeIn(std::string& value, uint64_t number) const {
  value.resize(record_bytes_);
  char* const out = value.data();
  const std::string_view pad = PadOf(number);
  StoreBigEndian(seed_, out);
  StoreBigEndian(number, out + 8);
  std::memcpy(out + kBenchRecordMin, pad.data(), pad.size());
  StoreBigEndian(CheckOf(seed_, number), out + 16);
}

std::optional<uint64_t> BenchRecords::NumberOf(std::string_view value) const {
  if (value.size() != record_bytes_) return std::nullopt;
  if (LoadBigEndian<uint64_t>(value.data()) != seed_) return std::nullopt;
  return LoadBigEndian<uint64_t>(value.data() + 8);
}

std::optional<uint64_t> BenchRecords::Check(std::string_view value) const {
  const auto number = NumberOf(value);
  if (!number) return std::nullopt;
  if (LoadBigEndian<uint32_t>(value.data() + 16) != CheckOf(seed_, *number)) return std::nullopt;
  if (value.substr(kBenchRecordMin) != PadOf(*number)) return std::nullopt;
  return number;
}

void ContentHash::Add(std::string_view value) {
  sum_ += Mix(uint64_t{Crc32c(value)} << 32 | (value.size() & 0xFFFFFFFF));
}

std::string ContentHash::text() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, sum_);
  return text;
}

}  // namespace conclave::tools
