#include "common/transport/host_port.h"

#include <gtest/gtest.h>

namespace conclave {
namespace {

TEST(HostPortTest, ParsesWhatCanBeListenedOn) {
  EXPECT_EQ(ParseListenEndpoint("127.0.0.1:7400")->host, "127.0.0.1");
  EXPECT_EQ(ParseListenEndpoint("127.0.0.1:7400")->port, 7400);
  EXPECT_EQ(ParseListenEndpoint("[::1]:0")->host, "::1");
  EXPECT_EQ(JoinHostPort("::1", 5), "[::1]:5");
  EXPECT_EQ(JoinHostPort("localhost", 5), "localhost:5");
}

TEST(HostPortTest, RefusesTheRestSayingWhy) {
  for (const char* bad : {"", "localhost", ":7400", "h:", "h:x", "h:-1", "h:65536", "::1:7400",
                          "h:7400 ", "h:0x10"}) {
    const auto parsed = ParseListenEndpoint(bad);
    EXPECT_FALSE(parsed.ok()) << bad;
    EXPECT_NE(parsed.status().message().find("7400"), std::string::npos) << parsed.status();
  }
}

}  // namespace
}  // namespace conclave
