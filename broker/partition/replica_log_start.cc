#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "broker/partition/replica.h"
#include "common/error/error.h"

// The part of Replica that moves where the log begins (KIP-107).
namespace conclave::broker {

Replica::RemovalId Replica::RemoveRecords(Offset before, CommitDone done) {
  CHECK(leader_ != nullptr);
  CHECK_LE(before, high_watermark());
  const RemovalId removal = ++last_removal_;
  const Offset wanted_before = wanted_log_start_;
  if (absl::Status moved = RemoveBefore(before); !moved.ok()) {
    wanted_log_start_ = wanted_before;
    due_.emplace_back(std::move(done), std::move(moved));
  } else {
    removals_.emplace(removal, Removal{before, std::move(done)});
  }
  return removal;
}

absl::Status Replica::RemoveBefore(Offset offset) {
  wanted_log_start_ = std::max(wanted_log_start_, offset);
  return MoveLogStart();
}

absl::Status Replica::MoveLogStart() {
  const Offset before = log_->log_start();
  // Also where it begins there already: segments that a sync was busy with go now.
  if (wanted_log_start_ == Offset() || wanted_log_start_ < before) return absl::OkStatus();
  if (absl::Status removed = log_->RemoveBefore(wanted_log_start_); !removed.ok()) return removed;
  if (log_->log_start() != before) {
    LOG(INFO) << name_ << ": begins at " << log_->log_start() << ", no longer at " << before;
  }
  return absl::OkStatus();
}

void Replica::CollectRemovals() {
  // With fewer in sync, one that left may be elected before it has heard.
  if (removals_.empty() || !leader_->CheckAppendToAll().ok()) return;
  const Offset reached = leader_->LogStartOfIsr();
  for (auto it = removals_.begin(); it != removals_.end();) {
    if (it->second.before > reached) {
      ++it;
      continue;
    }
    due_.emplace_back(std::move(it->second.done), absl::OkStatus());
    it = removals_.erase(it);
  }
}

}  // namespace conclave::broker
