#include "tools/cli/option_checks.h"

#include <limits>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"

namespace conclave::tools {

CLI::Validator WholeNumber(int64_t least) {
  const std::string wanted =
      absl::StrCat("a whole number from ", least, " to ", std::numeric_limits<int64_t>::max());
  return CLI::Validator(
      [least, wanted](std::string& text) -> std::string {
        int64_t number = 0;
        if (absl::SimpleAtoi(text, &number) && number >= least) return "";
        return absl::StrCat("\"", ToValidUtf8(text), "\" is not ", wanted);
      },
      "");
}

CLI::Validator Number(double least, double most) {
  const std::string wanted = absl::StrCat("a number from ", least, " to ", most);
  return CLI::Validator(
      [least, most, wanted](std::string& text) -> std::string {
        double number = 0;
        // Nothing compares with what is no number.
        if (absl::SimpleAtod(text, &number) && number >= least && number <= most) return "";
        return absl::StrCat("\"", ToValidUtf8(text), "\" is not ", wanted);
      },
      absl::StrCat("[", least, " - ", most, "]"));
}

CLI::Validator GroupName() {
  CLI::Validator utf8 = Utf8Text();
  return CLI::Validator(
      [utf8](std::string& text) -> std::string {
        return text.empty() ? "a group's name is not empty" : utf8(text);
      },
      "");
}

CLI::Validator Utf8Text() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (IsValidUtf8(text)) return "";
        return absl::StrCat("\"", ToValidUtf8(text),
                            "\" is not valid UTF-8; write the name in UTF-8, whatever the "
                            "terminal's encoding");
      },
      "");
}

CLI::Validator KeyValue() {
  auto seen = std::make_shared<std::set<std::string>>();
  return CLI::Validator(
      [seen](std::string& text) -> std::string {
        const std::string shown = ToValidUtf8(text);
        if (!IsValidUtf8(text)) return absl::StrCat("\"", shown, "\" is not valid UTF-8");
        const size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
          return absl::StrCat("\"", shown, "\" is not written key=value");
        }
        const std::string key = text.substr(0, equals);
        if (seen->insert(key).second) return "";
        return absl::StrCat("\"", key, "\" is given more than once; give it one value");
      },
      "");
}

}  // namespace conclave::tools
