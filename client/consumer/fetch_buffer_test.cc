#include "client/consumer/fetch_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/record/batch_builder.h"

namespace conclave {
namespace {

Buffer Batch(int base, int count, Compression codec = Compression::kNone) {
  BatchBuilder builder(codec);
  for (int i = 0; i < count; ++i) {
    const std::string value = "v" + std::to_string(base + i);
    RecordView record;
    record.value = value;
    builder.Add(record);
  }
  return PatchBatch(*builder.Finish(), Offset(base), LeaderEpoch(0));
}

class FetchBufferTest : public testing::Test {
 protected:
  std::vector<std::string> Take(size_t max = 1000) {
    taken_ = FetchBuffer::Taken();
    buffer_.Take(max, taken_);
    std::vector<std::string> values;
    for (const RecordView& record : taken_.records) {
      EXPECT_EQ("v" + std::to_string(record.offset.value()), *record.value);
      values.emplace_back(*record.value);
    }
    return values;
  }
  void Append(const Buffer& batches, int next = 0) {
    ASSERT_TRUE(buffer_.Append(batches, Offset(next)).ok());
  }

  FetchBuffer buffer_;
  FetchBuffer::Taken taken_;
};

TEST_F(FetchBufferTest, HandsOutFromThePositionOn) {
  buffer_.Reset(Offset(12));
  Buffer run = Batch(10, 5, Compression::kLz4);
  run.Append(Batch(15, 2, Compression::kZstd));
  Append(run);
  EXPECT_EQ(buffer_.fetch_offset(), Offset(17));
  EXPECT_EQ(buffer_.position(), Offset(12));
  EXPECT_EQ(Take(2), (std::vector<std::string>{"v12", "v13"}));
  EXPECT_EQ(buffer_.position(), Offset(14));
  EXPECT_EQ(Take(), (std::vector<std::string>{"v14", "v15", "v16"}));
  EXPECT_EQ(taken_.keep.size(), 2u);
  EXPECT_TRUE(taken_.holes.empty());
  EXPECT_TRUE(buffer_.empty());
  EXPECT_EQ(buffer_.bytes(), 0u);
}

TEST_F(FetchBufferTest, RepeatsNothing) {
  buffer_.Reset(Offset(0));
  Append(Batch(0, 5));
  Append(Batch(0, 5));
  Append(Batch(3, 4));
  EXPECT_EQ(Take(), (std::vector<std::string>{"v0", "v1", "v2", "v3", "v4", "v5", "v6"}));
  Append(Batch(2, 3));
  EXPECT_EQ(Take(), std::vector<std::string>());
  EXPECT_EQ(buffer_.position(), Offset(7));
}

TEST_F(FetchBufferTest, TellsOfOffsetsWithoutARecord) {
  buffer_.Reset(Offset(0));
  Append(Batch(0, 2));
  Append(Batch(5, 2));
  EXPECT_EQ(Take().size(), 4u);
  EXPECT_EQ(taken_.holes, (std::vector<FetchBuffer::Hole>{{Offset(2), Offset(5)}}));
  // Nothing is left up to 20, says the broker.
  Append(Buffer(), 20);
  EXPECT_EQ(buffer_.fetch_offset(), Offset(20));
  EXPECT_EQ(Take().size(), 0u);
  EXPECT_EQ(taken_.holes, (std::vector<FetchBuffer::Hole>{{Offset(7), Offset(20)}}));
  EXPECT_EQ(buffer_.position(), Offset(20));
}

TEST_F(FetchBufferTest, RefusesDamageAsAWhole) {
  buffer_.Reset(Offset(0));
  std::string bytes = Batch(0, 2).ToString() + Batch(2, 2).ToString();
  bytes.back() ^= 1;
  EXPECT_EQ(ErrorCodeOf(buffer_.Append(Buffer(bytes), Offset(4))), v1::CORRUPT_MESSAGE);
  EXPECT_TRUE(buffer_.empty());
  EXPECT_EQ(buffer_.fetch_offset(), Offset(0));
}

TEST_F(FetchBufferTest, PassesOverABatchThatIsMalformedInside) {
  buffer_.Reset(Offset(0));
  std::string bytes = Batch(0, 3).ToString();
  bytes[bytes.size() - 1] = 9;  // The last record's count of headers.
  StoreBigEndian(ComputeBatchCrc(std::string_view(bytes)), bytes.data() + kBatchCrcAt);
  Append(Buffer(bytes));
  Append(Batch(3, 1));
  EXPECT_EQ(Take(), (std::vector<std::string>{"v0", "v1", "v3"}));
  ASSERT_EQ(taken_.malformed.size(), 1u);
  EXPECT_EQ(ErrorCodeOf(taken_.malformed[0]), v1::INVALID_RECORD);
  EXPECT_EQ(taken_.holes, (std::vector<FetchBuffer::Hole>{{Offset(2), Offset(3)}}));
}

}  // namespace
}  // namespace conclave
