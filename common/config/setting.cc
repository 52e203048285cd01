#include "common/config/setting.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/edit_distance.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr size_t kShownLength = 80;

absl::Status BadValue(const SettingDefinition& definition, std::string_view text) {
  return MakeError(v1::INVALID_CONFIG,
                   absl::StrCat(definition.key, " cannot be '",
                                absl::CHexEscape(std::string(text.substr(0, kShownLength))),
                                "'; it takes ", AllowedValues(definition)));
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<std::string> CheckInteger(const SettingDefinition& definition,
                                         std::string_view text) {
  const auto value = ParseInteger(text);
  if (!value || *value < definition.min || *value > definition.max) {
    return BadValue(definition, text);
  }
  return absl::StrCat(*value);
}

absl::StatusOr<std::string> CheckEndpoints(const SettingDefinition& definition,
                                           std::string_view text) {
  auto endpoints = ParseEndpointList(text);
  if (!endpoints.ok()) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat(definition.key, ": ", std::string(endpoints.status().message())));
  }
  if (definition.type == SettingType::kEndpoint && endpoints->size() != 1) {
    return BadValue(definition, text);
  }
  return absl::StrJoin(*endpoints, ",", [](std::string* out, const Endpoint& endpoint) {
    out->append(ToString(endpoint));
  });
}

}  // namespace

std::string AllowedValues(const SettingDefinition& definition) {
  const std::string unit = definition.unit.empty() ? "" : absl::StrCat(" (", definition.unit, ")");
  switch (definition.type) {
    case SettingType::kInteger:
      return absl::StrCat("an integer from ", definition.min, " to ", definition.max, unit);
    case SettingType::kBoolean:
      return "true or false";
    case SettingType::kText:
      return "a text that is not empty";
    case SettingType::kChoice:
      return absl::StrJoin(definition.choices, " or ");
    case SettingType::kEndpoint:
      return "host:port";
    case SettingType::kEndpointList:
      return "host:port, several separated by commas";
  }
  LOG(FATAL) << "a setting of no type: " << definition.key;
}

absl::StatusOr<std::string> CheckSetting(const SettingDefinition& definition,
                                         std::string_view text) {
  const std::string value(text);
  if (const auto refused = definition.refused.find(value); refused != definition.refused.end()) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat(definition.key, " cannot be '", value, "': ", refused->second));
  }
  switch (definition.type) {
    case SettingType::kInteger:
      return CheckInteger(definition, text);
    case SettingType::kBoolean:
      if (text == "true" || text == "false") return value;
      return BadValue(definition, text);
    case SettingType::kText:
      if (!text.empty()) return value;
      return BadValue(definition, text);
    case SettingType::kChoice:
      if (std::find(definition.choices.begin(), definition.choices.end(), value) !=
          definition.choices.end()) {
        return value;
      }
      return BadValue(definition, text);
    case SettingType::kEndpoint:
    case SettingType::kEndpointList:
      return CheckEndpoints(definition, text);
  }
  LOG(FATAL) << "a setting of no type: " << definition.key;
}

SettingsSchema::SettingsSchema(std::string scope, std::vector<SettingDefinition> definitions)
    : scope_(std::move(scope)), definitions_(std::move(definitions)) {
  CHECK(!definitions_.empty());
  for (const SettingDefinition& definition : definitions_) {
    CHECK(!definition.documentation.empty()) << definition.key << " is not documented";
    if (!definition.default_value) continue;
    const auto checked = CheckSetting(definition, *definition.default_value);
    CHECK(checked.ok()) << checked.status();
    CHECK_EQ(*checked, *definition.default_value) << definition.key << ": default not canonical";
  }
}

const SettingDefinition* SettingsSchema::Find(std::string_view key) const {
  const auto found = std::find_if(definitions_.begin(), definitions_.end(),
                                  [key](const SettingDefinition& d) { return d.key == key; });
  return found == definitions_.end() ? nullptr : &*found;
}

const std::string& SettingsSchema::Nearest(std::string_view key) const {
  // Whoever gives a book for a key is not helped by a distance.
  const std::string_view start = key.substr(0, kShownLength);
  return std::min_element(definitions_.begin(), definitions_.end(),
                          [start](const SettingDefinition& a, const SettingDefinition& b) {
                            return EditDistance(start, a.key) < EditDistance(start, b.key);
                          })
      ->key;
}

void SettingsSchema::NameOther(const SettingsSchema& other, std::string advice) {
  other_ = &other;
  other_advice_ = std::move(advice);
}

absl::Status SettingsSchema::UnknownKey(std::string_view key) const {
  if (other_ != nullptr && other_->Find(key) != nullptr) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat("'", std::string(key), "' is a ", other_->scope(),
                                  " setting and no ", scope_, " setting; ", other_advice_));
  }
  return MakeError(v1::INVALID_CONFIG,
                   absl::StrCat("there is no ", scope_, " setting '",
                                absl::CHexEscape(std::string(key.substr(0, kShownLength))),
                                "'; the nearest name is '", Nearest(key), "'"));
}

absl::StatusOr<std::string> SettingsSchema::Check(std::string_view key,
                                                  std::string_view text) const {
  const SettingDefinition* definition = Find(key);
  if (definition == nullptr) return UnknownKey(key);
  return CheckSetting(*definition, text);
}

absl::Status Settings::Set(std::string_view key, std::string_view text) {
  auto value = schema_->Check(key, text);
  if (!value.ok()) return value.status();
  given_.insert_or_assign(std::string(key), *std::move(value));
  return absl::OkStatus();
}

absl::Status Settings::CheckRequired() const {
  for (const SettingDefinition& definition : schema_->definitions()) {
    if (!definition.required || IsGiven(definition.key)) continue;
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat(definition.key, " is not given (", definition.documentation,
                                  "); it takes ", AllowedValues(definition),
                                  "; set it in the file or with --set ", definition.key, "=…"));
  }
  return absl::OkStatus();
}

bool Settings::IsGiven(std::string_view key) const { return given_.find(key) != given_.end(); }

std::optional<std::string> Settings::Text(std::string_view key) const {
  if (const auto found = given_.find(key); found != given_.end()) return found->second;
  const SettingDefinition* definition = schema_->Find(key);
  CHECK(definition != nullptr) << "no " << schema_->scope() << " setting is called " << key;
  return definition->default_value;
}

int64_t Settings::Integer(std::string_view key) const {
  const auto text = Text(key);
  CHECK(text.has_value()) << key << " has no value";
  const auto value = ParseInteger(*text);
  CHECK(value.has_value()) << key << " is no integer";
  return *value;
}

Duration Settings::Milliseconds(std::string_view key) const {
  return Duration::Milliseconds(Integer(key));
}

bool Settings::Boolean(std::string_view key) const {
  const auto text = Text(key);
  CHECK(text == "true" || text == "false") << key << " is no boolean";
  return text == "true";
}

std::optional<Endpoint> Settings::EndpointOf(std::string_view key) const {
  const auto endpoints = EndpointList(key);
  if (endpoints.empty()) return std::nullopt;
  return endpoints.front();
}

std::vector<Endpoint> Settings::EndpointList(std::string_view key) const {
  const auto text = Text(key);
  if (!text) return {};
  auto endpoints = ParseEndpointList(*text);
  CHECK(endpoints.ok()) << key << ": " << endpoints.status();
  return *std::move(endpoints);
}

}  // namespace conclave
