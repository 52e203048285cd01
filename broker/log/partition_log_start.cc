#include <glog/logging.h>

#include <algorithm>

#include "broker/log/log_loader.h"
#include "broker/log/partition_log.h"

// What moves the log's start: retention, and who removes records by offset.
namespace conclave {
namespace {

// March 1973. A smaller timestamp is in seconds (those of 1970 to 5138), or none at all.
constexpr int64_t kLeastBelievableMs = 100'000'000'000;

}  // namespace

// Oldest first, each name gone durably before the next: after a crash the log has no gap. Before
// them the new log start is stored, so that a start does not take their absence for a loss; with it
// the name of a segment that was just begun becomes durable. Producers whose batches go are
// remembered in their file.
absl::Status PartitionLog::RemoveOldest(size_t count) {
  if (count == 0) return absl::OkStatus();
  CHECK_LT(count, segments_.size());
  const Offset first = segments_[count]->base_offset();
  const Offset start = std::max(first, log_start_);
  if (derived_->producers_through() < first) {
    if (absl::Status status = StoreDerived(); !status.ok()) return status;
  }
  // What is stored as log start is durable: the next start may take it for that.
  if (durable_ < start) {
    if (absl::Status status = SyncInPassing(); !status.ok()) return status;
  }
  if (absl::Status status = StoreLogStart(fs_, directory_, start); !status.ok()) return status;
  log_start_ = start;
  for (; count > 0; --count) {
    LOG(INFO) << "removes " << segments_.front()->path();
    if (absl::Status status = segments_.front()->Remove(fs_); !status.ok()) return status;
    dirty_.erase(segments_.front()->base_offset());
    segments_.erase(segments_.begin());
    if (absl::Status status = fs_.SyncDirectory(directory_); !status.ok()) return status;
  }
  derived_->TrimTo(start);
  return absl::OkStatus();
}

Offset PartitionLog::first_batch() const {
  if (unfinished_reset_) return unfinished_reset_->to;
  Offset first = log_start_;
  const absl::Status found = segments_[SegmentIndexOf(log_start_)]->VisitBatchOf(
      log_start_, [&first](const BatchHeader& header) { first = header.base_offset; });
  return found.ok() ? first : log_start_;
}

absl::Status PartitionLog::RemoveBefore(Offset offset) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  offset = std::min(offset, durable_);
  if (offset > log_start_) {
    if (absl::Status status = StoreLogStart(fs_, directory_, offset); !status.ok()) return status;
    log_start_ = offset;
    derived_->TrimTo(offset);
  }
  if (sync_in_flight_) return absl::OkStatus();
  size_t count = 0;
  while (count < segments_.size() && !segments_[count]->empty() &&
         segments_[count]->next_offset() <= log_start_) {
    ++count;
  }
  if (count == segments_.size()) {
    if (absl::Status status = Roll(); !status.ok()) return status;
  }
  return RemoveOldest(count);
}

bool PartitionLog::IsTooOld(const Segment& segment, WallTime now) const {
  if (!config_.retention_age || !segment.max_timestamp_ms()) return false;
  int64_t newest = *segment.max_timestamp_ms();
  if (newest > now.unix_millis() || newest < kLeastBelievableMs) {
    const auto written = segment.LastWritten();
    if (!written.ok()) return false;
    newest = written->unix_millis();
  }
  return now.unix_millis() - newest > config_.retention_age->milliseconds();
}

absl::StatusOr<bool> PartitionLog::ApplyRetention(WallTime now, Offset high_watermark) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (sync_in_flight_) return false;
  uint64_t bytes = size_bytes();
  size_t count = 0;
  for (const auto& segment : segments_) {
    if (segment->empty() || segment->next_offset() > high_watermark) break;
    // Left of a removal that a crash or a sync interrupted.
    const bool removed = segment->next_offset() <= log_start_;
    const bool beyond =
        config_.retention_bytes &&
        bytes >= segment->size_bytes() + static_cast<uint64_t>(*config_.retention_bytes);
    if (!removed && !beyond && !IsTooOld(*segment, now)) break;
    bytes -= segment->size_bytes();
    ++count;
  }
  if (count == segments_.size()) {
    if (absl::Status status = Roll(); !status.ok()) return status;
  }
  if (absl::Status status = RemoveOldest(count); !status.ok()) return status;
  return count > 0;
}

}  // namespace conclave
