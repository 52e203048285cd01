#ifndef CONCLAVE_COMMON_CONFIG_DEFINITIONS_H_
#define CONCLAVE_COMMON_CONFIG_DEFINITIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/config/setting.h"

// Definitions of a binary's settings in one line each. All of them need a restart: they are read
// once, when the process starts.
namespace conclave {

SettingDefinition RequiredId(std::string key, std::string documentation);
SettingDefinition RequiredText(std::string key, std::string documentation);
SettingDefinition OptionalText(std::string key, std::string rule, std::string documentation);
SettingDefinition EndpointSetting(std::string key, std::string default_value,
                                  std::string documentation);
// `rule` says what holds without it.
SettingDefinition OptionalEndpoint(std::string key, std::string rule, std::string documentation);
SettingDefinition OptionalEndpointList(std::string key, std::string rule,
                                       std::string documentation);
SettingDefinition RequiredEndpointList(std::string key, std::string documentation);
SettingDefinition MillisecondsSetting(std::string key, int64_t default_ms, int64_t min_ms,
                                      int64_t max_ms, std::string documentation);

SettingDefinition IntegerSetting(std::string key, int64_t default_value, int64_t min, int64_t max,
                                 std::string documentation);

// INVALID_CONFIG: clients cannot connect to port 0.
absl::Status CheckAdvertised(const Endpoint& listener, const std::optional<Endpoint>& advertised);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_DEFINITIONS_H_
