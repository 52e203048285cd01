#ifndef CONCLAVE_BROKER_LOG_DUMP_H_
#define CONCLAVE_BROKER_LOG_DUMP_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/fs/file_system.h"

// A log's files as JSON, one object a line, for people and tools. Reads only; the log need not be
// stopped, but a live one may end within a batch.
namespace conclave {

using EmitLine = std::function<void(const std::string& json)>;

// One object a batch: position, offsets, epoch, CRC and whether it holds, codec, timestamps,
// producer, and with `records` its records. Keys and values are "key" and "value" where they are
// UTF-8, else "key_base64" and "value_base64". A batch that is malformed inside has "error". What
// is no batch ends the dump with a STORAGE_ERROR that names the position.
absl::Status DumpSegment(FileSystem& fs, const std::string& path, bool records,
                         const EmitLine& emit);

// A .index or .timeindex file: one object an entry, offsets absolute. By the file's name; another
// suffix is INVALID_REQUEST.
absl::Status DumpIndex(FileSystem& fs, const std::string& path, const EmitLine& emit);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_DUMP_H_
