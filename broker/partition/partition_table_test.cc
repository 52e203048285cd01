#include "broker/partition/partition_table.h"

#include <gtest/gtest.h>

namespace conclave::broker {
namespace {

PartitionId Id(uint64_t topic, int32_t index) {
  return {TopicId::FromRandom(topic, topic), PartitionIndex(index)};
}

TEST(PartitionTableTest, FindsWhatIsThere) {
  PartitionTable<int> table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Find(Id(1, 0)), nullptr);
  table[Id(1, 0)] = 10;
  table[Id(1, 1)] = 11;
  table[Id(2, 0)] = 20;
  EXPECT_EQ(*table.Find(Id(1, 1)), 11);
  EXPECT_EQ(*table.Find(Id(2, 0)), 20);
  table.Erase(Id(1, 1));
  EXPECT_EQ(table.Find(Id(1, 1)), nullptr);
  EXPECT_TRUE(table.Contains(Id(1, 0)));
  EXPECT_FALSE(table.Contains(Id(1, 1)));
  table.Clear();
  EXPECT_TRUE(table.empty());
}

TEST(PartitionTableTest, IsWalkedThroughInTheOrderOfTheIds) {
  PartitionTable<int> table;
  std::vector<PartitionId> expected;
  for (int32_t index = 0; index < 1000; ++index) expected.push_back(Id(1, index));
  expected.push_back(Id(2, 0));
  for (auto id = expected.rbegin(); id != expected.rend(); ++id) table[*id] = 0;
  EXPECT_EQ(table.Ids(), expected);
}

}  // namespace
}  // namespace conclave::broker
