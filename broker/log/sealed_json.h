#ifndef CONCLAVE_BROKER_LOG_SEALED_JSON_H_
#define CONCLAVE_BROKER_LOG_SEALED_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"

// The small files of a data directory: one JSON object with "version" and "crc32c", the CRC-32C as
// eight hex digits of the object without it, compact and with sorted keys. Replaced as a whole.
namespace conclave {

inline constexpr uint64_t kMaxSealedJsonBytes = 256 << 20;

// Adds version and checksum. `object` is an object.
absl::Status WriteSealedJson(FileSystem& fs, const std::string& path, int version,
                             nlohmann::json object);

// NotFound if there is no file; STORAGE_ERROR, naming file and damage, if it is not whole;
// UNSUPPORTED_VERSION for another version.
absl::StatusOr<nlohmann::json> ReadSealedJson(FileSystem& fs, const std::string& path, int version);

// STORAGE_ERROR: the file's checksum holds and `what` is wrong with its content.
absl::Status BadSealedJson(const std::string& path, const std::string& what);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_SEALED_JSON_H_
