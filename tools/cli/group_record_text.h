#ifndef CONCLAVE_TOOLS_CLI_GROUP_RECORD_TEXT_H_
#define CONCLAVE_TOOLS_CLI_GROUP_RECORD_TEXT_H_

#include <string>

#include "client/base/topic_partition.h"
#include "common/record/record_view.h"

namespace conclave::tools {

inline constexpr char kOffsetsTopic[] = "__consumer_offsets";

// As RecordToJson, of a record of __consumer_offsets: key and value are objects with the fields of
// group_records.proto, ids as text, and `kind` (group, member, target, holding or offset) in the
// key. The value is null where what the key names is no more. What is no such record is shown as
// RecordToJson shows it.
std::string GroupRecordToJson(const TopicPartition& partition, const RecordView& record);

}  // namespace conclave::tools

#endif  // CONCLAVE_TOOLS_CLI_GROUP_RECORD_TEXT_H_
