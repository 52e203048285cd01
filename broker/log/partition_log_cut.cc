#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "broker/log/partition_log.h"

// What makes a log shorter, at either end.
namespace conclave {

absl::Status PartitionLog::TruncateTo(Offset offset) {
  if (!failure_.ok()) return failure_;
  if (unfinished_cut_) offset = std::min(offset, *unfinished_cut_);
  if (offset >= log_end() && !unfinished_cut_) return absl::OkStatus();
  offset = std::max(offset, log_start());
  // The offset may be within a batch, which goes as a whole.
  Offset end = offset;
  absl::Status found = segments_[SegmentIndexOf(offset)]->VisitBatchOf(
      offset, [&](const BatchHeader& header) { end = header.base_offset; });
  if (!found.ok()) return found;
  LOG(INFO) << directory_ << ": truncates from " << log_end() << " to " << end;
  ++generation_;
  if (end < durable_) {
    if (absl::Status status = AnnounceTruncation(fs_, directory_, end); !status.ok()) return status;
    truncation_announced_ = true;
    durable_ = end;
  }
  unfinished_cut_ = end;
  const auto replay = derived_->TruncateTo(end);
  if (!replay.ok()) return replay.status();
  replay_producers_ = replay_producers_ || *replay;
  if (absl::Status status = Cut(end); !status.ok()) return status;
  if (replay_producers_) {
    if (absl::Status status = ReplayProducers(); !status.ok()) return status;
    replay_producers_ = false;
  }
  unfinished_cut_.reset();
  return absl::OkStatus();
}

// Newest first, so that what is there after a crash has no gap; and all names are gone before the
// segment that stays can get other batches.
absl::Status PartitionLog::Cut(Offset offset) {
  bool removed = false;
  while (segments_.size() > 1 && active().base_offset() >= offset) {
    if (absl::Status status = active().Remove(fs_); !status.ok()) return status;
    dirty_.erase(active().base_offset());
    segments_.pop_back();
    active_since_.reset();
    removed = true;
  }
  if (removed) {
    if (absl::Status status = fs_.SyncDirectory(directory_); !status.ok()) return status;
  }
  MarkDirty(active().base_offset(), /*with_indexes=*/false);
  return active().TruncateTo(offset);
}

absl::Status PartitionLog::ReplayProducers() {
  derived_->BeginReplay(log_start());
  for (const auto& segment : segments_) {
    absl::Status status = segment->VisitHeaders(
        segment->base_offset(), [this](const BatchHeader& header) { derived_->Note(header); });
    if (!status.ok()) return status;
  }
  derived_->EndReplay();
  return absl::OkStatus();
}

absl::Status PartitionLog::ResetTo(Offset offset, const ProducerState::Producers& producers) {
  if (!failure_.ok()) return failure_;
  LOG(INFO) << directory_ << ": drops [" << log_start() << ", " << log_end() << ") and starts at "
            << offset;
  ++generation_;
  // The recovery point stored for the directory may lie beyond the new end; and until the reset is
  // announced, what is not durable may be lost in a crash.
  absl::Status announced = AnnounceTruncation(fs_, directory_, std::min(offset, durable_));
  if (!announced.ok()) return announced;
  truncation_announced_ = true;
  announced = AnnounceReset(fs_, directory_, offset, producers);
  if (!announced.ok()) return announced;
  auto segment = CarryOutReset(fs_, directory_, offset, config_.index_interval_bytes, producers);
  if (!segment.ok()) {
    failure_ = segment.status();
    return failure_;
  }
  unfinished_cut_.reset();
  replay_producers_ = false;
  active_since_.reset();
  segments_.clear();
  segments_.push_back(*std::move(segment));
  dirty_.clear();
  directory_dirty_ = false;
  durable_ = offset;
  return derived_->Reset(offset, producers);
}

// Oldest first, each name gone durably before the next: after a crash the log has no gap. Before
// them the new log start is stored, so that a start does not take their absence for a loss; and
// producers whose batches go are remembered in their file.
absl::Status PartitionLog::RemoveOldest(size_t count) {
  if (count == 0) return absl::OkStatus();
  CHECK_LT(count, segments_.size());
  const Offset start = segments_[count]->base_offset();
  if (derived_->producers_through() < start) {
    if (absl::Status status = StoreDerived(); !status.ok()) return status;
  }
  if (absl::Status status = StoreLogStart(fs_, directory_, start); !status.ok()) return status;
  for (; count > 0; --count) {
    LOG(INFO) << "removes " << segments_.front()->path();
    if (absl::Status status = segments_.front()->Remove(fs_); !status.ok()) return status;
    dirty_.erase(segments_.front()->base_offset());
    segments_.erase(segments_.begin());
    if (absl::Status status = fs_.SyncDirectory(directory_); !status.ok()) return status;
  }
  derived_->TrimTo(start, log_end());
  durable_ = std::max(durable_, start);
  return absl::OkStatus();
}

absl::Status PartitionLog::RemoveBefore(Offset offset) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (sync_in_flight_) return absl::OkStatus();
  size_t count = 0;
  while (count + 1 < segments_.size() && segments_[count]->next_offset() <= offset) ++count;
  return RemoveOldest(count);
}

absl::StatusOr<bool> PartitionLog::ApplyRetention(WallTime now, Offset high_watermark) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (sync_in_flight_) return false;
  uint64_t bytes = size_bytes();
  size_t count = 0;
  for (const auto& segment : segments_) {
    if (segment->empty() || segment->next_offset() > high_watermark) break;
    const bool old =
        config_.retention_age && segment->max_timestamp_ms() &&
        now.unix_millis() - *segment->max_timestamp_ms() > config_.retention_age->milliseconds();
    const bool beyond =
        config_.retention_bytes &&
        bytes >= segment->size_bytes() + static_cast<uint64_t>(*config_.retention_bytes);
    if (!old && !beyond) break;
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
