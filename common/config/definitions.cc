#include "common/config/definitions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

SettingDefinition Define(std::string key, SettingType type, std::string documentation) {
  SettingDefinition definition;
  definition.key = std::move(key);
  definition.type = type;
  definition.documentation = std::move(documentation);
  definition.needs_restart = true;
  return definition;
}

}  // namespace

SettingDefinition RequiredId(std::string key, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kInteger, std::move(documentation));
  definition.required = true;
  definition.min = 0;
  definition.max = INT32_MAX;
  return definition;
}

SettingDefinition RequiredText(std::string key, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kText, std::move(documentation));
  definition.required = true;
  return definition;
}

SettingDefinition OptionalText(std::string key, std::string rule, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kText, std::move(documentation));
  definition.default_rule = std::move(rule);
  return definition;
}

SettingDefinition EndpointSetting(std::string key, std::string default_value,
                                  std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kEndpoint, std::move(documentation));
  definition.default_value = std::move(default_value);
  return definition;
}

SettingDefinition OptionalEndpoint(std::string key, std::string rule, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kEndpoint, std::move(documentation));
  definition.default_rule = std::move(rule);
  return definition;
}

SettingDefinition OptionalEndpointList(std::string key, std::string rule,
                                       std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kEndpointList, std::move(documentation));
  definition.default_rule = std::move(rule);
  return definition;
}

SettingDefinition RequiredEndpointList(std::string key, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kEndpointList, std::move(documentation));
  definition.required = true;
  return definition;
}

SettingDefinition MillisecondsSetting(std::string key, int64_t default_ms, int64_t min_ms,
                                      int64_t max_ms, std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kInteger, std::move(documentation));
  definition.unit = "ms";
  definition.default_value = absl::StrCat(default_ms);
  definition.min = min_ms;
  definition.max = max_ms;
  return definition;
}

SettingDefinition IntegerSetting(std::string key, int64_t default_value, int64_t min, int64_t max,
                                 std::string documentation) {
  auto definition = Define(std::move(key), SettingType::kInteger, std::move(documentation));
  definition.default_value = absl::StrCat(default_value);
  definition.min = min;
  definition.max = max;
  return definition;
}

absl::Status CheckAdvertised(const Endpoint& listener, const std::optional<Endpoint>& advertised) {
  if (advertised && advertised->port == 0) {
    return MakeError(
        v1::INVALID_CONFIG,
        absl::StrCat(
            "advertised.listener ", ToString(*advertised),
            " has port 0, which nobody can connect to; give the port, or leave the setting "
            "out to advertise what the listener is bound to"));
  }
  const std::string& host = advertised.value_or(listener).host;
  if (host != "0.0.0.0" && host != "::" && host != "[::]") return absl::OkStatus();
  return MakeError(
      v1::INVALID_CONFIG,
      absl::StrCat(advertised ? "advertised.listener " : "listener ",
                   ToString(advertised.value_or(listener)),
                   " stands for every address of this machine, and from another one nobody can "
                   "connect to it; set advertised.listener to a host:port that they can"));
}

}  // namespace conclave
