#include "common/record/batch_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "common/buffer/buffer.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_header.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

Buffer Batch(int count = 3, int64_t timestamp = kNow, size_t value_bytes = 1) {
  BatchBuilder builder;
  const std::string value(value_bytes, 'v');
  RecordView record;
  record.timestamp_ms = timestamp;
  record.value = value;
  for (int i = 0; i < count; ++i) builder.Add(record);
  return *builder.Finish();
}

ProduceLimits Limits() {
  ProduceLimits limits;
  limits.max_batch_bytes = 1 << 20;
  limits.now = WallTime::FromUnixMillis(kNow);
  limits.timestamp_after_max = Duration::Seconds(3600);
  return limits;
}

// The batch with its header changed, and a CRC that matches again.
Buffer With(const std::function<void(BatchHeader&)>& change) {
  std::string bytes = Batch().ToString();
  BatchHeader header = ParseBatchHeader(bytes);
  change(header);
  WriteBatchHeader(header, bytes.data());
  header.crc = ComputeBatchCrc(std::string_view(bytes));
  WriteBatchHeader(header, bytes.data());
  return Buffer(std::move(bytes));
}

v1::ErrorCode Produced(const Buffer& batch, const ProduceLimits& limits = Limits()) {
  return ErrorCodeOf(CheckProduced(batch, limits).status());
}

TEST(BatchCheckTest, TakesWhatTheBuilderMakes) {
  EXPECT_EQ(Produced(Batch()), v1::NONE);
  EXPECT_TRUE(CheckBatch(Batch()).ok());
}

TEST(BatchCheckTest, EveryFlippedBitThatTheCrcCoversIsSeen) {
  const std::string good = Batch().ToString();
  for (size_t byte = kBatchCrcAt; byte < good.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      EXPECT_EQ(Produced(Buffer(bad)), v1::CORRUPT_MESSAGE) << byte << " " << bit;
    }
  }
}

TEST(BatchCheckTest, EveryTruncationIsSeen) {
  const std::string good = Batch().ToString();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(Produced(Buffer(good.substr(0, size))), v1::CORRUPT_MESSAGE) << size;
  }
  EXPECT_EQ(Produced(Buffer(good + "x")), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(Produced(Buffer(good + good)), v1::CORRUPT_MESSAGE) << "one batch at a time";
}

TEST(BatchCheckTest, HeaderFieldsThatContradictEachOther) {
  const auto code = [](const std::function<void(BatchHeader&)>& change) {
    return Produced(With(change));
  };
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(code([](BatchHeader& h) { h.magic = 1; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.length = -1; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.length = kMax; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.base_offset = Offset(-1); }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(
      code([](BatchHeader& h) { h.base_offset = Offset(std::numeric_limits<int64_t>::max() - 2); }),
      v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.last_offset_delta = -1; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.count = -1; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.count = 4; }), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.count = h.last_offset_delta = kMax; }),
            v1::CORRUPT_MESSAGE);
  EXPECT_EQ(code([](BatchHeader& h) { h.count = 0; }), v1::INVALID_RECORD);
  EXPECT_EQ(code([](BatchHeader& h) { h.last_offset_delta = 5; }), v1::INVALID_RECORD);
}

TEST(BatchCheckTest, KindsOfALaterReleaseAreRefusedByName) {
  const auto status = [](uint16_t attributes) {
    return CheckProduced(With([&](BatchHeader& h) { h.attributes = attributes; }), Limits())
        .status();
  };
  EXPECT_EQ(ErrorCodeOf(status(1)), v1::UNSUPPORTED_COMPRESSION_TYPE);
  EXPECT_NE(status(1).message().find("gzip comes in a later release"), std::string::npos);
  EXPECT_NE(status(2).message().find("snappy comes in a later release"), std::string::npos);
  for (const uint16_t codec : {5, 6, 7}) {
    EXPECT_EQ(ErrorCodeOf(status(codec)), v1::UNSUPPORTED_COMPRESSION_TYPE);
  }
  EXPECT_EQ(ErrorCodeOf(status(0x10)), v1::INVALID_RECORD);
  EXPECT_EQ(ErrorCodeOf(status(0x20)), v1::INVALID_RECORD);
  EXPECT_EQ(ErrorCodeOf(status(0x08)), v1::INVALID_TIMESTAMP);
}

