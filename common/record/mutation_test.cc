#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/buffer/buffer.h"
#include "common/error/error.h"
#include "common/random/random.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/record/batch_reader.h"
#include "common/record/compression.h"
#include "common/record/record_view.h"

namespace conclave {
namespace {

constexpr Compression kCodecs[] = {Compression::kNone, Compression::kLz4, Compression::kZstd};

std::string Batch(Random& random, Compression codec) {
  BatchBuilder builder(codec);
  for (uint64_t i = 1 + random.Below(8); i > 0; --i) {
    const std::string bytes(random.Below(60), static_cast<char>('a' + random.Below(4)));
    RecordView record;
    record.timestamp_ms = static_cast<int64_t>(random.Below(1000));
    if (random.Chance(0.7)) record.key = bytes;
    if (random.Chance(0.7)) record.value = bytes;
    record.headers.resize(random.Below(3), {bytes, std::nullopt});
    builder.Add(record);
  }
  return builder.Finish()->ToString();
}

void Mutate(Random& random, std::string& bytes, size_t from) {
  for (uint64_t i = 1 + random.Below(4); i > 0 && from < bytes.size(); --i) {
    const size_t at = from + random.Below(bytes.size() - from);
    switch (random.Below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random.Next());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, 1 + random.Below(5), static_cast<char>(random.Next()));
        break;
    }
  }
}

// Makes length and CRC match again, so that what follows is the reader's to find.
void Seal(std::string& bytes) {
  if (bytes.size() < kBatchHeaderBytes) return;
  StoreBigEndian(static_cast<int32_t>(bytes.size() - kBatchOverheadBytes), bytes.data() + 8);
  StoreBigEndian(ComputeBatchCrc(std::string_view(bytes)), bytes.data() + kBatchCrcAt);
}

// Reads to the end or the first error. Every view is touched, so that the sanitizer sees it.
absl::Status ReadAll(const Buffer& batch) {
  auto reader = BatchReader::Open(batch, 1 << 20);
  if (!reader.ok()) return reader.status();
  RecordView record;
  // Volatile, so that the reads stay.
  volatile size_t touched = 0;
  for (;;) {
    const auto more = reader->Next(record);
    if (!more.ok()) {
      EXPECT_EQ(reader->Next(record).status(), more.status()) << "an error stays";
      return more.status();
    }
    if (!*more) return absl::OkStatus();
    EXPECT_GE(record.offset, reader->header().base_offset);
    EXPECT_LE(record.offset, reader->header().last_offset());
    for (const char byte : record.key.value_or("")) touched = touched + static_cast<uint8_t>(byte);
    for (const char byte : record.value.value_or(""))
      touched = touched + static_cast<uint8_t>(byte);
    for (const HeaderView& header : record.headers) touched = touched + header.key.size();
  }
}

TEST(MutationTest, NoBytesCrashTheChecks) {
  Random random(7);
  for (int round = 0; round < 30'000; ++round) {
    std::string bytes = Batch(random, kCodecs[round % 3]);
    Mutate(random, bytes, 0);
    const Buffer buffer(bytes);
    const bool whole = CheckBatch(buffer).ok();
    (void)CheckBatchRun(buffer);
    ProduceLimits limits;
    limits.max_batch_bytes = 1 << 20;
    (void)CheckProduced(buffer, limits);
    (void)ReadAll(buffer);
    if (whole && bytes.size() >= kBatchHeaderBytes) {
      EXPECT_EQ(ComputeBatchCrc(buffer), ParseBatchHeader(buffer, 0)->crc);
    }
  }
}

TEST(MutationTest, MalformedInsidesAreNamedAndNeverCrash) {
  Random random(8);
  int refused = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string bytes = Batch(random, kCodecs[round % 3]);
    Mutate(random, bytes, kBatchHeaderBytes);
    Seal(bytes);
    const absl::Status status = ReadAll(Buffer(bytes));
    if (status.ok()) continue;
    ++refused;
    const v1::ErrorCode code = ErrorCodeOf(status);
    EXPECT_TRUE(code == v1::INVALID_RECORD || code == v1::CORRUPT_MESSAGE) << status;
    if (code == v1::INVALID_RECORD) {
      EXPECT_NE(status.message().find("go on at offset"), std::string::npos) << status;
    }
  }
  EXPECT_GT(refused, 10'000);
}

TEST(MutationTest, CountsThatPromiseMoreThanThereIs) {
  Random random(9);
  for (const Compression codec : kCodecs) {
    std::string bytes = Batch(random, codec);
    BatchHeader header = ParseBatchHeader(bytes);
    header.count = header.last_offset_delta = 1'000'000'000;
    WriteBatchHeader(header, bytes.data());
    Seal(bytes);
    EXPECT_FALSE(ReadAll(Buffer(bytes)).ok());
  }
}

TEST(MutationTest, ABombIsRefusedAtTheLimit) {
  const std::string zeros(50 << 20, '\0');
  for (const Compression codec : {Compression::kLz4, Compression::kZstd}) {
    std::string bomb;
    ASSERT_TRUE(Compress(codec, zeros, bomb).ok());
    EXPECT_LT(bomb.size(), 1u << 20);
    EXPECT_EQ(ErrorCodeOf(Decompress(codec, bomb, 1 << 20).status()), v1::MESSAGE_TOO_LARGE);
    EXPECT_EQ(ErrorCodeOf(Decompress(codec, bomb, zeros.size() - 1).status()),
              v1::MESSAGE_TOO_LARGE);
    const auto whole = Decompress(codec, bomb, zeros.size());
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->size(), zeros.size());
    EXPECT_FALSE(
        Decompress(codec, std::string_view(bomb).substr(0, bomb.size() - 1), zeros.size()).ok());
    EXPECT_FALSE(Decompress(codec, "", 100).ok());
    EXPECT_EQ(Decompress(codec, bomb + bomb, 2 * zeros.size())->size(), 2 * zeros.size());
  }
}

TEST(MutationTest, GzipAndSnappyAreNotRead) {
  Random random(10);
  for (const char codec : {1, 2, 5}) {
    std::string bytes = Batch(random, Compression::kNone);
    bytes[22] = codec;
    Seal(bytes);
    EXPECT_EQ(ErrorCodeOf(ReadAll(Buffer(bytes))), v1::UNSUPPORTED_COMPRESSION_TYPE);
  }
}

}  // namespace
}  // namespace conclave
