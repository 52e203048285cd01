#ifndef CONCLAVE_BROKER_LOG_LOG_LOADER_H_
#define CONCLAVE_BROKER_LOG_LOG_LOADER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/derived_state.h"
#include "broker/log/producer_state.h"
#include "broker/log/segment.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

namespace conclave {

// The file that announces a truncation below what was durable; see docs/formats-log.md.
inline constexpr char kTruncatedToFile[] = "truncated-to";
// The file that announces that everything goes and the log starts elsewhere.
inline constexpr char kLogResetFile[] = "log-reset";
// The file that tells where the log begins, once something has been removed from its front. A log
// without it begins at 0.
inline constexpr char kLogStartFile[] = "log-start";

struct RecoveryProgress {
  std::string directory;
  // Of what must be scanned: bytes of segments past the recovery point.
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

struct LoadOptions {
  // Everything below it was on disk; damage there is reported and never cut.
  Offset recovery_point;
  // The process before closed this log. Without that everything past the recovery point is scanned.
  bool clean_stop = false;
  // Take the log as it is: it begins at the first segment that is left, and ends at
  // `recovery_point` or where the next gap is. Segments behind it, and what follows it in its own,
  // are moved to this directory, which is made then. Empty: nothing is given up.
  std::string give_up_to;
  int64_t index_interval_bytes = 4096;
  // Called now and then from within, on the same thread. May be empty.
  std::function<void(const RecoveryProgress&)> progress;
};

struct LoadedLog {
  // One at least; each begins where the one before ends.
  std::vector<std::unique_ptr<Segment>> segments;
  std::unique_ptr<DerivedState> derived;
  // Where the log begins: in the first segment, unless a removal was interrupted.
  Offset start;
  // Below it everything is on disk.
  Offset durable;
  // Bytes past the recovery point that were no batches, or followed such.
  uint64_t bytes_cut = 0;
};

// Opens the segments of a directory, which is made if it is not there. A DamageError where
// something below the recovery point cannot be read, a segment is missing, or the first one begins
// beyond the stored log start; other errors are the disk's.
absl::StatusOr<LoadedLog> LoadLog(FileSystem& fs, const std::string& directory,
                                  const LoadOptions& options);

// Writes the announcements.
absl::Status AnnounceTruncation(FileSystem& fs, const std::string& directory, Offset offset);
// `producers`: known of those whose batches the log will not have.
absl::Status AnnounceReset(FileSystem& fs, const std::string& directory, Offset offset,
                           const ProducerState::Producers& producers);
// The log begins at `offset`, which is durable there, though segments may go further back. Before
// those below it are removed: a start tells what retention took from what somebody else did.
absl::Status StoreLogStart(FileSystem& fs, const std::string& directory, Offset offset);
// Removes all segments, newest first, and makes an empty one; stores the new log start; then takes
// the announcement back.
absl::StatusOr<std::unique_ptr<Segment>> CarryOutReset(FileSystem& fs, const std::string& directory,
                                                       Offset offset, int64_t index_interval_bytes,
                                                       const ProducerState::Producers& producers);

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_LOG_LOADER_H_
