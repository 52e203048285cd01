#include "common/hash/murmur2.h"

#include <gtest/gtest.h>

namespace conclave {
namespace {

// The values that Kafka's own test of its Java hash holds (UtilsTest.testMurmur2).
TEST(Murmur2Test, GivesWhatTheJavaClientGives) {
  const auto java = [](std::string_view key) { return static_cast<int32_t>(Murmur2(key)); };
  EXPECT_EQ(java("21"), -973932308);
  EXPECT_EQ(java("foobar"), -790332482);
  EXPECT_EQ(java("a-little-bit-long-string"), -985981536);
  EXPECT_EQ(java("a-little-bit-longer-string"), -1486304829);
  EXPECT_EQ(java("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971);
  EXPECT_EQ(java("abc"), 479470107);
}

TEST(Murmur2Test, TakesBytesAboveAsciiAndNothing) {
  EXPECT_EQ(Murmur2(""), 0x106e08d9u);
  EXPECT_NE(Murmur2("\xff"), Murmur2("\x7f"));
}

}  // namespace
}  // namespace conclave
