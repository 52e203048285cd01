#ifndef CONCLAVE_TESTS_HISTORY_TEXT_H_
#define CONCLAVE_TESTS_HISTORY_TEXT_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tests/history/history.h"

// Histories as text: a JSON object a line, each an operation. Lines of one process stand in the
// order in which it began what they tell; those of different processes in any.
//
// Of every operation:
//   "op"        what it is, see below
//   "process"   who did it; another name for each life of a client
//   "invoke", "complete"  nanoseconds on one clock that all processes share, not negative; no
//               "complete": it was never answered
//   "outcome"   "ok", "fail" (it certainly had no effect) or "info" (nobody knows)
//
// What else an operation has; all of it is required but for what is in brackets. A log is given as
// "topic" (the topic's id: a topic made anew is another) and "partition". A value is a string, or,
// where it is no UTF-8, {"hex": "ff00"}.
//   send            log, "value", "acks" ("all", "leader", "none"), "idempotent", ["offset"]: as
//                   acknowledged
//   poll            log, ["group"], "records": [[offset, value], ...]
//   position        log, ["group"], ["from"]: the offset at which polls go on; absent: not known
//   assignment      "group", "member", "epoch", "partitions": [[topic, partition], ...]
//   group_epoch     "group", "epoch", "members": [[member, epoch of its last assignment], ...],
//                   "partitions": all that there were
//   commit          "group", log, "offset"
//   committed_read  "group", log, ["offset"]: absent: none was committed
//   log_start       log, "offset"
//   final_read      log, "log_start", "records"
//   metadata        ["controller": {"term", "leader"}], [log], ["leader": {"epoch", "leader"}],
//                   ["log": {"start", "high_watermark", "end"}]; leader -1: none
//   dump            log, "log_start", "high_watermark", "rows": [[offset, epoch, crc], ...], a row
//                   a batch; the process is the replica's node
//   power_loss      nothing; the process is the node, "complete" when it had caught up again
//
// A field of another name is an error, as is one of another type.
namespace conclave::history {

// Adds the operation in `line`, without its end. INVALID_ARGUMENT: why it cannot be read; nothing
// was added. A line of blanks adds nothing.
absl::Status ReadLine(std::string_view line, History& history);

// Calls `line` with each line, without its end, in the order in which operations were added.
void WriteLines(const History& history, const std::function<void(const std::string&)>& line);

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TEXT_H_
