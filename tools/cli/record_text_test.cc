#include "tools/cli/record_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/error/error.h"

namespace conclave::tools {
namespace {

std::vector<std::string> Lines(const std::vector<std::string>& pieces) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto take = [&](std::string line) { lines.push_back(std::move(line)); };
  for (const std::string& piece : pieces) splitter.Add(piece, take);
  splitter.End(take);
  return lines;
}

using Strings = std::vector<std::string>;

TEST(LineSplitterTest, R39_OnlyANewlineEndsALineAndEveryOtherByteIsKept) {
  EXPECT_EQ(Lines({}), Strings());
  EXPECT_EQ(Lines({""}), Strings());
  EXPECT_EQ(Lines({"\n"}), Strings({""}));
  EXPECT_EQ(Lines({"a\n"}), Strings({"a"}));
  EXPECT_EQ(Lines({"a"}), Strings({"a"}));
  EXPECT_EQ(Lines({"a\n\nb"}), Strings({"a", "", "b"}));
  EXPECT_EQ(Lines({"a\r\nb\r"}), Strings({"a\r", "b\r"}));
  EXPECT_EQ(Lines({"one ", "line\ntw", "o\n"}), Strings({"one line", "two"}));
  const std::string bytes("\x00\xff\x0b\x85", 4);
  EXPECT_EQ(Lines({bytes + "\n"}), Strings({bytes}));
}

TEST(RecordFromLineTest, TheFirstSeparatorEndsTheKey) {
  const auto plain = RecordFromLine("k:v", std::nullopt);
  EXPECT_EQ(plain->key, std::nullopt);
  EXPECT_EQ(plain->value, "k:v");
  const auto keyed = RecordFromLine("k::v::w", "::");
  EXPECT_EQ(keyed->key, "k");
  EXPECT_EQ(keyed->value, "v::w");
  const auto empty = RecordFromLine(":", ":");
  EXPECT_EQ(empty->key, "");
  EXPECT_EQ(empty->value, "");
  EXPECT_EQ(ErrorCodeOf(RecordFromLine("kv", ":").status()), v1::INVALID_RECORD);
}

TEST(RecordFromJsonTest, TakesAllThatARecordHas) {
  const auto record = RecordFromJson(
      R"({"key":"k","value":{"base64":"AP8="},"partition":3,"timestamp":77,)"
      R"("headers":[{"key":"a","value":null},{"key":"a","value":""}],"topic":"x","offset":9})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->key, "k");
  EXPECT_EQ(record->value, std::string("\0\xff", 2));
  EXPECT_EQ(record->partition, PartitionIndex(3));
  EXPECT_EQ(record->timestamp_ms, 77);
  ASSERT_EQ(record->headers.size(), 2u);
  EXPECT_EQ(record->headers[0].second, std::nullopt);
  EXPECT_EQ(record->headers[1].second, "");
}

TEST(KeySeparatorTest, KnowsTabAndBackslash) {
  EXPECT_EQ(*KeySeparatorFromText(":"), ":");
  EXPECT_EQ(*KeySeparatorFromText("\\t"), "\t");
  EXPECT_EQ(*KeySeparatorFromText("\t"), "\t");
  EXPECT_EQ(*KeySeparatorFromText("a\\\\\\tb"), "a\\\tb");
  for (const char* wrong : {"", "\\", "\\n", "\\\\\\"}) {
    EXPECT_EQ(ErrorCodeOf(KeySeparatorFromText(wrong).status()), v1::INVALID_REQUEST) << wrong;
  }
}

TEST(RecordFromJsonTest, TellsNullFromEmpty) {
  EXPECT_EQ(RecordFromJson(R"({"value":null})")->value, std::nullopt);
  EXPECT_EQ(RecordFromJson(R"({})")->value, std::nullopt);
  EXPECT_EQ(RecordFromJson(R"({"value":""})")->value, "");
  EXPECT_EQ(RecordFromJson(R"({"value":"null"})")->value, "null");
  EXPECT_EQ(RecordFromJson(R"({"value":"","key":null})")->key, std::nullopt);
}

TEST(RecordFromJsonTest, RefusesByName) {
  for (const char* line :
       {"", "x", "[]", "3", R"({"value":3})", R"({"value":{"base64":"*"}})", R"({"values":""})",
        R"({"value":{"base64":"","x":1}})", R"({"partition":-1})", R"({"partition":1.5})",
        R"({"partition":2147483648})", R"({"timestamp":"1"})", R"({"headers":{}})",
        R"({"headers":[{"value":""}]})", R"({"headers":[{"key":null}]})",
        R"({"headers":[{"key":"a","x":1}]})"}) {
    EXPECT_EQ(ErrorCodeOf(RecordFromJson(line).status()), v1::INVALID_RECORD) << line;
  }
  EXPECT_NE(std::string(RecordFromJson(R"({"values":""})").status().message()).find("values"),
            std::string::npos);
}

TEST(RecordToJsonTest, R39_GoesThereAndBack) {
  const std::optional<std::string_view> cases[] = {
      std::nullopt, "",        "null", "text \"quoted\" \\ \n \t", std::string_view("\0", 1),
      "\xff\x00",   "\xc3\xa4"};
  for (const auto& bytes : cases) {
    RecordView view;
    view.offset = Offset(5);
    view.timestamp_ms = 99;
    view.key = bytes;
    view.value = bytes;
    view.headers.push_back({"\xfe", bytes});
    const std::string text = RecordToJson({"t", PartitionIndex(2)}, view);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto record = RecordFromJson(text);
    ASSERT_TRUE(record.ok()) << text << record.status();
    EXPECT_EQ(record->key, bytes);
    EXPECT_EQ(record->value, bytes);
    EXPECT_EQ(record->headers.at(0).first, "\xfe");
    EXPECT_EQ(record->headers.at(0).second, bytes);
    EXPECT_EQ(record->timestamp_ms, 99);
    EXPECT_EQ(record->partition, PartitionIndex(2));
  }
}

TEST(RecordToJsonTest, HasItsFieldsInOrder) {
  RecordView view;
  view.offset = Offset(7);
  view.timestamp_ms = 1;
  view.value = "\xff";
  EXPECT_EQ(RecordToJson({"t", PartitionIndex(0)}, view),
            R"({"topic":"t","partition":0,"offset":7,"timestamp":1,"key":null,)"
            R"("value":{"base64":"/w=="},"headers":[]})");
}

}  // namespace
}  // namespace conclave::tools
