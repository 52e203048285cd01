#include "client/producer/partition_queue.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

// The leader's log does not go on where the batch does.
bool IsSequenceError(v1::ErrorCode code) {
  return code == v1::OUT_OF_ORDER_SEQUENCE_NUMBER || code == v1::UNKNOWN_PRODUCER_ID ||
         code == v1::INVALID_PRODUCER_EPOCH;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

PartitionQueue::PartitionQueue(TopicPartition partition, const Options& options,
                               const Random& random)
    : partition_(std::move(partition)),
      options_(options),
      random_(random),
      retry_pause_(options.retry_pause, options.retry_pause_max) {
  CHECK_GT(options_.max_in_flight, 0u);
  CHECK(!options_.idempotent || options_.max_in_flight <= 5) << "brokers remember five batches";
}

std::shared_ptr<ProduceBatch> PartitionQueue::NextInWindow(bool& more) {
  const size_t limit = std::min(window_.size(), options_.max_in_flight);
  for (size_t i = 0; i < limit; ++i) {
    ProduceBatch& batch = *window_[i];
    // What follows has no place in the log before this is cleared up.
    if (batch.hole) {
      more = false;
      return nullptr;
    }
    if (batch.state == State::kWaiting) {
      batch.sent_as_first = i == 0;
      return window_[i];
    }
  }
  more = window_.size() < options_.max_in_flight;
  return nullptr;
}

std::shared_ptr<ProduceBatch> PartitionQueue::Next(
    MonotonicTime now, const ProducerIdentity& current,
    absl::FunctionRef<std::shared_ptr<ProduceBatch>()> unsent) {
  if (options_.idempotent) {
    if (!current.valid()) return nullptr;
    if (identity_ != current && in_flight_ == 0 && (window_.empty() || needs_identity_)) {
      Rebase(current);
    }
    if (needs_identity_) return nullptr;
  }
  const bool one_at_a_time = options_.answered && !options_.idempotent;
  if (blocked_ || now < retry_at_ || (one_at_a_time && in_flight_ > 0)) return nullptr;
  bool more = true;
  std::shared_ptr<ProduceBatch> next = NextInWindow(more);
  while (next == nullptr && more) {
    next = unsent();
    if (next == nullptr) break;
    if (absl::Status status = next->Number(identity_, next_sequence_); !status.ok()) {
      next->result = std::move(status);
      completed_.push_back(std::move(next));
      next = nullptr;
      continue;
    }
    if (options_.idempotent) next_sequence_ = next->next_sequence();
    next->sent_as_first = window_.empty();
    window_.push_back(next);
  }
  if (next != nullptr) {
    next->state = State::kInFlight;
    ++in_flight_;
  }
  return next;
}

void PartitionQueue::Rebase(const ProducerIdentity& current) {
  identity_ = current;
  next_sequence_ = 0;
  needs_identity_ = false;
  for (const auto& batch : window_) {
    batch->hole = false;
    if (batch->state != State::kWaiting) continue;
    if (batch->uncertain) {
      batch->state = State::kDone;
      batch->result = MakeError(
          ErrorCodeOf(batch->last_error),
          absl::StrCat("whether these records are stored in ", ToString(partition_),
                       " is unknown (", Message(batch->last_error),
                       "), and the producer had to begin a new epoch, under which sending them "
                       "again could store them twice; read the partition before you send them "
                       "again"));
      continue;
    }
    const absl::Status numbered = batch->Number(identity_, next_sequence_);
    CHECK(numbered.ok()) << numbered;  // It was encoded before.
    next_sequence_ = batch->next_sequence();
  }
  Settle();
}

void PartitionQueue::Succeeded(ProduceBatch& batch, Offset base_offset) {
  CHECK(batch.state == State::kInFlight);
  --in_flight_;
  batch.state = State::kDone;
  batch.base_offset = base_offset;
  if (!batch.abandoned) batch.result = absl::OkStatus();
  retry_pause_.Reset();
  // The log took this number, so it has those before: what was given up there was stored.
  needs_identity_ = false;
  for (const auto& before : window_) {
    before->hole = false;
    if (before.get() == &batch) break;
  }
  Settle();
}

void PartitionQueue::Failed(ProduceBatch& batch, const absl::Status& status, bool unknown,
                            bool at_once, MonotonicTime now) {
  CHECK(batch.state == State::kInFlight);
  --in_flight_;
  if (unknown || !batch.uncertain) batch.last_error = status;
  batch.uncertain = batch.uncertain || unknown;
  const v1::ErrorCode code = ErrorCodeOf(status);
  if (batch.abandoned) {
    GiveUp(batch, status);
  } else if (options_.idempotent && IsSequenceError(code)) {
    batch.state = State::kWaiting;
    // Behind others it was refused because they were missing; it has its turn after them.
    if (batch.sent_as_first) {
      needs_identity_ = true;
      Pause(now);
    }
  } else if (code == v1::MESSAGE_TOO_LARGE && !batch.uncertain && SplitInWindow(batch)) {
    // Its halves go out at once.
  } else if (!IsRetriable(code) || (unknown && !options_.answered)) {
    GiveUp(batch, status);
  } else {
    batch.state = State::kWaiting;
    if (at_once) {
      retry_at_ = now;
    } else {
      Pause(now);
    }
  }
  blocked_ = true;
  Settle();
}

void PartitionQueue::Pause(MonotonicTime now) {
  if (retry_at_ <= now) retry_at_ = now + retry_pause_.Next(random_);
}

void PartitionQueue::LeaderMoved(MonotonicTime now) {
  retry_at_ = std::min(retry_at_, now);
  retry_pause_.Reset();
}

bool PartitionQueue::SplitInWindow(ProduceBatch& batch) {
  if (batch.count() < 2) return false;
  auto parts = batch.Split();
  if (!parts.ok()) return false;
  const auto at = std::find_if(window_.begin(), window_.end(),
                               [&](const auto& b) { return b.get() == &batch; });
  CHECK(at != window_.end());
  batch.state = State::kDone;
  auto second = window_.insert(window_.erase(at), std::move(parts->second));
  window_.insert(second, std::move(parts->first));
  return true;
}

void PartitionQueue::GiveUp(ProduceBatch& batch, absl::Status status) {
  batch.state = State::kDone;
  batch.hole = options_.idempotent;
  if (batch.abandoned) return;
  if (batch.uncertain && HasNoEffect(ErrorCodeOf(status))) {
    status = MakeError(
        ErrorCodeOf(batch.last_error),
        absl::StrCat("whether these records are stored in ", ToString(partition_),
                     " is unknown: an attempt had no clear answer (", Message(batch.last_error),
                     "), and the last was refused (", Message(status),
                     "); read the partition before you send them again"));
  }
  batch.result = std::move(status);
}

void PartitionQueue::Settle() {
  if (in_flight_ == 0) blocked_ = false;
  while (!window_.empty() && window_.front()->state == State::kDone) {
    const std::shared_ptr<ProduceBatch> done = std::move(window_.front());
    window_.pop_front();
    if (done->hole) {
      if (window_.empty() && !done->uncertain) {
        // Its numbers were never used.
        next_sequence_ = done->base_sequence();
      } else {
        needs_identity_ = true;
      }
    }
    if (!done->abandoned) completed_.push_back(done);
  }
}

absl::Status PartitionQueue::Expired(const ProduceBatch& batch,
                                     const absl::Status& obstacle) const {
  const std::string waited = absl::StrCat(options_.delivery_timeout.milliseconds(), " ms (",
                                          options_.delivery_timeout_name, ")");
  if (batch.state == State::kInFlight || batch.uncertain) {
    return MakeError(
        v1::REQUEST_TIMED_OUT,
        absl::StrCat("whether these records are stored in ", ToString(partition_),
                     " is unknown: no clear answer came within ", waited,
                     batch.last_error.ok() ? "" : absl::StrCat("; ", Message(batch.last_error)),
                     obstacle.ok() ? "" : absl::StrCat("; and now: ", Message(obstacle)),
                     "; read the partition before you send them again"));
  }
  const absl::Status& why = batch.last_error.ok() ? obstacle : batch.last_error;
  // The code says that nothing was stored.
  const v1::ErrorCode code =
      HasNoEffect(ErrorCodeOf(why)) ? ErrorCodeOf(why) : v1::LEADER_NOT_AVAILABLE;
  return MakeError(code, absl::StrCat("these records could not be sent to ", ToString(partition_),
                                      " within ", waited, ", and are not stored: ",
                                      why.ok() ? "those before them were not done" : Message(why)));
}

void PartitionQueue::Expire(MonotonicTime now, const absl::Status& obstacle) {
  for (const auto& batch : window_) {
    if (batch->state == State::kDone || batch->abandoned || batch->deadline() > now) continue;
    absl::Status expired = Expired(*batch, obstacle);
    if (batch->state == State::kInFlight) {
      batch->abandoned = true;
      batch->result = std::move(expired);
      completed_.push_back(batch);
    } else {
      GiveUp(*batch, std::move(expired));
    }
  }
  Settle();
}

void PartitionQueue::ExpireUnsent(std::shared_ptr<ProduceBatch> batch,
                                  const absl::Status& obstacle) {
  batch->result = Expired(*batch, obstacle);
  completed_.push_back(std::move(batch));
}

void PartitionQueue::Abort(const absl::Status& why) {
  for (const auto& batch : window_) {
    if (batch->abandoned) continue;
    if (batch->state != State::kDone) {
      const bool unknown = batch->uncertain || batch->state == State::kInFlight;
      batch->result =
          !unknown ? why
                   : MakeError(v1::REQUEST_TIMED_OUT,
                               absl::StrCat("whether these records are stored in ",
                                            ToString(partition_), " is unknown: ", Message(why)));
    }
    completed_.push_back(batch);
  }
  window_.clear();
  in_flight_ = 0;
}

bool PartitionQueue::NeedsNewIdentity(const ProducerIdentity& current) const {
  return needs_identity_ && in_flight_ == 0 && identity_ == current;
}

std::optional<MonotonicTime> PartitionQueue::Deadline() const {
  for (const auto& batch : window_) {
    if (batch->state != State::kDone && !batch->abandoned) return batch->deadline();
  }
  return std::nullopt;
}

std::optional<uint64_t> PartitionQueue::OldestGeneration() const {
  for (const auto& batch : window_) {
    if (!batch->abandoned) return batch->generation;
  }
  return std::nullopt;
}

std::vector<std::shared_ptr<ProduceBatch>> PartitionQueue::TakeCompleted() {
  return std::exchange(completed_, {});
}

}  // namespace conclave
