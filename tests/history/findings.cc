#include "tests/history/findings.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace conclave::history {
namespace {

constexpr size_t kValueShown = 60;

}  // namespace

std::string Findings::Log(KeyIndex key) const {
  if (key == KeyIndex::kNone) return "no log";
  const Key& found = history_.KeyAt(key);
  return absl::StrCat("log ", found.topic_id, "-", found.partition);
}

std::string Findings::By(const Operation& operation) const {
  std::string text = absl::StrCat(Named(operation.process), " at ", operation.invoke, "..");
  if (operation.complete != kNever) absl::StrAppend(&text, operation.complete);
  return text;
}

std::string Findings::Value(std::string_view value) {
  const std::string_view shown = value.substr(0, kValueShown);
  return absl::StrCat("\"", absl::CHexEscape({shown.data(), shown.size()}), "\"",
                      shown.size() < value.size() ? "..." : "");
}

CheckReport Findings::Take() && {
  std::stable_sort(report_.violations.begin(), report_.violations.end(),
                   [](const Violation& a, const Violation& b) { return a.rule < b.rule; });
  return std::move(report_);
}

}  // namespace conclave::history
