#include "tests/history/text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/history/check.h"
#include "tests/history/testing/generator.h"

namespace conclave::history {
namespace {

std::vector<std::string> LinesOf(const History& history) {
  std::vector<std::string> lines;
  WriteLines(history, [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

History Read(const std::vector<std::string>& lines) {
  History history;
  for (const std::string& line : lines)
    EXPECT_EQ(ReadLine(line, history), absl::OkStatus()) << line;
  return history;
}

std::string WhyNot(const std::string& line) {
  History history;
  const absl::Status read = ReadLine(line, history);
  EXPECT_FALSE(read.ok()) << line;
  EXPECT_EQ(history.operations(), 0u);
  return std::string(read.message());
}

TEST(Text, WhatIsWrittenIsReadTheSame) {
  const History history = Generate({.seed = 3, .lasts = 4'000});
  const std::vector<std::string> lines = LinesOf(history);
  EXPECT_EQ(lines.size(), history.operations());
  const History again = Read(lines);
  EXPECT_EQ(LinesOf(again), lines);
  EXPECT_TRUE(Check(again).clean());
}

TEST(Text, EachKindIsWrittenAsDocumented) {
  const std::vector<std::string> lines = {
      R"({"op":"send","process":"p","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"value":"v","acks":"leader","idempotent":false,"offset":7})",
      R"({"op":"send","process":"p","invoke":1,"outcome":"info","topic":"id","partition":3,"value":"w","acks":"none","idempotent":true})",
      R"({"op":"poll","process":"c","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"group":"g","records":[[7,"v"],[8,{"hex":"ff00"}]]})",
      R"({"op":"position","process":"c","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"from":7})",
      R"({"op":"assignment","process":"c","invoke":1,"complete":2,"outcome":"ok","group":"g","member":"m","epoch":4,"partitions":[["id",3],["id",4]]})",
      R"({"op":"group_epoch","process":"c","invoke":1,"complete":2,"outcome":"ok","group":"g","epoch":4,"members":[["m",4]],"partitions":[["id",3]]})",
      R"({"op":"commit","process":"c","invoke":1,"complete":2,"outcome":"fail","group":"g","topic":"id","partition":3,"offset":8})",
      R"({"op":"committed_read","process":"c","invoke":1,"complete":2,"outcome":"ok","group":"g","topic":"id","partition":3})",
      R"({"op":"log_start","process":"c","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"offset":5})",
      R"({"op":"final_read","process":"c","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"log_start":5,"records":[]})",
      R"({"op":"metadata","process":"n","invoke":1,"complete":1,"outcome":"ok","controller":{"term":2,"leader":0},"topic":"id","partition":3,"leader":{"epoch":1,"leader":-1},"log":{"start":0,"high_watermark":1,"end":2}})",
      R"({"op":"dump","process":"n","invoke":1,"complete":2,"outcome":"ok","topic":"id","partition":3,"log_start":5,"high_watermark":9,"rows":[[5,1,4294967295]]})",
      R"({"op":"power_loss","process":"n","invoke":1,"complete":2,"outcome":"ok"})",
  };
  EXPECT_EQ(LinesOf(Read(lines)), lines);
}

TEST(Text, BlankLinesAreNothing) { EXPECT_EQ(Read({"", "  ", "\t\r"}).operations(), 0u); }

TEST(Text, WhatIsNoOperationIsRefusedWithTheReason) {
  const std::string head = R"({"process":"p","invoke":1,"complete":2,"outcome":"ok",)";
  const std::string commit = head + R"("op":"commit","group":"g","topic":"t",)";
  EXPECT_EQ(WhyNot("nonsense"), "it is no JSON object");
  EXPECT_EQ(WhyNot("[1]"), "it is no JSON object");
  EXPECT_EQ(WhyNot("{}"), "\"op\" is missing");
  EXPECT_EQ(WhyNot(R"({"op":"sent"})"), "there is no \"op\" \"sent\"");
  EXPECT_EQ(WhyNot(R"({"op":7})"), "\"op\" is no string");
  EXPECT_EQ(WhyNot(R"({"op":"power_loss"})"), "\"process\" is missing");
  EXPECT_EQ(WhyNot(R"({"op":"power_loss","process":"","invoke":0})"), "\"process\" is empty");
  EXPECT_EQ(WhyNot(R"({"op":"power_loss","process":"p","invoke":2,"complete":1,"outcome":"ok"})"),
            "it is complete before it is invoked");
  EXPECT_EQ(WhyNot(R"({"op":"power_loss","process":"p","invoke":2,"outcome":"fine"})"),
            "\"outcome\" is none of ok, fail, info");
  EXPECT_EQ(WhyNot(head + R"("op":"power_loss","colour":1})"), "it can have no \"colour\"");
  EXPECT_EQ(WhyNot(commit + R"("partition":0})"), "\"offset\" is missing");
  EXPECT_EQ(WhyNot(commit + R"("partition":2147483648,"offset":0})"),
            "\"partition\" is no number from 0 to 2147483647");
  for (const char* offset : {"-1", "1.5", "\"1\"", "null", "9223372036854775808", "1e300", "[]"}) {
    EXPECT_EQ(WhyNot(commit + R"("partition":0,"offset":)" + offset + "}"),
              "\"offset\" is no number from 0 to 9223372036854775807");
  }
  const std::string poll = head + R"("op":"poll","topic":"t","partition":0,"records":)";
  EXPECT_EQ(WhyNot(poll + "7}"), "\"records\" is no array");
  EXPECT_EQ(WhyNot(poll + "[7]}"), "\"records\" has an element that is no array of 2");
  EXPECT_EQ(WhyNot(poll + R"([[0,{"hex":"0"}]]})"),
            "a value is neither a string nor {\"hex\": digits}");
  const std::string metadata = head + R"("op":"metadata",)";
  EXPECT_EQ(WhyNot(metadata + R"("controller":1})"), "\"controller\" is no object");
  EXPECT_EQ(WhyNot(metadata + R"("controller":{"term":1}})"),
            "in \"controller\": \"leader\" is missing");
  EXPECT_EQ(WhyNot(metadata + R"("log":{"start":0,"high_watermark":0,"end":0}})"),
            "\"topic\" is missing");
}

// Nothing that stands in a file ends the program.
TEST(Text, DamagedLinesAreReadOrRefused) {
  const std::vector<std::string> lines = LinesOf(Generate({.seed = 4, .lasts = 1'500}));
  Random random(4);
  size_t refused = 0;
  for (int round = 0; round < 20; ++round) {
    History history;
    for (std::string line : lines) {
      const int changes = static_cast<int>(random.Below(3));
      for (int i = 0; i < changes && !line.empty(); ++i) {
        const size_t at = random.Below(line.size());
        if (random.Chance(0.3)) {
          line.erase(at, random.Below(20));
        } else {
          // Mostly digits, so that much of it stays an operation.
          line[at] = random.Chance(0.8) ? static_cast<char>('0' + random.Below(10))
                                        : static_cast<char>(random.Below(256));
        }
      }
      refused += !ReadLine(line, history).ok();
    }
    EXPECT_GT(history.operations(), lines.size() / 4);
    Check(history);
    Check(history, {.flush_policy = CheckOptions::FlushPolicy::kReplicated});
    LinesOf(history);
  }
  EXPECT_GT(refused, lines.size());
}

TEST(Text, DeepNestingIsRefused) {
  EXPECT_EQ(WhyNot(std::string(1'000'000, '[')), "it is no JSON object");
  EXPECT_EQ(WhyNot("{\"op\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}"),
            "\"op\" is no string");
}

}  // namespace
}  // namespace conclave::history
