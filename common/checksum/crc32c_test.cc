#include "common/checksum/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace conclave {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32cTest, ExtendsAcrossEverySplit) {
  const std::string text = "a record batch of some length, over several words of the machine";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)), text.substr(cut)), Crc32c(text)) << cut;
  }
}

}  // namespace
}  // namespace conclave
