#include <algorithm>
#include <iostream>

#include "common/error/error.h"
#include "common/types/ids.h"
#include "tools/cli/cli.h"

namespace conclave::tools {

void PrintTable(const std::vector<std::string>& headings,
                const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::string& heading : headings) widths.push_back(heading.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    // Last cells may be empty.
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  };
  print(headings);
  for (const auto& row : rows) print(row);
  std::cout.flush();
}

void PrintJson(const Json& json) {
  // Texts of users may be no UTF-8: they are shown damaged rather than not at all.
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
}

int ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return kDone;
  switch (ErrorCodeOf(status)) {
    case v1::NETWORK_EXCEPTION:
    case v1::REQUEST_TIMED_OUT:
      return kUnreachable;
    default:
      return kRefused;
  }
}

int Report(const absl::Status& status) {
  if (status.ok()) return kDone;
  absl::Status shown = status;
  if (absl::IsNotFound(status) && ErrorCodeOf(status) == v1::UNKNOWN_SERVER_ERROR) {
    // A file or directory that is not there: whoever named it is to name another.
    shown = MakeError(v1::INVALID_REQUEST, std::string(status.message()));
  }
  std::cerr << "conclave: " << Describe(shown) << std::endl;
  return ExitCodeFor(shown);
}

std::string IdText(const std::string& bytes) {
  const auto id = TopicId::FromBytes(bytes);
  return id && !id->IsNone() ? id->ToString() : "";
}

}  // namespace conclave::tools
