#include <gtest/gtest.h>

#include <limits>
#include <optional>
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
#include "common/record/record_conversion.h"
#include "common/record/record_view.h"
#include "common/record/varint.h"
#include "common/text/utf8.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

constexpr Compression kCodecs[] = {Compression::kNone, Compression::kLz4, Compression::kZstd};

std::string RandomBytes(Random& random, size_t most) {
  std::string bytes(random.Below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

struct OwnedRecord {
  int64_t timestamp_ms = 0;
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;

  RecordView View(int64_t offset) const {
    RecordView view;
    view.offset = Offset(offset);
    view.timestamp_ms = timestamp_ms;
    if (key) view.key = *key;
    if (value) view.value = *value;
    for (const auto& [name, content] : headers) {
      HeaderView& header = view.headers.emplace_back();
      header.key = name;
      if (content) header.value = *content;
    }
    return view;
  }
};

std::optional<std::string> MaybeBytes(Random& random, size_t most) {
  if (random.Chance(0.2)) return std::nullopt;
  return RandomBytes(random, most);
}

OwnedRecord RandomRecord(Random& random) {
  OwnedRecord record;
  record.timestamp_ms = random.Chance(0.1) ? random.Between(0, std::numeric_limits<int64_t>::max())
                                           : 1'700'000'000'000 + random.Between(-5000, 5000);
  record.key = MaybeBytes(random, 20);
  record.value = MaybeBytes(random, random.Chance(0.05) ? 200'000 : 200);
  for (uint64_t i = random.Below(4); i > 0; --i) {
    record.headers.emplace_back(RandomBytes(random, 5), MaybeBytes(random, 20));
  }
  return record;
}

// The same bytes in slices of random sizes.
Buffer Shatter(Random& random, const Buffer& buffer) {
  Buffer parts;
  for (size_t at = 0; at < buffer.size();) {
    const size_t size = std::min<size_t>(1 + random.Below(1000), buffer.size() - at);
    parts.Append(Slice::CopyOf(buffer.Sub(at, size).ToString()));
    at += size;
  }
  return parts;
}

TEST(RoundTripTest, WhatIsBuiltIsRead) {
  Random random(20261129);
  for (int round = 0; round < 300; ++round) {
    const Compression codec = kCodecs[round % 3];
    std::vector<OwnedRecord> records(1 + random.Below(20));
    BatchBuilder builder(codec);
    for (OwnedRecord& record : records) {
      record = RandomRecord(random);
      const size_t before = builder.uncompressed_bytes();
      builder.Add(record.View(0));
      EXPECT_LE(builder.uncompressed_bytes() - before,
                BatchBuilder::RecordBytesAtMost(record.View(0)));
    }
    const int64_t base = random.Between(0, int64_t{1} << 40);
    const auto built = builder.Finish();
    ASSERT_TRUE(built.ok()) << built.status();
    Buffer batch = PatchBatch(*built, Offset(base), LeaderEpoch(3));
    if (random.Chance(0.5)) batch = Shatter(random, batch);
    ASSERT_TRUE(CheckBatch(batch).ok()) << CheckBatch(batch).status();
    auto reader = BatchReader::Open(batch);
    ASSERT_TRUE(reader.ok()) << reader.status();
    RecordView view;
    for (size_t i = 0; i < records.size(); ++i) {
      const auto more = reader->Next(view);
      ASSERT_TRUE(more.ok() && *more) << more.status();
      EXPECT_EQ(view, records[i].View(base + static_cast<int64_t>(i))) << round << " " << i;
    }
    EXPECT_FALSE(*reader->Next(view));
  }
}

TEST(RoundTripTest, UncompressedRecordsAreNotCopied) {
  BatchBuilder builder;
  RecordView record;
  record.value = "value";
  builder.Add(record);
  const Buffer batch = *builder.Finish();
  auto reader = BatchReader::Open(batch);
  ASSERT_TRUE(reader.ok() && *reader->Next(record));
  const Slice& slice = batch.slices().front();
  EXPECT_GE(record.value->data(), slice.data());
  EXPECT_LT(record.value->data(), slice.data() + slice.size());
}

TEST(RoundTripTest, GzipAndSnappyAreNotWritten) {
  for (const Compression codec : {Compression::kGzip, Compression::kSnappy}) {
    BatchBuilder builder(codec);
    builder.Add(RecordView());
    EXPECT_EQ(ErrorCodeOf(builder.Finish().status()), v1::UNSUPPORTED_COMPRESSION_TYPE);
  }
}

TEST(RoundTripTest, VarintsOfEveryLength) {
  std::vector<int64_t> values = {0, std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const int64_t near : {-1, 0, 1}) {
      values.push_back((int64_t{1} << bit) + near);
      values.push_back(-(int64_t{1} << bit) + near);
    }
  }
  for (const int64_t value : values) {
    std::string bytes;
    AppendVarint(bytes, value);
    EXPECT_EQ(bytes.size(), VarintBytes(value));
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::string_view cut = std::string_view(bytes).substr(0, size);
      int64_t ignored;
      EXPECT_FALSE(TakeVarint(cut, ignored));
    }
    std::string_view in = bytes;
    int64_t read = 0;
    ASSERT_TRUE(TakeVarint(in, read));
    EXPECT_EQ(read, value);
    EXPECT_TRUE(in.empty());
    std::string_view narrow = bytes;
    int32_t read32 = 0;
    EXPECT_EQ(TakeVarint(narrow, read32), value == static_cast<int32_t>(value)) << value;
  }
  std::string_view eleven("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  int64_t ignored;
  EXPECT_FALSE(TakeVarint(eleven, ignored));
}

TEST(RoundTripTest, R39EveryByteNullAndEmptyThroughPlainRecords) {
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i) all[static_cast<size_t>(i)] = static_cast<char>(i);
  google::protobuf::RepeatedPtrField<v1::Record> records;
  for (const std::string& bytes :
       {all, std::string(), std::string("null"), std::string("a\nb\n")}) {
    v1::Record* record = records.Add();
    record->set_key(bytes);
    record->set_value(bytes);
    v1::RecordHeader* header = record->add_headers();
    header->set_key("h");
    header->set_value(bytes);
    record->add_headers()->set_key("null value");
  }
  records.Add();  // Null key, null value.
  for (const Compression codec : kCodecs) {
    const auto batch = BatchFromRecords(records, WallTime::FromUnixMillis(77), codec);
    ASSERT_TRUE(batch.ok()) << batch.status();
    google::protobuf::RepeatedPtrField<v1::Record> read;
    ASSERT_TRUE(AppendRecords(*batch, Offset(0), read).ok());
    ASSERT_EQ(read.size(), records.size());
    for (int i = 0; i < read.size(); ++i) {
      v1::Record expected = records[i];
      expected.set_timestamp_ms(77);
      expected.set_offset(i);
      EXPECT_EQ(read[i].SerializeAsString(), expected.SerializeAsString());
    }
    google::protobuf::RepeatedPtrField<v1::Record> later;
    ASSERT_TRUE(AppendRecords(*batch, Offset(3), later).ok());
    EXPECT_EQ(later.size(), records.size() - 3);
  }
  EXPECT_EQ(ErrorCodeOf(BatchFromRecords({}, WallTime()).status()), v1::INVALID_RECORD);
}

TEST(RoundTripTest, RecordsWithinLimitsGoOnWhereTheyStopped) {
  google::protobuf::RepeatedPtrField<v1::Record> records;
  for (int i = 0; i < 10; ++i) records.Add()->set_value(std::string(1000, 'v'));
  for (const Compression codec : kCodecs) {
    const auto batch = BatchFromRecords(records, WallTime::FromUnixMillis(77), codec);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const size_t most = 20'000;
    // One at least, however small the limit; as many as fit; all.
    for (const auto& [max_bytes, count] :
         {std::pair<size_t, int>{1, 1}, {3 * (1000 + kRecordWeight), 3}, {most, 10}}) {
      google::protobuf::RepeatedPtrField<v1::Record> read;
      for (Offset at(0); at < Offset(10);) {
        const int before = read.size();
        const AppendedRecords appended =
            AppendRecordsWithin({max_bytes, true, most}, *batch, at, read);
        ASSERT_TRUE(appended.status.ok()) << appended.status;
        ASSERT_LE(read.size() - before, count);
        ASSERT_GT(read.size(), before);
        EXPECT_EQ(appended.bytes,
                  static_cast<size_t>(read.size() - before) * (1000 + kRecordWeight));
        at = appended.next;
      }
      ASSERT_EQ(read.size(), 10);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(read[i].offset(), i);
    }
    google::protobuf::RepeatedPtrField<v1::Record> none;
    const AppendedRecords full = AppendRecordsWithin({1, false, most}, *batch, Offset(2), none);
    EXPECT_TRUE(full.status.ok() && none.empty() && full.next == Offset(2)) << full.status;
    if (codec == Compression::kNone) continue;
    const AppendedRecords bomb = AppendRecordsWithin({most, true, 5000}, *batch, Offset(2), none);
    EXPECT_EQ(ErrorCodeOf(bomb.status), v1::MESSAGE_TOO_LARGE);
    EXPECT_TRUE(none.empty() && bomb.next == Offset(2));
  }
}

TEST(RoundTripTest, HeaderKeysBecomeUtf8) {
  EXPECT_EQ(ToValidUtf8("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(ToValidUtf8("a\xFF"
                        "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_FALSE(IsValidUtf8("\xC0\x80")) << "overlong";
  EXPECT_FALSE(IsValidUtf8("\xED\xA0\x80")) << "surrogate";
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80")) << "past U+10FFFF";
  EXPECT_FALSE(IsValidUtf8("\xE2\x82")) << "cut short";
  EXPECT_TRUE(IsValidUtf8("\xF0\x9F\x98\x80"));
}

}  // namespace
}  // namespace conclave
