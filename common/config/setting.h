#ifndef CONCLAVE_COMMON_CONFIG_SETTING_H_
#define CONCLAVE_COMMON_CONFIG_SETTING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/endpoint.h"
#include "common/types/time.h"

namespace conclave {

enum class SettingType {
  kInteger,
  kBoolean,
  kText,
  // One of `choices`.
  kChoice,
  kEndpoint,
  kEndpointList,
};

// What a setting is, for parsing, for error messages and for the documentation made from it.
struct SettingDefinition {
  // Kafka's dotted name where the meaning is Kafka's.
  std::string key;
  SettingType type = SettingType::kText;
  // "ms", "bytes", …; empty: a plain number, or none at all.
  std::string unit;
  // In text form. Absent: `default_rule` says what holds.
  std::optional<std::string> default_value;
  std::string default_rule;
  // Must be given; has no default.
  bool required = false;
  // Of integers, both included.
  int64_t min = INT64_MIN;
  int64_t max = INT64_MAX;
  // Of choices.
  std::vector<std::string> choices;
  // Values that a user may well try, each with why it is refused and what to do.
  std::map<std::string, std::string> refused;
  std::string documentation;
  bool needs_restart = false;
};

// "an integer from 0 to 10 (ms)", for messages and documentation.
std::string AllowedValues(const SettingDefinition& definition);

// The value in its one canonical text form, or INVALID_CONFIG with what is allowed.
absl::StatusOr<std::string> CheckSetting(const SettingDefinition& definition,
                                         std::string_view text);

// The settings of one kind of thing, in the order in which they are documented.
class SettingsSchema {
 public:
  // `scope` names the kind in messages: "topic", "broker".
  SettingsSchema(std::string scope, std::vector<SettingDefinition> definitions);

  // Settings that a user may well look for here, and where they are given: for the error that
  // refuses them. `other` lives as long as this.
  void NameOther(const SettingsSchema& other, std::string advice);

  const std::string& scope() const { return scope_; }
  const std::vector<SettingDefinition>& definitions() const { return definitions_; }

  // nullptr: no such setting.
  const SettingDefinition* Find(std::string_view key) const;
  // The key that is fewest edits away.
  const std::string& Nearest(std::string_view key) const;
  // INVALID_CONFIG that names the nearest key.
  absl::Status UnknownKey(std::string_view key) const;
  // Looks the key up and checks the value.
  absl::StatusOr<std::string> Check(std::string_view key, std::string_view text) const;

 private:
  std::string scope_;
  std::vector<SettingDefinition> definitions_;
  const SettingsSchema* other_ = nullptr;
  std::string other_advice_;
};

// Values of a schema's settings: what was given, and defaults for the rest. Holds checked values
// alone, so the typed getters cannot fail; asking for a key of another type is a bug.
class Settings {
 public:
  // `schema` outlives this.
  explicit Settings(const SettingsSchema& schema) : schema_(&schema) {}

  absl::Status Set(std::string_view key, std::string_view text);
  // INVALID_CONFIG that names the first required setting without a value.
  absl::Status CheckRequired() const;

  bool IsGiven(std::string_view key) const;
  // Absent: neither given nor with a default.
  std::optional<std::string> Text(std::string_view key) const;
  int64_t Integer(std::string_view key) const;
  Duration Milliseconds(std::string_view key) const;
  bool Boolean(std::string_view key) const;
  std::optional<Endpoint> EndpointOf(std::string_view key) const;
  // Empty where there is none.
  std::vector<Endpoint> EndpointList(std::string_view key) const;

 private:
  const SettingsSchema* schema_;
  std::map<std::string, std::string, std::less<>> given_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_SETTING_H_
