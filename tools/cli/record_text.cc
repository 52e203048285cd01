#include "tools/cli/record_text.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/text/utf8.h"
#include "tools/cli/cli.h"

namespace conclave::tools {
namespace {

absl::Status Bad(const std::string& what) { return MakeError(v1::INVALID_RECORD, what); }

Json BytesToJson(const std::optional<std::string_view>& bytes) {
  if (!bytes) return nullptr;
  if (IsValidUtf8(*bytes)) return std::string(*bytes);
  return Json{{"base64", absl::Base64Escape(absl::string_view(bytes->data(), bytes->size()))}};
}

absl::StatusOr<std::optional<std::string>> BytesFromJson(const std::string& name,
                                                         const Json& json) {
  if (json.is_null()) return std::optional<std::string>();
  if (json.is_string()) return std::optional<std::string>(json.get<std::string>());
  if (json.is_object() && json.size() == 1 && json.contains("base64") &&
      json["base64"].is_string()) {
    std::string bytes;
    if (!absl::Base64Unescape(json["base64"].get<std::string>(), &bytes)) {
      return Bad(absl::StrCat("the base64 of \"", name, "\" is none"));
    }
    return std::optional<std::string>(std::move(bytes));
  }
  return Bad(absl::StrCat("\"", name, "\" is neither a string nor null nor {\"base64\": \"…\"}"));
}

absl::Status HeadersFromJson(const Json& json, ProducerRecord& record) {
  if (!json.is_array()) return Bad("\"headers\" is no list of {\"key\": …, \"value\": …}");
  for (const Json& item : json) {
    if (!item.is_object() || !item.contains("key")) {
      return Bad("a header is no {\"key\": …, \"value\": …}");
    }
    auto& [key, value] = record.headers.emplace_back();
    for (const auto& [name, member] : item.items()) {
      if (name != "key" && name != "value") {
        return Bad(absl::StrCat("a header has no \"", name, "\"; it has key and value"));
      }
      auto bytes = BytesFromJson(absl::StrCat("headers.", name), member);
      if (!bytes.ok()) return bytes.status();
      if (name == "value") {
        value = *std::move(bytes);
      } else if (*bytes) {
        key = **std::move(bytes);
      } else {
        return Bad("a header's key is null");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NumberFromJson(const std::string& name, const Json& json, int64_t max) {
  if (json.is_number_unsigned() && json.get<uint64_t>() <= static_cast<uint64_t>(max)) {
    return json.get<int64_t>();
  }
  return Bad(absl::StrCat("\"", name, "\" is no whole number from 0 to ", max));
}

}  // namespace

void LineSplitter::Add(std::string_view bytes, const Take& take) {
  size_t end;
  while ((end = bytes.find('\n')) != std::string_view::npos) {
    rest_.append(bytes.substr(0, end));
    take(std::exchange(rest_, std::string()));
    bytes.remove_prefix(end + 1);
  }
  rest_.append(bytes);
}

void LineSplitter::End(const Take& take) {
  if (!rest_.empty()) take(std::exchange(rest_, std::string()));
}

absl::StatusOr<ProducerRecord> RecordFromLine(std::string line,
                                              const std::optional<std::string>& key_separator) {
  ProducerRecord record;
  if (!key_separator) {
    record.value = std::move(line);
    return record;
  }
  const size_t at = line.find(*key_separator);
  if (at == std::string::npos) {
    return Bad(absl::StrCat("the line has no key separator \"", *key_separator,
                            "\"; with --format json records may be without a key"));
  }
  record.key = line.substr(0, at);
  record.value = line.substr(at + key_separator->size());
  return record;
}

absl::StatusOr<std::string> KeySeparatorFromText(std::string_view text) {
  if (text.empty()) {
    return MakeError(v1::INVALID_REQUEST, "a separator has one character at least");
  }
  std::string separator;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      separator += text[i];
      continue;
    }
    const char next = ++i < text.size() ? text[i] : '\0';
    if (next != 't' && next != '\\') {
      return MakeError(v1::INVALID_REQUEST,
                       "a backslash stands before t (a tab) or another backslash only");
    }
    separator += next == 't' ? '\t' : '\\';
  }
  return separator;
}

absl::StatusOr<ProducerRecord> RecordFromJson(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Bad("the line is no JSON object");
  ProducerRecord record;
  for (const auto& [name, member] : json.items()) {
    if (name == "key" || name == "value") {
      auto bytes = BytesFromJson(name, member);
      if (!bytes.ok()) return bytes.status();
      (name == "key" ? record.key : record.value) = *std::move(bytes);
    } else if (name == "headers") {
      if (absl::Status status = HeadersFromJson(member, record); !status.ok()) return status;
    } else if (name == "partition") {
      const auto number = NumberFromJson(name, member, std::numeric_limits<int32_t>::max());
      if (!number.ok()) return number.status();
      record.partition = PartitionIndex(static_cast<int32_t>(*number));
    } else if (name == "timestamp") {
      const auto number = NumberFromJson(name, member, std::numeric_limits<int64_t>::max());
      if (!number.ok()) return number.status();
      record.timestamp_ms = *number;
    } else if (name != "topic" && name != "offset") {
      return Bad(absl::StrCat("a record has no \"", name,
                              "\"; it has key, value, headers, partition and timestamp"));
    }
  }
  return record;
}

std::string RecordToJson(const TopicPartition& partition, const RecordView& record) {
  Json headers = Json::array();
  for (const HeaderView& header : record.headers) {
    headers.push_back({{"key", BytesToJson(header.key)}, {"value", BytesToJson(header.value)}});
  }
  const Json json = {{"topic", partition.topic},
                     {"partition", partition.partition.value()},
                     {"offset", record.offset.value()},
                     {"timestamp", record.timestamp_ms},
                     {"key", BytesToJson(record.key)},
                     {"value", BytesToJson(record.value)},
                     {"headers", headers}};
  return json.dump();
}

}  // namespace conclave::tools
