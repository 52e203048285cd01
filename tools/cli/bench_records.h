#ifndef CONCLAVE_TOOLS_CLI_BENCH_RECORDS_H_
#define CONCLAVE_TOOLS_CLI_BENCH_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Records of the benchmark, which follow from a seed and their number alone, so that whoever reads
// them back knows what they must be.
namespace conclave::tools {

// The seed, the number, and their check.
inline constexpr size_t kBenchRecordMin = 20;

class BenchRecords {
 public:
  // `record_bytes`: of each value, kBenchRecordMin at least.
  BenchRecords(uint64_t seed, size_t record_bytes);

  // The value of record `number`: digits from a text of 64 KiB, which stays in a core's own cache.
  // A codec that looks back that far (zstd) finds them again: it packs these better than real ones.
  std::string Make(uint64_t number) const;
  // Makes it in the place of another value.
  void MakeIn(std::string& value, uint64_t number) const;

  // The number of a value made under this seed and size; nullopt if a single bit differs.
  std::optional<uint64_t> Check(std::string_view value) const;
  // The number that a value names, looking at no more than seed and size; nullopt if these differ.
  std::optional<uint64_t> NumberOf(std::string_view value) const;

 private:
  // What follows the check in record `number`.
  std::string_view PadOf(uint64_t number) const;

  const uint64_t seed_;
  const size_t record_bytes_;
  std::string pad_;
};

// A hash of a set of values, in whatever order they come.
class ContentHash {
 public:
  void Add(std::string_view value);
  // 16 hexadecimal digits.
  std::string text() const;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;

 private:
  uint64_t sum_ = 0;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_BENCH_RECORDS_H_
