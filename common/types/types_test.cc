#include <gtest/gtest.h>

#include <type_traits>

#include "common/types/ids.h"
#include "common/types/strong_int.h"
#include "common/types/uuid.h"

namespace conclave {
namespace {

TEST(StrongIntTest, KindsDoNotMix) {
  static_assert(!std::is_convertible_v<Term, LogIndex>);
  static_assert(!std::is_convertible_v<uint64_t, Term>);
  EXPECT_EQ(LogIndex(5) + 2, LogIndex(7));
  EXPECT_EQ(LogIndex(7) - LogIndex(5), 2u);
  EXPECT_LT(Term(1), Term(2));
}

TEST(UuidTest, TextRoundTrips) {
  const TopicId id = TopicId::FromRandom(0x0123456789abcdefULL, 0xfedcba9876543210ULL);
  EXPECT_EQ(id.ToString(), "ASNFZ4mrze_-3LqYdlQyEA");
  EXPECT_EQ(TopicId::Parse(id.ToString()), id);
  EXPECT_EQ(TopicId::FromBytes(id.ToBytes()), id);
}

TEST(UuidTest, OrdersAsItsBytesDo) {
  const TopicId ids[] = {TopicId(), TopicId::FromRandom(1, ~0ULL), TopicId::FromRandom(2, 0),
                         TopicId::FromRandom(0x0102030405060708ULL, 5),
                         TopicId::FromRandom(0xff00000000000000ULL, 0)};
  for (const TopicId& a : ids) {
    EXPECT_EQ(TopicId(a.AsArray()), a);
    for (const TopicId& b : ids) EXPECT_EQ(a < b, a.ToBytes() < b.ToBytes());
  }
}

TEST(UuidTest, RefusesEveryOtherText) {
  EXPECT_FALSE(TopicId::Parse(""));
  EXPECT_FALSE(TopicId::Parse("ASNFZ4mrze_-3LqYdlQyE"));
  EXPECT_FALSE(TopicId::Parse("ASNFZ4mrze_-3LqYdlQyEAA"));
  EXPECT_FALSE(TopicId::Parse("ASNFZ4mrze/-3LqYdlQyEA"));
  EXPECT_FALSE(TopicId::Parse("ASNFZ4mrze_-3LqYdlQyEB"));
  EXPECT_FALSE(TopicId::FromBytes("short"));
}

TEST(UuidTest, NeverReadsAsAFlagOrAsNone) {
  EXPECT_NE(TopicId::FromRandom(~0ULL << 59, 0).ToString().front(), '-');
  EXPECT_NE(TopicId::FromRandom(0xF8ULL << 56, 0).ToString().front(), '-');
  EXPECT_FALSE(TopicId::FromRandom(0, 0).IsNone());
  EXPECT_TRUE(TopicId().IsNone());
}

}  // namespace
}  // namespace conclave
