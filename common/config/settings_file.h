#ifndef CONCLAVE_COMMON_CONFIG_SETTINGS_FILE_H_
#define CONCLAVE_COMMON_CONFIG_SETTINGS_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/setting.h"

namespace conclave {

// Puts the settings of a TOML text into `settings`. `a.b.c = 1`, `[a.b] c = 1` and `"a.b.c" = 1`
// say the same; a list of endpoints may be an array of texts. The first error is returned, as
// INVALID_CONFIG with file (as `file_name` calls it), line, key and what is allowed.
absl::Status ReadSettingsText(std::string_view text, const std::string& file_name,
                              Settings& settings);

// Puts `--set key=value` arguments in, in order, over what is there.
absl::Status ReadSettingOverrides(const std::vector<std::string>& overrides, Settings& settings);

// A binary's settings: the file at `path` (empty: no file), then the overrides; all required ones
// are there. `schema` outlives the result.
absl::StatusOr<Settings> LoadSettings(const SettingsSchema& schema, const std::string& path,
                                      const std::vector<std::string>& overrides);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_SETTINGS_FILE_H_
