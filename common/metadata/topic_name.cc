#include "common/metadata/topic_name.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// Whatever a caller sent, printable and short.
std::string Shown(std::string_view name) {
  constexpr size_t kShownLength = 60;
  const std::string escaped =
      absl::CHexEscape(absl::string_view(name.data(), std::min(name.size(), kShownLength)));
  return absl::StrCat("'", escaped, name.size() > kShownLength ? "…'" : "'");
}

}  // namespace

absl::Status CheckTopicName(std::string_view name) {
  if (name.empty()) {
    return MakeError(v1::INVALID_TOPIC, "a topic's name is empty; give it 1 to 249 characters");
  }
  if (name.size() > kMaxTopicNameLength) {
    return MakeError(v1::INVALID_TOPIC,
                     absl::StrCat("topic name ", Shown(name), " has ", name.size(),
                                  " characters; at most ", kMaxTopicNameLength, " are allowed"));
  }
  if (name == "." || name == "..") {
    return MakeError(v1::INVALID_TOPIC,
                     absl::StrCat("topic name ", Shown(name),
                                  " names a folder of the file system; choose another name"));
  }
  if (!std::all_of(name.begin(), name.end(), IsAllowed)) {
    return MakeError(
        v1::INVALID_TOPIC,
        absl::StrCat("topic name ", Shown(name),
                     " has a character that is not allowed; use letters of ASCII, digits, '.', "
                     "'_' and '-'"));
  }
  return absl::OkStatus();
}

bool IsInternalTopicName(std::string_view name) {
  return name.substr(0, kInternalTopicPrefix.size()) == kInternalTopicPrefix;
}

std::string CanonicalTopicName(std::string_view name) {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '.', '_');
  return canonical;
}

}  // namespace conclave
