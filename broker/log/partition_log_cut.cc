#include <glog/logging.h>

#include <algorithm>

#include "broker/log/partition_log.h"
#include "common/error/error.h"

// What makes a log shorter, at either end.
namespace conclave {

absl::Status PartitionLog::TruncateTo(Offset offset) {
  if (!failure_.ok() || unfinished_reset_) return Ready();
  if (unfinished_cut_) offset = std::min(offset, *unfinished_cut_);
  if (offset >= log_end() && !unfinished_cut_) return absl::OkStatus();
  // The cut would go through what is gone here: the whole log is to be had anew.
  if (offset < log_start()) return ResetTo(Offset(0), {});
  // The offset may be within a batch, which goes as a whole.
  Offset end = offset;
  absl::Status found = segments_[SegmentIndexOf(offset)]->VisitBatchOf(
      offset, [&](const BatchHeader& header) { end = header.base_offset; });
  if (!found.ok()) return found;
  // Of the batch within which the log starts nothing stays, and nothing comes before it.
  if (end < log_start()) return ResetTo(log_start(), producers().Below(end));
  LOG(INFO) << directory_ << ": truncates from " << log_end() << " to " << end;
  ++generation_;
  tail_.TruncateTo(end);
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
  if (absl::Status status = active().TruncateTo(offset); !status.ok()) return status;
  // Before anything follows: else a loss of power may bring back what was cut, below what came
  // after it in a newer segment, and nothing would show that.
  for (const auto& file : active().Files(/*with_indexes=*/false)) {
    if (absl::Status status = file->Sync(); !status.ok()) {
      failure_ = status;
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status PartitionLog::ReplayProducers() {
  derived_->BeginReplay(segments_.front()->base_offset());
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
  tail_.Clear();
  // The recovery point stored for the directory may lie beyond the new end; and until the reset is
  // announced, what is not durable may be lost in a crash.
  absl::Status announced = AnnounceTruncation(fs_, directory_, std::min(offset, durable_));
  if (!announced.ok()) return announced;
  truncation_announced_ = true;
  announced = AnnounceReset(fs_, directory_, offset, producers);
  if (!announced.ok()) return announced;
  auto segment = CarryOutReset(fs_, directory_, offset, config_.index_interval_bytes, producers);
  if (ErrorCodeOf(segment.status()) == v1::OUT_OF_RESOURCES) {
    unfinished_reset_ = Reset{offset, producers};
    dirty_.clear();
    durable_ = std::min(durable_, offset);
    derived_->Forget(offset, producers);
    return segment.status();
  }
  if (!segment.ok()) {
    failure_ = segment.status();
    return failure_;
  }
  unfinished_reset_.reset();
  unfinished_cut_.reset();
  replay_producers_ = false;
  active_since_.reset();
  segments_.clear();
  segments_.push_back(*std::move(segment));
  dirty_.clear();
  directory_dirty_ = false;
  log_start_ = offset;
  durable_ = offset;
  return derived_->Reset(offset, producers);
}

}  // namespace conclave
