#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "broker/partition/replica_set.h"
#include "common/error/error.h"

// What goes to disk for all partitions together.
namespace conclave::broker {
namespace {

constexpr uint64_t kHighWatermarkSeconds = 5;
constexpr uint64_t kRecoveryPointSeconds = 60;

}  // namespace

void ReplicaSet::EverySecond() {
  ++seconds_;
  followers_.Tick();
  leaders_.Tick();
  space_.Look();
  if (!space_.Check().ok()) {
    for (const auto& [id, replica] : replicas_) replica->log().ReleaseReserved();
  }
  ReportRecovery();
  if (!closing_ && !failed_ && took_part_) {
    MakeUnmade();
    // What was damaged may have been removed, what could not be made may have been.
    if (!reported_.damaged.empty()) Report();
    const bool due = std::exchange(checkpoints_due_, false);
    if (due || seconds_ % kHighWatermarkSeconds == 0) CheckpointHighWatermarks();
    if (due || seconds_ % kRecoveryPointSeconds == 0) CheckpointRecoveryPoints();
  }
  executor_.PostAfter(Duration::Seconds(1), [this] { EverySecond(); });
}

void ReplicaSet::ApplyRetention() {
  executor_.PostAfter(options_.retention_check_interval, [this] { ApplyRetention(); });
  if (closing_ || failed_ || !took_part_) return;
  for (const auto& [id, replica] : replicas_) {
    if (replica->leader() == nullptr) continue;
    const auto removed = replica->ApplyRetention();
    if (!removed.ok()) {
      LOG(ERROR) << replica->name() << ": old segments stay: " << Describe(removed.status());
    }
    // A new segment is to be synced, and followers are to hear of it.
    Touch(*replica);
  }
}

OffsetCheckpoint::Offsets ReplicaSet::HighWatermarks() const {
  OffsetCheckpoint::Offsets offsets;
  for (const auto& [id, replica] : replicas_) {
    // What a crash may take back is not promised to the next process.
    offsets[{id.topic, id.index}] =
        std::min(replica->high_watermark(), replica->log().durable_offset());
  }
  // The next process has to find out, too.
  for (const auto& [id, damaged] : damaged_) {
    const auto stored = directory_->high_watermarks().find({id.topic, id.index});
    if (stored != directory_->high_watermarks().end()) offsets[stored->first] = stored->second;
  }
  return offsets;
}

OffsetCheckpoint::Offsets ReplicaSet::DurableOffsets() const {
  OffsetCheckpoint::Offsets offsets;
  for (const auto& [id, replica] : replicas_) {
    offsets[{id.topic, id.index}] = replica->log().durable_offset();
  }
  for (const auto& [id, damaged] : damaged_) {
    offsets[{id.topic, id.index}] = directory_->RecoveryPointOf(id);
  }
  return offsets;
}

void ReplicaSet::CheckpointHighWatermarks() {
  OffsetCheckpoint::Offsets offsets = HighWatermarks();
  if (storing_high_watermarks_ || offsets == stored_high_watermarks_) return;
  storing_high_watermarks_ = true;
  environment_.background.Post([this, offsets = std::move(offsets)]() mutable {
    absl::Status written = directory_->WriteHighWatermarks(offsets);
    executor_.Post([this, offsets = std::move(offsets), written = std::move(written)]() mutable {
      storing_high_watermarks_ = false;
      CloseOnceSynced();
      if (!written.ok()) {
        LOG(ERROR) << "high watermarks could not be stored: " << Describe(written);
        return;
      }
      stored_high_watermarks_ = std::move(offsets);
    });
  });
}

void ReplicaSet::CheckpointRecoveryPoints() {
  if (std::exchange(storing_recovery_points_, true)) return;
  for (const auto& [id, replica] : replicas_) {
    // Whatever comes of it.
    Touch(*replica);
    replica->log().ReleaseReservedIfIdle();
    if (absl::Status status = replica->log().RollIfAged(executor_.clock().WallNow());
        !status.ok()) {
      LOG(ERROR) << replica->name() << ": no new segment: " << Describe(status);
    }
    if (absl::Status status = replica->log().Checkpoint(); !status.ok()) {
      if (!replica->log().failure().ok()) return Fail(status);
      // What was stored last stays true.
      LOG(ERROR) << replica->name() << ": no checkpoint: " << Describe(status);
      storing_recovery_points_ = false;
      return;
    }
  }
  environment_.background.Post([this, offsets = DurableOffsets()]() mutable {
    absl::Status written = directory_->WriteRecoveryPoints(offsets);
    executor_.Post([this, offsets = std::move(offsets), written = std::move(written)] {
      storing_recovery_points_ = false;
      CloseOnceSynced();
      if (!written.ok()) {
        LOG(ERROR) << "recovery points could not be stored: " << Describe(written);
        return;
      }
      for (const auto& [key, offset] : offsets) {
        Replica* replica = Find({key.topic_id, key.partition});
        if (replica == nullptr || closing_) continue;
        // Until then the next start goes by the stored mark, unless it is told of the truncation.
        if (StoredHighWatermark(key) > offset) continue;
        if (absl::Status status = replica->log().RecoveryPointStored(offset); !status.ok()) {
          LOG(ERROR) << replica->name() << ": " << Describe(status);
        }
        Touch(*replica);
      }
    });
  });
}

Offset ReplicaSet::StoredHighWatermark(const CheckpointKey& key) const {
  const OffsetCheckpoint::Offsets& stored =
      stored_high_watermarks_.empty() ? directory_->high_watermarks() : stored_high_watermarks_;
  const auto found = stored.find(key);
  return found == stored.end() ? Offset(0) : found->second;
}

void ReplicaSet::RemoveLater(DataDirectory::Aside where, const std::string& name, Duration delay) {
  executor_.PostAfter(delay, [this, where, name] {
    environment_.background.Post([directory = directory_, where, name] {
      if (absl::Status removed = directory->RemoveAside(where, name); !removed.ok()) {
        LOG(ERROR) << "a log that is not needed any more stays: " << Describe(removed);
      }
    });
  });
}

// --- Clean stop

absl::Status ReplicaSet::Abandon() {
  if (!directory_->clean_stop()) return absl::OkStatus();
  return directory_->WriteCleanStop(*directory_->clean_stop());
}

void ReplicaSet::Close(std::function<void(const absl::Status&)> done) {
  closing_ = true;
  closed_ = std::move(done);
  for (const auto& [id, replica] : replicas_) {
    leaders_.End(id);
    replica->StandBy();
    replica->Settle();
  }
  if (observer_) observer_(nullptr);
  CloseOnceSynced();
}

void ReplicaSet::CloseOnceSynced() {
  if (!closed_ || syncs_in_flight_ > 0) return;
  if (storing_high_watermarks_ || storing_recovery_points_) return;
  std::exchange(closed_, nullptr)(CloseAll());
}

absl::Status ReplicaSet::CloseAll() {
  if (!recovered_all_ || !epoch_) {
    return MakeError(v1::NOT_READY, "stopped before the broker had taken part");
  }
  for (const auto& [id, replica] : replicas_) {
    if (absl::Status closed = replica->log().Close(); !closed.ok()) return closed;
  }
  if (absl::Status status = directory_->WriteHighWatermarks(HighWatermarks()); !status.ok()) {
    return status;
  }
  if (absl::Status status = directory_->WriteRecoveryPoints(DurableOffsets()); !status.ok()) {
    return status;
  }
  if (!damaged_.empty()) {
    LOG(WARNING) << "the next start recovers, for " << damaged_.size()
                 << " logs are damaged, and that has to be found again";
    return absl::OkStatus();
  }
  return directory_->WriteCleanStop(*epoch_);
}

}  // namespace conclave::broker
