#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <streambuf>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/types/ids.h"
#include "tools/cli/cli.h"

namespace conclave::tools {
namespace {

// Hands on to stdio, and keeps the reason of the first failure: a stream tells only that it failed,
// and errno does not last.
class StdoutBuffer : public std::streambuf {
 public:
  int error() const { return error_; }
  void Flush() {
    if (std::fflush(stdout) != 0) Fail();
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const size_t written = std::fwrite(bytes, 1, static_cast<size_t>(count), stdout);
    if (written != static_cast<size_t>(count)) Fail();
    return static_cast<std::streamsize>(written);
  }
  int sync() override {
    Flush();
    return error_ == 0 ? 0 : -1;
  }

 private:
  void Fail() {
    if (error_ == 0) error_ = errno == 0 ? EIO : errno;
  }

  int error_ = 0;
};

StdoutBuffer& Stdout() {
  // Lives as long as std::cout, which flushes it as the process ends.
  static auto* const buffer = new StdoutBuffer;
  return *buffer;
}

}  // namespace

void StartOutput() {
  std::signal(SIGPIPE, SIG_IGN);
  std::cout.rdbuf(&Stdout());
}

int FinishOutput(int exit_code) {
  Stdout().Flush();
  const int error = Stdout().error();
  // A command that failed has told why.
  if (error == 0 || error == EPIPE || exit_code != kDone) return exit_code;
  return Report(MakeError(v1::UNKNOWN_SERVER_ERROR,
                          absl::StrCat("cannot write to stdout: ", std::strerror(error),
                                       "; what was asked was done all the same")));
}

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
