#include "tools/cli/record_output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/cli.h"
#include "tools/cli/group_record_text.h"
#include "tools/cli/record_text.h"

namespace conclave::tools {

RecordOutput::RecordOutput(const std::string& format) : format_(format) {
  std::signal(SIGPIPE, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOFBF, size_t{1} << 16);
  progress_.emplace(STDOUT_FILENO, [this] {
    return absl::StrCat(records_.load(), " records, ", MegabytesText(bytes_.load()));
  });
}

void RecordOutput::Write(const TopicPartition& partition, const RecordView& record) {
  ++records_;
  if (format_ == "json") {
    Put(partition.topic == kOffsetsTopic ? GroupRecordToJson(partition, record)
                                         : RecordToJson(partition, record));
    Put("\n");
    return;
  }
  if (record.value) Put(*record.value);
  if (format_ == "lines") Put("\n");
}

void RecordOutput::Flush() {
  if (!failed_ && std::fflush(stdout) != 0) Fail();
}

int RecordOutput::ExitCode() const {
  if (error_ == EPIPE) return kDone;
  return Report(MakeError(v1::INVALID_REQUEST,
                          absl::StrCat("cannot write to stdout: ", std::strerror(error_))));
}

void RecordOutput::Put(std::string_view bytes) {
  if (!failed_ && std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) Fail();
  bytes_ += bytes.size();
}

void RecordOutput::Fail() {
  failed_ = true;
  error_ = errno;
}

}  // namespace conclave::tools
