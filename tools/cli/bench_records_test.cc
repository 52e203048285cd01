#include "tools/cli/bench_records.h"

#include <gtest/gtest.h>

namespace conclave::tools {
namespace {

TEST(BenchRecordsTest, FollowFromSeedAndNumber) {
  const BenchRecords records(7, 1000);
  const std::string value = records.Make(12);
  EXPECT_EQ(value.size(), 1000u);
  EXPECT_EQ(BenchRecords(7, 1000).Make(12), value);
  EXPECT_NE(BenchRecords(8, 1000).Make(12), value);
  EXPECT_NE(records.Make(13).substr(20), value.substr(20));
  EXPECT_EQ(records.Check(value), 12u);
}

TEST(BenchRecordsTest, EveryBitCounts) {
  const BenchRecords records(7, 60);
  for (size_t i = 0; i < 60 * 8; ++i) {
    std::string value = records.Make(3);
    value[i / 8] = static_cast<char>(value[i / 8] ^ (1 << (i % 8)));
    EXPECT_EQ(records.Check(value), std::nullopt) << "bit " << i;
  }
  EXPECT_EQ(records.Check(records.Make(3).substr(1)), std::nullopt);
  EXPECT_EQ(records.Check(""), std::nullopt);
  EXPECT_EQ(BenchRecords(7, kBenchRecordMin).Check(BenchRecords(7, kBenchRecordMin).Make(9)), 9u);
}

TEST(BenchRecordsTest, NumbersAreReadWithoutTheContent) {
  const BenchRecords records(7, 60);
  std::string value = records.Make(3);
  value.back() ^= 1;
  EXPECT_EQ(records.NumberOf(value), 3u);
  EXPECT_EQ(records.NumberOf(value.substr(1)), std::nullopt);
  EXPECT_EQ(BenchRecords(8, 60).NumberOf(value), std::nullopt);
}

TEST(ContentHashTest, IsOfTheSetAndNotOfItsOrder) {
  ContentHash a;
  a.Add("one");
  a.Add("two");
  ContentHash b;
  b.Add("two");
  EXPECT_NE(a, b);
  b.Add("one");
  EXPECT_EQ(a, b);
  b.Add("one");
  EXPECT_NE(a, b);
  EXPECT_EQ(a.text().size(), 16u);
}

}  // namespace
}  // namespace conclave::tools
