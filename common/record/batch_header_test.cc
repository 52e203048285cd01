#include "common/record/batch_header.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/buffer/buffer.h"
#include "common/random/random.h"
#include "common/record/batch_builder.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"

namespace conclave {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Base offset 42, leader epoch 7, producer (9, 3, 5), three records. Made by the encoder of
// tests/formats, which was written from the published format.
const std::string& Golden() {
  static const auto* const kBytes = new std::string(FromHex(
      "000000000000002a00000051000000070289e9ef380000000000020000018bcfe568000000018bcfe569f4000000"
      "00000000090003000000050000000310000000026b0276001c00cf0f02010004026801000400ff0e00e807040001"
      "00"));
  return *kBytes;
}

Buffer Split(std::string_view bytes, const std::vector<size_t>& cuts) {
  Buffer buffer;
  size_t from = 0;
  for (const size_t cut : cuts) {
    buffer.Append(Slice::CopyOf(bytes.substr(from, cut - from)));
    from = cut;
  }
  buffer.Append(Slice::CopyOf(bytes.substr(from)));
  return buffer;
}

TEST(BatchHeaderTest, ReadsTheGoldenHeader) {
  const auto header = ParseBatchHeader(Buffer(Golden()), 0);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->base_offset, Offset(42));
  EXPECT_EQ(header->size_bytes(), static_cast<int64_t>(Golden().size()));
  EXPECT_EQ(header->leader_epoch, LeaderEpoch(7));
  EXPECT_EQ(header->magic, 2);
  EXPECT_EQ(header->crc, 0x89e9ef38u);
  EXPECT_EQ(header->compression(), Compression::kNone);
  EXPECT_EQ(header->last_offset(), Offset(44));
  EXPECT_EQ(header->next_offset(), Offset(45));
  EXPECT_EQ(header->base_timestamp_ms, 1700000000000);
  EXPECT_EQ(header->max_timestamp_ms, 1700000000500);
  EXPECT_EQ(header->producer_id, ProducerId(9));
  EXPECT_EQ(header->producer_epoch, ProducerEpoch(3));
  EXPECT_EQ(header->base_sequence, 5);
  EXPECT_EQ(header->last_sequence(), 7);
  EXPECT_EQ(header->count, 3);
  EXPECT_EQ(ComputeBatchCrc(std::string_view(Golden())), header->crc);
}

TEST(BatchHeaderTest, TheBuilderWritesTheGoldenBytes) {
  BatchBuilder builder;
  builder.SetProducer(ProducerId(9), ProducerEpoch(3), 5);
  RecordView first;
  first.timestamp_ms = 1700000000000;
  first.key = "k";
  first.value = "v";
  RecordView second;
  second.timestamp_ms = 1699999999000;
  second.value = "";
  second.headers.push_back({"h", std::nullopt});
  second.headers.push_back({"", std::string_view("\x00\xff", 2)});
  RecordView third;
  third.timestamp_ms = 1700000000500;
  third.key = "";
  for (const RecordView& record : {first, second, third}) builder.Add(record);
  const auto batch = builder.Finish();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(PatchBatch(*batch, Offset(42), LeaderEpoch(7)).ToString(), Golden());
}

TEST(BatchHeaderTest, StraddlesSlicesAnywhere) {
  const auto whole = ParseBatchHeader(Buffer(Golden()), 0);
  for (size_t cut = 1; cut < Golden().size(); ++cut) {
    const Buffer buffer = Split(Golden(), {cut});
    EXPECT_EQ(ParseBatchHeader(buffer, 0), whole) << cut;
    EXPECT_EQ(ComputeBatchCrc(buffer), whole->crc) << cut;
    const Buffer patched = PatchBatch(buffer, Offset(43), LeaderEpoch(8));
    EXPECT_EQ(ParseBatchHeader(patched, 0)->base_offset, Offset(43)) << cut;
    EXPECT_EQ(buffer.ToString(), Golden()) << "the bytes that came in were changed";
  }
}

TEST(BatchHeaderTest, PatchingChangesOffsetAndEpochAlone) {
  const Buffer patched = PatchBatch(Buffer(Golden()), Offset(0x0102030405060708), LeaderEpoch(9));
  std::string expected = Golden();
  expected.replace(0, 8, FromHex("0102030405060708"));
  expected.replace(12, 4, FromHex("00000009"));
  EXPECT_EQ(patched.ToString(), expected);
  EXPECT_EQ(ComputeBatchCrc(patched), ParseBatchHeader(patched, 0)->crc);
}

TEST(BatchHeaderTest, WhatIsWrittenIsRead) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    char bytes[kBatchHeaderBytes];
    for (char& byte : bytes) byte = static_cast<char>(random.Next());
    const std::string_view view(bytes, kBatchHeaderBytes);
    char again[kBatchHeaderBytes];
    WriteBatchHeader(ParseBatchHeader(view), again);
    EXPECT_EQ(view, std::string_view(again, kBatchHeaderBytes));
  }
}

TEST(BatchHeaderTest, AShortBufferHasNone) {
  EXPECT_EQ(ParseBatchHeader(Buffer(), 0), std::nullopt);
  EXPECT_EQ(ParseBatchHeader(Buffer(Golden().substr(0, 60)), 0), std::nullopt);
  EXPECT_EQ(ParseBatchHeader(Buffer(Golden()), Golden().size() - 60), std::nullopt);
  EXPECT_EQ(ParseBatchHeader(Buffer(Golden()), Golden().size() + 1), std::nullopt);
}

TEST(BatchHeaderTest, R31SequencesWrapToZero) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(SequenceAfter(0, 1), 1);
  EXPECT_EQ(SequenceAfter(kMax, 1), 0);
  EXPECT_EQ(SequenceAfter(kMax - 1, 1), kMax);
  EXPECT_EQ(SequenceAfter(kMax - 1, 3), 1);
  EXPECT_EQ(SequenceAfter(kMax, kMax), kMax - 1);
}

}  // namespace
}  // namespace conclave
