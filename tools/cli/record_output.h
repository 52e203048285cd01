#ifndef CONCLAVE_TOOLS_CLI_RECORD_OUTPUT_H_
#define CONCLAVE_TOOLS_CLI_RECORD_OUTPUT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/topic_partition.h"
#include "common/record/record_view.h"
#include "tools/cli/progress.h"

namespace conclave::tools {

// Records on stdout, in one of the formats of `consume`. A reader that has gone away is no error:
// the command ends, and says nothing.
class RecordOutput {
 public:
  // lines: a value a line. json: one object a line; of __consumer_offsets, what the records say.
  // value: values with nothing between them.
  explicit RecordOutput(const std::string& format);

  void Write(const TopicPartition& partition, const RecordView& record);
  // What was written is the reader's now, unless failed().
  void Flush();
  bool failed() const { return failed_; }
  // Ends what is shown of the work beside the records: before anything is reported.
  void EndProgress() { progress_.reset(); }
  // What the failure means; it is reported.
  int ExitCode() const;

 private:
  void Put(std::string_view bytes);
  void Fail();

  const std::string format_;
  bool failed_ = false;
  int error_ = 0;
  // Written by the user's thread, read by the progress.
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> bytes_{0};
  std::optional<Progress> progress_;
};

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_RECORD_OUTPUT_H_
