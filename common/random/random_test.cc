#include "common/random/random.h"

#include <gtest/gtest.h>

#include "common/random/entropy.h"

namespace conclave {
namespace {

TEST(RandomTest, IsAFunctionOfItsSeed) {
  Random a(7), b(7), c(8);
  const uint64_t first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
}

TEST(RandomTest, ForksDependOnSeedAndSaltAlone) {
  Random a(7);
  Random early = a.Fork("disk");
  a.Next();
  Random late = a.Fork("disk");
  EXPECT_EQ(early.Next(), late.Next());
  EXPECT_NE(a.Fork("disk").Next(), a.Fork("network").Next());
}

TEST(RandomTest, StaysInBounds) {
  Random r(1);
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(r.Below(3), 3u);
    const int64_t v = r.Between(-2, 2);
    EXPECT_GE(v, -2);
    EXPECT_LE(v, 2);
    low |= v == -2;
    high |= v == 2;
  }
  EXPECT_TRUE(low && high);
  EXPECT_FALSE(r.Chance(0));
  EXPECT_TRUE(r.Chance(1));
}

TEST(EntropyTest, Differs) { EXPECT_NE(EntropySeed(), EntropySeed()); }

}  // namespace
}  // namespace conclave