TEST(BatchCheckTest, ProducerFieldsComeTogether) {
  const auto code = [](int64_t id, int16_t epoch, int32_t sequence) {
    return Produced(With([&](BatchHeader& h) {
      h.producer_id = ProducerId(id);
      h.producer_epoch = ProducerEpoch(epoch);
      h.base_sequence = sequence;
    }));
  };
  EXPECT_EQ(code(-1, -1, -1), v1::NONE);
  EXPECT_EQ(code(0, 0, 0), v1::NONE);
  EXPECT_EQ(code(-2, 0, 0), v1::INVALID_RECORD);
  EXPECT_EQ(code(1, -1, 0), v1::INVALID_RECORD);
  EXPECT_EQ(code(1, 0, -1), v1::INVALID_RECORD);
}

TEST(BatchCheckTest, R30TimestampsOutOfTheWindow) {
  constexpr int64_t kHour = 3'600'000;
  EXPECT_EQ(Produced(Batch(1, kNow + kHour)), v1::NONE);
  EXPECT_EQ(Produced(Batch(1, kNow + kHour + 1)), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(Produced(Batch(1, kNow + 10LL * 365 * 24 * kHour)), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(Produced(Batch(1, kNow / 1000)), v1::NONE) << "no limit on the past by default";
  ProduceLimits limits = Limits();
  limits.timestamp_before_max = Duration::Seconds(60);
  EXPECT_EQ(Produced(Batch(1, kNow / 1000), limits), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(Produced(Batch(1, kNow - 60'000), limits), v1::NONE);
  EXPECT_EQ(Produced(Batch(1, std::numeric_limits<int64_t>::max())), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(Produced(Batch(1, -1)), v1::INVALID_TIMESTAMP);
  EXPECT_EQ(Produced(With([](BatchHeader& h) { h.max_timestamp_ms = h.base_timestamp_ms - 1; })),
            v1::INVALID_TIMESTAMP);
}

TEST(BatchCheckTest, R40SizesAtTheLimit) {
  const size_t overhead = Batch(1, kNow, 100'000).size() - 100'000;
  ProduceLimits limits = Limits();
  limits.max_batch_bytes = 100'000;
  EXPECT_EQ(Produced(Batch(1, kNow, 100'000 - overhead - 1), limits), v1::NONE);
  EXPECT_EQ(Produced(Batch(1, kNow, 100'000 - overhead), limits), v1::NONE);
  EXPECT_EQ(Produced(Batch(1, kNow, 100'000 - overhead + 1), limits), v1::MESSAGE_TOO_LARGE);
}

TEST(BatchCheckTest, ARunIsCheckedBatchByBatch) {
  Buffer run = PatchBatch(Batch(3), Offset(10), LeaderEpoch(1));
  const size_t first = run.size();
  run.Append(PatchBatch(Batch(2), Offset(13), LeaderEpoch(2)));
  const size_t second = run.size();
  run.Append(PatchBatch(Batch(1), Offset(20), LeaderEpoch(2)));
  const auto batches = CheckBatchRun(run);
  ASSERT_TRUE(batches.ok()) << batches.status();
  ASSERT_EQ(batches->size(), 3u);
  EXPECT_EQ((*batches)[1].position, first);
  EXPECT_EQ((*batches)[1].header.base_offset, Offset(13));
  EXPECT_EQ((*batches)[2].position, second);
  EXPECT_TRUE(CheckBatchRun(Buffer())->empty());
  for (size_t size = 1; size < run.size(); ++size) {
    EXPECT_EQ(CheckBatchRun(run.Sub(0, size)).ok(), size == first || size == second) << size;
  }
  Buffer overlapping = PatchBatch(Batch(3), Offset(10), LeaderEpoch(1));
  overlapping.Append(PatchBatch(Batch(3), Offset(12), LeaderEpoch(1)));
  EXPECT_EQ(ErrorCodeOf(CheckBatchRun(overlapping).status()), v1::CORRUPT_MESSAGE);
}

}  // namespace
}  // namespace conclave
