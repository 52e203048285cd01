#ifndef CONCLAVE_BROKER_LOG_BATCH_SCANNER_H_
#define CONCLAVE_BROKER_LOG_BATCH_SCANNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/record/batch_header.h"

namespace conclave {

struct ScannedBatch {
  uint64_t position = 0;
  BatchHeader header;
};

// Walks the batches of a segment file from a position where one begins. Reads ahead in windows, so
// that neither small nor large batches cost a read each too many. Not thread-safe.
class BatchScanner {
 public:
  enum class Depth {
    // Headers alone: they agree with themselves, and each batch ends within the range.
    kHeaders,
    // The CRC of each batch, too.
    kWhole,
  };

  // Of the bytes [position, end) of the file, which outlives the scanner.
  BatchScanner(const File& file, uint64_t position, uint64_t end, Depth depth);

  // nullopt at the end of the range, or at the first bytes that are no batch: then stop_reason()
  // tells why. An error is the disk's.
  absl::StatusOr<std::optional<ScannedBatch>> Next();

  // Where the next batch begins, or would.
  uint64_t position() const { return position_; }
  // Empty: everything so far was batches.
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  // Makes [position_, position_ + bytes) be in the window, as far as the range goes.
  absl::Status Fill(uint64_t bytes);
  std::string_view Window() const;

  const File& file_;
  uint64_t position_;
  const uint64_t end_;
  const Depth depth_;
  std::string window_;
  uint64_t window_at_ = 0;
  std::string stop_reason_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_BATCH_SCANNER_H_
