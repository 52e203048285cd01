#include "common/config/settings_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

namespace conclave {
namespace {

// One key of a file with its place.
struct Line {
  std::string file_name;
  unsigned number;
  std::string key;
};

absl::Status At(const Line& line, const std::string& what) {
  return MakeError(v1::INVALID_CONFIG, absl::StrCat(line.file_name, ":", line.number, ": ", what));
}

// The text form of a single value; nullopt for what no setting takes.
std::optional<std::string> ScalarText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return absl::StrCat(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::string> ArrayText(const toml::array& array) {
  std::string joined;
  for (const toml::node& element : array) {
    const auto* text = element.as_string();
    if (text == nullptr || text->get().find(',') != std::string::npos) return std::nullopt;
    if (!joined.empty()) joined += ',';
    joined += text->get();
  }
  return joined;
}

// Visits the leaves of a table, tables within it by their dotted names.
class TableReader {
 public:
  TableReader(const std::string& file_name, Settings& settings)
      : file_name_(file_name), settings_(settings) {}

  absl::Status Read(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = prefix + std::string(name.str());
      if (const auto* inner = node.as_table()) {
        if (auto status = Read(*inner, key + "."); !status.ok()) return status;
        continue;
      }
      const auto number = static_cast<unsigned>(name.source().begin.line);
      if (auto status = Put({file_name_, number, key}, node); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Put(const Line& line, const toml::node& node) {
    const auto [seen, is_first] = seen_.emplace(line.key, line.number);
    if (!is_first) {
      return At(line, absl::StrCat(line.key, " was set in line ", seen->second,
                                   " already; remove one of the two"));
    }
    const auto* array = node.as_array();
    const auto text = array != nullptr ? ArrayText(*array) : ScalarText(node);
    if (!text) {
      return At(line, absl::StrCat(line.key,
                                   " has a value of a kind that no setting takes; write an "
                                   "integer, true, false, or a text in quotes"));
    }
    if (auto status = settings_.Set(line.key, *text); !status.ok()) {
      return At(line, std::string(status.message()));
    }
    return absl::OkStatus();
  }

  const std::string& file_name_;
  Settings& settings_;
  std::map<std::string, unsigned> seen_;
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad() || !file.is_open()) {
    return MakeError(v1::INVALID_CONFIG, absl::StrCat("cannot read the configuration file ", path,
                                                      ": ", std::strerror(errno)));
  }
  return text;
}

}  // namespace

absl::Status ReadSettingsText(std::string_view text, const std::string& file_name,
                              Settings& settings) {
  const toml::parse_result parsed = toml::parse(text, file_name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const Line line{file_name, static_cast<unsigned>(error.source().begin.line), ""};
    return At(line, absl::StrCat("this is no TOML: ", std::string(error.description())));
  }
  return TableReader(file_name, settings).Read(parsed.table(), "");
}

absl::Status ReadSettingOverrides(const std::vector<std::string>& overrides, Settings& settings) {
  for (const std::string& argument : overrides) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return MakeError(v1::INVALID_CONFIG,
                       absl::StrCat("--set ", argument, ": write --set key=value"));
    }
    const auto status = settings.Set(argument.substr(0, equals), argument.substr(equals + 1));
    if (!status.ok()) {
      return MakeError(v1::INVALID_CONFIG,
                       absl::StrCat("--set ", argument, ": ", std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> LoadSettings(const SettingsSchema& schema, const std::string& path,
                                      const std::vector<std::string>& overrides) {
  Settings settings(schema);
  if (!path.empty()) {
    const auto text = ReadFile(path);
    if (!text.ok()) return text.status();
    if (auto status = ReadSettingsText(*text, path, settings); !status.ok()) return status;
  }
  if (auto status = ReadSettingOverrides(overrides, settings); !status.ok()) return status;
  if (auto status = settings.CheckRequired(); !status.ok()) return status;
  return settings;
}

}  // namespace conclave
