#ifndef CONCLAVE_BROKER_LOG_KNOWN_DAMAGE_H_
#define CONCLAVE_BROKER_LOG_KNOWN_DAMAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

// The file that tells at which offsets reads came upon damage, so that a process started later
// looks there before it counts the log as whole (a start reads no closed segments).
inline constexpr char kKnownDamageFile[] = "known-damage";

// Replaces what was known; without offsets there is no such file. Durable when it returns.
absl::Status StoreKnownDamage(FileSystem& fs, const std::string& directory,
                              const std::vector<Offset>& at);

// Empty where nothing is known, or where the file cannot be read, which is logged: it is a hint.
std::vector<Offset> ReadKnownDamage(FileSystem& fs, const std::string& directory);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_KNOWN_DAMAGE_H_
