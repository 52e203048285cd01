#include "tools/cli/option_checks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace conclave::tools {
namespace {

// What is wrong with `--x TEXT...`; empty if nothing is.
std::string Parse(const CLI::Validator& check, const std::vector<std::string>& texts) {
  CLI::App app;
  std::vector<std::string> values;
  app.add_option("--x", values)->allow_extra_args(false)->check(check);
  std::vector<std::string> arguments;
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    arguments.push_back(*text);
    arguments.push_back("--x");
  }
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  EXPECT_EQ(values, texts);
  return "";
}

TEST(OptionChecksTest, WholeNumbersOf64Bits) {
  for (const char* good : {"0", "7", "9223372036854775807"}) {
    EXPECT_EQ(Parse(WholeNumber(0), {good}), "") << good;
  }
  for (const char* bad : {"-1", "9223372036854775808", "99999999999999999999", "1.5", "1e3", "x"}) {
    const std::string refused = Parse(WholeNumber(0), {bad});
    EXPECT_NE(refused.find("--x"), std::string::npos) << refused;
    EXPECT_NE(refused.find(bad), std::string::npos) << refused;
    EXPECT_LT(refused.size(), 100u) << refused;
  }
}

TEST(OptionChecksTest, NumbersAreNumbers) {
  for (const char* good : {"1", "1.5", "1e3", "1000"}) {
    EXPECT_EQ(Parse(Number(1, 1000), {good}), "") << good;
  }
  for (const char* bad : {"nan", "-nan", "inf", "0.999", "1000.1", "x", ""}) {
    const std::string refused = Parse(Number(1, 1000), {bad});
    EXPECT_NE(refused.find("is not a number from 1 to 1000"), std::string::npos) << refused;
  }
}

TEST(OptionChecksTest, GroupsHaveNames) {
  EXPECT_EQ(Parse(GroupName(), {"g"}), "");
  EXPECT_NE(Parse(GroupName(), {""}).find("not empty"), std::string::npos);
  EXPECT_NE(Parse(GroupName(), {"b\xFF"}).find("not valid UTF-8"), std::string::npos);
}

TEST(OptionChecksTest, NamesAreUtf8) {
  EXPECT_EQ(Parse(Utf8Text(), {"gr\xC3\xBC\xC3\x9F", "b"}), "");
  EXPECT_NE(Parse(Utf8Text(), {"a", "b\xFF"}).find("not valid UTF-8"), std::string::npos);
}

TEST(OptionChecksTest, EveryKeyHasOneValue) {
  EXPECT_EQ(Parse(KeyValue(), {"k=1", "l=1", "m=", "n=a=b"}), "");
  EXPECT_NE(Parse(KeyValue(), {"k=1", "k=2"}).find("more than once"), std::string::npos);
  EXPECT_NE(Parse(KeyValue(), {"a"}).find("key=value"), std::string::npos);
  EXPECT_NE(Parse(KeyValue(), {"=a"}).find("key=value"), std::string::npos);
}

}  // namespace
}  // namespace conclave::tools
