#include "broker/group/group_partition.h"

#include <gtest/gtest.h>

#include <limits>

namespace conclave::group {
namespace {

// Values that java.lang.String.hashCode gives.
TEST(GroupPartitionTest, HashesAsJavaDoes) {
  EXPECT_EQ(JavaStringHash(""), 0);
  EXPECT_EQ(JavaStringHash("a"), 97);
  EXPECT_EQ(JavaStringHash("hello"), 99162322);
  EXPECT_EQ(JavaStringHash("hello world"), 1794106052);
  EXPECT_EQ(JavaStringHash("polygenelubricants"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(JavaStringHash("\xC3\xA9"), 0xE9);
  EXPECT_EQ(JavaStringHash("\xE2\x82\xAC"), 0x20AC);
  // U+1F600, two code units.
  EXPECT_EQ(JavaStringHash("\xF0\x9F\x98\x80"), 31 * 0xD83D + 0xDE00);
  EXPECT_EQ(JavaStringHash("\xFF"), 0xFFFD);
}

TEST(GroupPartitionTest, PartitionsAsKafkaDoes) {
  EXPECT_EQ(PartitionOfGroup("hello"), 99162322 % 50);
  EXPECT_EQ(PartitionOfGroup("polygenelubricants"), 0);
  // A negative hash: its absolute value counts.
  EXPECT_EQ(JavaStringHash("my-group"), -1906497762);
  EXPECT_EQ(PartitionOfGroup("my-group"), 12);
  EXPECT_EQ(PartitionOfGroup("hello", 7), 99162322 % 7);
}

}  // namespace
}  // namespace conclave::group
