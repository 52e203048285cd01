#include "common/config/setting.h"

#include <gtest/gtest.h>

#include "common/config/edit_distance.h"
#include "common/error/error.h"

namespace conclave {
namespace {

SettingDefinition Define(const std::string& key, SettingType type) {
  SettingDefinition definition;
  definition.key = key;
  definition.type = type;
  definition.documentation = "What it does.";
  return definition;
}

SettingsSchema Schema() {
  SettingDefinition count = Define("retry.count", SettingType::kInteger);
  count.unit = "ms";
  count.default_value = "3";
  count.min = -1;
  count.max = 10;
  SettingDefinition mode = Define("mode", SettingType::kChoice);
  mode.choices = {"fast", "safe"};
  mode.refused = {{"wild", "it comes later"}};
  SettingDefinition hosts = Define("hosts", SettingType::kEndpointList);
  hosts.required = true;
  return SettingsSchema("test", {count, mode, hosts, Define("flag", SettingType::kBoolean),
                                 Define("host", SettingType::kEndpoint)});
}

std::string Message(const absl::Status& status) {
  EXPECT_EQ(ErrorCodeOf(status), v1::INVALID_CONFIG);
  return std::string(status.message());
}

TEST(SettingTest, ValuesAreCheckedAndMadeCanonical) {
  const SettingsSchema schema = Schema();
  EXPECT_EQ(*schema.Check("retry.count", "-1"), "-1");
  EXPECT_EQ(*schema.Check("retry.count", "007"), "7");
  EXPECT_EQ(*schema.Check("mode", "safe"), "safe");
  EXPECT_EQ(*schema.Check("hosts", "a:1, b:2"), "a:1,b:2");
  for (const char* bad : {"", "x", "11", "-2", "1x", " 1", "1.0", "99999999999999999999"}) {
    const std::string message = Message(schema.Check("retry.count", bad).status());
    EXPECT_NE(message.find("an integer from -1 to 10 (ms)"), std::string::npos) << message;
  }
  EXPECT_NE(Message(schema.Check("mode", "slow").status()).find("fast or safe"), std::string::npos);
  EXPECT_NE(Message(schema.Check("mode", "wild").status()).find("it comes later"),
            std::string::npos);
  EXPECT_FALSE(schema.Check("flag", "yes").ok());
  EXPECT_FALSE(schema.Check("host", "a:1,b:2").ok());
}

TEST(SettingTest, UnknownKeysAreAnsweredWithTheNearest) {
  const SettingsSchema schema = Schema();
  EXPECT_NE(Message(schema.Check("retry.cuont", "1").status()).find("'retry.count'"),
            std::string::npos);
  EXPECT_LT(Message(schema.Check(std::string(100000, 'x'), "1").status()).size(), 300u);
}

TEST(SettingTest, TypedGetters) {
  const SettingsSchema schema = Schema();
  Settings settings(schema);
  EXPECT_NE(Message(settings.CheckRequired()).find("hosts is not given"), std::string::npos);
  EXPECT_EQ(settings.Integer("retry.count"), 3);
  EXPECT_FALSE(settings.IsGiven("retry.count"));
  ASSERT_TRUE(settings.Set("retry.count", "5").ok());
  EXPECT_EQ(settings.Milliseconds("retry.count"), Duration::Milliseconds(5));
  EXPECT_FALSE(settings.Text("mode").has_value());
  ASSERT_TRUE(settings.Set("hosts", "a:1,[::1]:2").ok());
  EXPECT_TRUE(settings.CheckRequired().ok());
  EXPECT_EQ(settings.EndpointList("hosts"), (std::vector<Endpoint>{{"a", 1}, {"::1", 2}}));
  EXPECT_FALSE(settings.EndpointOf("host").has_value());
  ASSERT_TRUE(settings.Set("flag", "true").ok());
  EXPECT_TRUE(settings.Boolean("flag"));
}

TEST(EndpointTest, OnlyHostAndPort) {
  EXPECT_EQ(ToString(*ParseEndpoint("localhost:7400")), "localhost:7400");
  EXPECT_EQ(ToString(*ParseEndpoint("[fe80::1]:0")), "[fe80::1]:0");
  for (const char* bad : {"", ":", "a", "a:", ":1", "a:65536", "a:-1", "http://a:1", "a b:1",
                          "::1:80", "[]:1", "[x]:1", "a:1 ", "a:0x1"}) {
    EXPECT_FALSE(ParseEndpoint(bad).ok()) << bad;
  }
  EXPECT_FALSE(ParseEndpointList("a:1,").ok());
  EXPECT_FALSE(ParseEndpoint(std::string(254, 'a') + ":1").ok());
}

TEST(EditDistanceTest, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
}

}  // namespace
}  // namespace conclave
