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

constexpr size_t kPadBytes = size_t{1} << 20;

// splitmix64's last step: every bit of the input reaches every bit of the output.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
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

void BenchRecords::Fill(uint64_t number, char* out) const {
  StoreBigEndian(seed_, out);
  StoreBigEndian(number, out + 8);
  const size_t rest = record_bytes_ - kBenchRecordMin;
  std::memcpy(out + kBenchRecordMin, pad_.data() + Mix(number ^ seed_) % kPadBytes, rest);
  const uint32_t crc = ExtendCrc32c(Crc32c(std::string_view(out, 16)),
                                    std::string_view(out + kBenchRecordMin, rest));
  StoreBigEndian(crc, out + 16);
}

std::string BenchRecords::Make(uint64_t number) const {
  std::string value(record_bytes_, '\0');
  Fill(number, value.data());
  return value;
}

std::optional<uint64_t> BenchRecords::Check(std::string_view value) const {
  if (value.size() != record_bytes_) return std::nullopt;
  const auto number = LoadBigEndian<uint64_t>(value.data() + 8);
  if (value != Make(number)) return std::nullopt;
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

Percentiles::Percentiles(std::vector<uint64_t>& samples) {
  if (samples.empty()) return;
  std::sort(samples.begin(), samples.end());
  // The least sample that so many of a thousand do not exceed.
  const auto at = [&](size_t per_mille) {
    return samples[std::min(samples.size() - 1, (samples.size() * per_mille + 999) / 1000 - 1)];
  };
  p50 = at(500);
  p99 = at(990);
  p999 = at(999);
  max = samples.back();
}

}  // namespace conclave::tools
