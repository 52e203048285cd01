#include "client/producer/partitioner.h"

#include <gtest/gtest.h>

#include <map>

namespace conclave {
namespace {

TEST(PartitionForKeyTest, GoesWhereTheJavaClientSends) {
  // (hash & 0x7fffffff) mod partitions of the hashes in Kafka's UtilsTest.
  EXPECT_EQ(PartitionForKey("21", 10).value(), (-973932308 & 0x7fffffff) % 10);
  EXPECT_EQ(PartitionForKey("21", 10).value(), 0);
  EXPECT_EQ(PartitionForKey("foobar", 10).value(), 6);
  EXPECT_EQ(PartitionForKey("abc", 50).value(), 7);
  EXPECT_EQ(PartitionForKey("a-little-bit-longer-string", 7).value(),
            (-1486304829 & 0x7fffffff) % 7);
  EXPECT_EQ(PartitionForKey("", 1).value(), 0);
}

std::vector<PartitionIndex> Partitions(std::initializer_list<int> numbers) {
  std::vector<PartitionIndex> partitions;
  for (const int number : numbers) partitions.push_back(PartitionIndex(number));
  return partitions;
}

TEST(StickyPartitionerTest, StaysForABatchAndThenMovesOn) {
  StickyPartitioner sticky(Random(3), 1000);
  const auto all = Partitions({0, 1, 2});
  PartitionIndex last(-1);
  std::map<PartitionIndex, int> turns;
  for (int turn = 0; turn < 300; ++turn) {
    const PartitionIndex chosen = sticky.Choose(all, 100);
    EXPECT_NE(chosen, last);
    for (int i = 1; i < 10; ++i) ASSERT_EQ(sticky.Choose(all, 100), chosen);
    last = chosen;
    ++turns[chosen];
  }
  EXPECT_EQ(turns.size(), 3u);
  for (const auto& [partition, count] : turns) EXPECT_GT(count, 70) << partition;
}

TEST(StickyPartitionerTest, LeavesAPartitionThatLostItsLeader) {
  StickyPartitioner sticky(Random(3), 1000);
  const PartitionIndex first = sticky.Choose(Partitions({0, 1}), 1);
  const auto rest = Partitions({first.value() == 0 ? 1 : 0});
  EXPECT_EQ(sticky.Choose(rest, 1), rest[0]);
  EXPECT_EQ(sticky.Choose(rest, 5000), rest[0]);
  EXPECT_EQ(sticky.Choose(rest, 1), rest[0]);
}

}  // namespace
}  // namespace conclave
