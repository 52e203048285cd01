#ifndef CONCLAVE_BROKER_LOG_CLEAN_STOP_H_
#define CONCLAVE_BROKER_LOG_CLEAN_STOP_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

inline constexpr char kCleanStopFile[] = "clean-stop";

// The marker of a data directory whose logs were all closed. It names the broker epoch that
// stopped; a stop counts as clean only if that is the epoch last registered (KIP-966).

// Last of all, once every log is closed and the recovery points are written.
absl::Status WriteCleanStop(FileSystem& fs, const std::string& data_directory, BrokerEpoch epoch);

// First of all, before any log is opened: reads the marker and removes it, durably, so that a crash
// from here on is not taken for a clean stop. nullopt if there is none, or a damaged one.
absl::StatusOr<std::optional<BrokerEpoch>> TakeCleanStop(FileSystem& fs,
                                                         const std::string& data_directory);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_CLEAN_STOP_H_
