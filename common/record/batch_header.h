#ifndef CONCLAVE_COMMON_RECORD_BATCH_HEADER_H_
#define CONCLAVE_COMMON_RECORD_BATCH_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/buffer/buffer.h"
#include "common/types/ids.h"

// The 61 bytes before the records of a batch in Kafka's v2 format (KIP-98; Kafka protocol, record
// batch). Integers are big-endian.
//
//   at size           at size                at size
//    0  8 base offset 21  2 attributes        43  8 producer id
//    8  4 length      23  4 last offset delta 51  2 producer epoch
//   12  4 leader epoch 27 8 base timestamp    53  4 base sequence
//   16  1 magic (2)   35  8 max timestamp     57  4 count of records
//   17  4 crc
//
// `length` counts what follows it. The CRC covers everything from the attributes on, so base offset
// and leader epoch, and nothing else, may be set by a broker.
namespace conclave {

inline constexpr size_t kBatchHeaderBytes = 61;
// Base offset and length, which the length field does not count.
inline constexpr size_t kBatchOverheadBytes = 12;
inline constexpr size_t kBatchLeaderEpochAt = 12;
// What PatchBatch makes anew.
inline constexpr size_t kBatchPatchedBytes = 16;
inline constexpr size_t kBatchCrcAt = 17;
// Where what the CRC covers begins.
inline constexpr size_t kBatchCrcFrom = 21;
inline constexpr int8_t kBatchMagic = 2;

enum class Compression : int8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };

// "none", "gzip", "snappy", "lz4", "zstd".
const char* CompressionName(Compression codec);

struct BatchHeader {
  Offset base_offset;
  // Of the bytes after this field; see size_bytes().
  int32_t length = 0;
  LeaderEpoch leader_epoch;
  int8_t magic = kBatchMagic;
  uint32_t crc = 0;
  uint16_t attributes = 0;
  int32_t last_offset_delta = 0;
  // Milliseconds since 1970: of the first record, and the greatest of all.
  int64_t base_timestamp_ms = 0;
  int64_t max_timestamp_ms = 0;
  // -1: without idempotence; so are epoch and sequence then.
  ProducerId producer_id{-1};
  ProducerEpoch producer_epoch{-1};
  int32_t base_sequence = -1;
  // Records that are in it; fewer than offsets after compaction.
  int32_t count = 0;

  // Of the whole batch. Negative lengths are the checker's to refuse; they give less than a header.
  int64_t size_bytes() const { return int64_t{length} + static_cast<int64_t>(kBatchOverheadBytes); }
  Offset last_offset() const { return base_offset + last_offset_delta; }
  // The offset that follows the batch.
  Offset next_offset() const { return last_offset() + 1; }

  // nullopt: a number that no codec has.
  std::optional<Compression> compression() const;
  bool is_log_append_time() const { return (attributes & 0x08) != 0; }
  bool is_transactional() const { return (attributes & 0x10) != 0; }
  bool is_control() const { return (attributes & 0x20) != 0; }
  bool has_producer() const { return producer_id.value() >= 0; }
  // Of the last record; INT32_MAX is followed by 0 (KIP-98).
  int32_t last_sequence() const;

  friend bool operator==(const BatchHeader&, const BatchHeader&) = default;
};

// `sequence` and `steps` more, where INT32_MAX is followed by 0. Neither is negative.
constexpr int32_t SequenceAfter(int32_t sequence, int32_t steps) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  return sequence > kMax - steps ? steps - (kMax - sequence) - 1 : sequence + steps;
}

// The fields as they stand, whatever they say. `bytes` has kBatchHeaderBytes at least.
BatchHeader ParseBatchHeader(std::string_view bytes);

// Of the batch at `at`, which may straddle slices; nullopt if fewer than kBatchHeaderBytes are
// there.
std::optional<BatchHeader> ParseBatchHeader(const Buffer& buffer, size_t at);

// Writes all fields to kBatchHeaderBytes at `out`.
void WriteBatchHeader(const BatchHeader& header, char* out);

// The same batch with another base offset and leader epoch. `batch` has kBatchHeaderBytes at least;
// its bytes are shared and stay as they are, but for the first kBatchPatchedBytes, which are new.
Buffer PatchBatch(const Buffer& batch, Offset base_offset, LeaderEpoch leader_epoch);

// The CRC-32C of [kBatchCrcFrom, end) of the batch. It has kBatchCrcFrom bytes at least.
uint32_t ComputeBatchCrc(const Buffer& batch);
uint32_t ComputeBatchCrc(std::string_view batch);

// Big-endian integers, as all of Kafka's files have them.
template <typename T>
T LoadBigEndian(const char* at) {
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(T); ++i) bits = (bits << 8) | static_cast<uint8_t>(at[i]);
  return static_cast<T>(bits);
}
template <typename T>
void StoreBigEndian(T value, char* at) {
  auto bits = static_cast<uint64_t>(value);
  for (size_t i = sizeof(T); i > 0; --i, bits >>= 8) at[i - 1] = static_cast<char>(bits & 0xFF);
}

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_BATCH_HEADER_H_
