#ifndef CONCLAVE_TOOLS_CLI_RECORD_TEXT_H_
#define CONCLAVE_TOOLS_CLI_RECORD_TEXT_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/topic_partition.h"
#include "client/producer/producer_record.h"
#include "common/record/record_view.h"

// Records as text: what `produce` reads and `consume` writes.
namespace conclave::tools {

// Cuts bytes into lines. "\n" alone ends a line; every other byte is kept, "\r" and NUL too; a last
// line without "\n" counts, an empty rest does not.
class LineSplitter {
 public:
  using Take = std::function<void(std::string line)>;

  void Add(std::string_view bytes, const Take& take);
  // There are no more bytes.
  void End(const Take& take);

 private:
  std::string rest_;
};

// The line as the value; or, with a separator, what stands before its first occurrence as the key
// and what stands behind it as the value. INVALID_RECORD if the separator is not there.
absl::StatusOr<ProducerRecord> RecordFromLine(std::string line,
                                              const std::optional<std::string>& key_separator);

// A separator as it is typed: \t is a tab, \\ a backslash. INVALID_REQUEST where it is empty, or a
// backslash stands before anything else.
absl::StatusOr<std::string> KeySeparatorFromText(std::string_view text);

// An object with `value`, and as wanted `key`, `headers` (a list of objects with `key` and
// `value`), `partition`, `timestamp` (milliseconds). Keys and values are a string, null (so is one
// that is absent), or {"base64": "…"}. `topic` and `offset` are passed over, so that what `consume`
// wrote can be read; anything else is INVALID_RECORD.
absl::StatusOr<ProducerRecord> RecordFromJson(const std::string& line);

// One object, without the line's end: topic, partition, offset, timestamp, key, value, headers.
// Bytes that are no UTF-8 are {"base64": "…"}; null is null.
std::string RecordToJson(const TopicPartition& partition, const RecordView& record);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_RECORD_TEXT_H_
