#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "broker/log/partition_log.h"
#include "common/error/error.h"

// What makes a log durable.
namespace conclave {

absl::StatusOr<LogSync> PartitionLog::BeginSync() {
  CHECK(!sync_in_flight_) << directory_ << ": one sync at a time";
  if (absl::Status status = Ready(); !status.ok()) return status;
  LogSync sync(fs_, directory_);
  sync.covers_ = log_end();
  sync.generation_ = generation_;
  sync.sync_directory_ = directory_dirty_;
  for (const auto& segment : segments_) {
    const auto dirty = dirty_.find(segment->base_offset());
    if (dirty == dirty_.end()) continue;
    sync.segments_.push_back(*dirty);
    for (auto& file : segment->Files(dirty->second)) sync.files_.push_back(std::move(file));
  }
  dirty_.clear();
  directory_dirty_ = false;
  sync_in_flight_ = true;
  return sync;
}

absl::Status PartitionLog::FinishSync(const LogSync& sync, const absl::Status& result) {
  CHECK(sync_in_flight_);
  sync_in_flight_ = false;
  // For want of a descriptor the directory was not even tried.
  const bool tried = ErrorCodeOf(result) != v1::OUT_OF_RESOURCES;
  if (!result.ok() && tried) {
    failure_ = result;
    return result;
  }
  // Whether it came before a cut or after cannot be told.
  if (!tried || sync.generation_ != generation_) {
    for (const auto& [base, with_indexes] : sync.segments_) {
      const Segment& segment = *segments_[SegmentIndexOf(base)];
      if (segment.base_offset() == base) MarkDirty(base, with_indexes);
    }
    directory_dirty_ = directory_dirty_ || sync.sync_directory_;
    return result;
  }
  durable_ = std::max(durable_, sync.covers_);
  return absl::OkStatus();
}

absl::Status PartitionLog::SyncNow() {
  const auto sync = BeginSync();
  if (!sync.ok()) return sync.status();
  return FinishSync(*sync, sync->Run());
}

// What is noted of batches must not outlive them: they are synced first.
absl::Status PartitionLog::StoreDerived() {
  if (durable_ < log_end()) {
    if (absl::Status status = SyncInPassing(); !status.ok()) return status;
  }
  return derived_->StoreAll();
}

// Whoever counts positions hears of syncs that it begins: one more is due, of little.
absl::Status PartitionLog::SyncInPassing() {
  if (absl::Status status = SyncNow(); !status.ok()) return status;
  directory_dirty_ = true;
  return absl::OkStatus();
}

absl::Status PartitionLog::Checkpoint() {
  if (absl::Status status = Ready(); !status.ok()) return status;
  // Producers change with each batch: written once a segment.
  if (derived_->producers_through() < active().base_offset() && !sync_in_flight_) {
    return StoreDerived();
  }
  return derived_->StoreEpochsBelow(durable_);
}

absl::Status PartitionLog::RecoveryPointStored(Offset recovery_point) {
  if (!truncation_announced_ || recovery_point > durable_) return absl::OkStatus();
  const absl::Status removed = fs_.RemoveFile(JoinPath(directory_, kTruncatedToFile));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  truncation_announced_ = false;
  // Should the name come back after a crash, the next start scans more than it must.
  directory_dirty_ = true;
  return absl::OkStatus();
}

void PartitionLog::ReleaseReservedIfIdle() {
  if (std::exchange(end_at_last_look_, log_end()) == log_end()) ReleaseReserved();
}

absl::Status PartitionLog::Close() {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (absl::Status status = active().FlushIndexes(); !status.ok()) return status;
  ReleaseReserved();
  MarkDirty(active().base_offset(), /*with_indexes=*/true);
  if (absl::Status status = SyncNow(); !status.ok()) return status;
  return derived_->StoreAll();
}

}  // namespace conclave
