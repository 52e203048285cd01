#include "broker/log/partition_log.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/known_damage.h"
#include "common/error/error.h"

namespace conclave {

absl::StatusOr<std::unique_ptr<PartitionLog>> PartitionLog::Open(FileSystem& fs,
                                                                 std::string directory,
                                                                 OpenOptions options) {
  std::unique_ptr<PartitionLog> log(
      new PartitionLog(fs, std::move(directory), options.config, options.tail_budget));
  LoadOptions load;
  load.recovery_point = options.recovery_point;
  load.clean_stop = options.clean_stop;
  load.give_up_to = std::move(options.give_up_to);
  load.index_interval_bytes = options.config.index_interval_bytes;
  load.progress = std::move(options.progress);
  auto loaded = LoadLog(fs, log->directory_, load);
  if (!loaded.ok()) return loaded.status();
  log->segments_ = std::move(loaded->segments);
  log->derived_ = std::move(loaded->derived);
  log->log_start_ = loaded->start;
  log->durable_ = loaded->durable;
  log->bytes_cut_ = loaded->bytes_cut;
  // A new directory's first segment, and names that the process before did not sync.
  log->directory_dirty_ = !options.clean_stop;
  const auto announced = fs.Exists(JoinPath(log->directory_, kTruncatedToFile));
  if (!announced.ok()) return announced.status();
  log->truncation_announced_ = *announced;
  for (const auto& segment : log->segments_) {
    const bool newest = segment == log->segments_.back();
    if (segment->next_offset() > log->durable_ || (newest && !options.clean_stop)) {
      log->MarkDirty(segment->base_offset(), /*with_indexes=*/!newest);
    }
  }
  log->FindKnownDamage();
  // What a crash left of a removal goes now, or later: it is not read in any case.
  if (absl::Status removed = log->RemoveBefore(log->log_start_); !removed.ok()) {
    LOG(ERROR) << log->directory_ << ": what was removed stays for now: " << Describe(removed);
  }
  return log;
}

// Somebody may have brought the file back from a copy, or retention have removed it.
void PartitionLog::FindKnownDamage() {
  const std::vector<Offset> known = ReadKnownDamage(fs_, directory_);
  for (const Offset at : known) {
    if (at < log_start() || at >= log_end()) continue;
    const auto damage = DamageOf(Read(at, 1, log_end()).status());
    if (!damage) continue;
    if (!known_damage_) known_damage_ = damage;
    damaged_at_.push_back(at);
  }
  if (damaged_at_ == known) return;
  if (absl::Status stored = StoreKnownDamage(fs_, directory_, damaged_at_); !stored.ok()) {
    LOG(ERROR) << directory_
               << ": it names damage that is not there any more: " << Describe(stored);
  }
}

absl::Status PartitionLog::RememberDamage(Offset at) {
  damaged_at_.push_back(at);
  return StoreKnownDamage(fs_, directory_, damaged_at_);
}

LeaderEpoch PartitionLog::last_epoch() const {
  const auto last = epochs().last();
  return last ? last->epoch : LeaderEpoch(-1);
}

uint64_t PartitionLog::size_bytes() const {
  uint64_t bytes = 0;
  for (const auto& segment : segments_) bytes += segment->size_bytes();
  return bytes;
}

// The last segment that begins at or before the offset.
size_t PartitionLog::SegmentIndexOf(Offset offset) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](Offset at, const auto& segment) { return at < segment->base_offset(); });
  return after == segments_.begin() ? 0 : static_cast<size_t>(after - segments_.begin()) - 1;
}

void PartitionLog::MarkDirty(Offset segment_base, bool with_indexes) {
  bool& indexes = dirty_[segment_base];
  indexes = indexes || with_indexes;
}

bool PartitionLog::IsActiveAged(WallTime now) const {
  const auto first = segments_.back()->first_timestamp_ms();
  if (!first) return false;
  const int64_t since = active_since_ ? active_since_->unix_millis() : *first;
  return now.unix_millis() - since >= config_.segment_age.milliseconds();
}

absl::Status PartitionLog::Ready() {
  if (!failure_.ok()) return failure_;
  if (unfinished_reset_) {
    const Reset reset = *unfinished_reset_;
    return ResetTo(reset.to, reset.producers);
  }
  return unfinished_cut_ ? TruncateTo(*unfinished_cut_) : absl::OkStatus();
}

absl::Status PartitionLog::Roll() {
  if (absl::Status status = active().FlushIndexes(); !status.ok()) return status;
  auto next = Segment::Create(fs_, directory_, log_end(), config_.index_interval_bytes);
  if (!next.ok()) return next.status();
  ReleaseReserved();
  MarkDirty(active().base_offset(), /*with_indexes=*/true);
  segments_.push_back(*std::move(next));
  MarkDirty(active().base_offset(), /*with_indexes=*/false);
  directory_dirty_ = true;
  return absl::OkStatus();
}

absl::Status PartitionLog::RollFor(const BatchHeader& header, size_t bytes, WallTime now) {
  if (active().empty()) return absl::OkStatus();
  const bool full = active().size_bytes() + bytes > static_cast<uint64_t>(config_.segment_bytes) ||
                    !active().HasRoomFor(header, bytes);
  return full || IsActiveAged(now) ? Roll() : absl::OkStatus();
}

absl::Status PartitionLog::RollIfAged(WallTime now) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  return IsActiveAged(now) ? Roll() : absl::OkStatus();
}

absl::Status PartitionLog::AppendToActive(const Buffer& bytes, std::span<const BatchHeader> headers,
                                          WallTime now) {
  if (active().empty()) active_since_ = now;
  // Marked before the bytes can be seen: a sync that begins now covers them.
  MarkDirty(active().base_offset(), /*with_indexes=*/false);
  if (absl::Status status = active().Append(bytes, headers); !status.ok()) return status;
  for (const BatchHeader& header : headers) derived_->Note(header);
  return absl::OkStatus();
}

absl::StatusOr<AppendResult> PartitionLog::AppendAsLeader(const Buffer& batch,
                                                          const BatchHeader& header,
                                                          LeaderEpoch epoch, WallTime now) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (epoch < last_epoch()) {
    return MakeError(v1::FENCED_LEADER_EPOCH,
                     absl::StrCat(directory_, " has records of leader epoch ", last_epoch().value(),
                                  "; epoch ", epoch.value(), " is over. Ask for the new leader"));
  }
  const Classification classification = Classify(header);
  if (!classification.status.ok()) return classification.status;
  if (classification.kind == Classification::Kind::kDuplicate) {
    return AppendResult{classification.duplicate_of, classification.duplicate_last + 1, true};
  }
  BatchHeader placed = header;
  placed.base_offset = log_end();
  placed.leader_epoch = epoch;
  if (absl::Status status = RollFor(placed, batch.size(), now); !status.ok()) return status;
  const Buffer stored = PatchBatch(batch, placed.base_offset, epoch);
  if (absl::Status status = AppendToActive(stored, {&placed, 1}, now); !status.ok()) return status;
  tail_.Append(placed.base_offset, placed.next_offset(), stored);
  return AppendResult{placed.base_offset, placed.next_offset(), false};
}

absl::Status PartitionLog::CheckFollows(std::span<const PlacedBatch> batches) const {
  Offset expected = log_end();
  LeaderEpoch epoch = last_epoch();
  for (const PlacedBatch& batch : batches) {
    if (batch.header.base_offset != expected) {
      return MakeError(
          v1::CORRUPT_MESSAGE,
          absl::StrCat(directory_, ": a batch came for offset ", batch.header.base_offset.value(),
                       ", and ", expected.value(), " is next; position anew"));
    }
    if (batch.header.leader_epoch < epoch) {
      return MakeError(v1::CORRUPT_MESSAGE,
                       absl::StrCat(directory_, ": the batch at offset ", expected.value(),
                                    " has leader epoch ", batch.header.leader_epoch.value(),
                                    ", and the one before ", epoch.value(), "; position anew"));
    }
    expected = batch.header.next_offset();
    epoch = batch.header.leader_epoch;
  }
  return absl::OkStatus();
}

absl::Status PartitionLog::AppendAsFollower(const Buffer& run, std::span<const PlacedBatch> batches,
                                            WallTime now) {
  if (absl::Status status = Ready(); !status.ok()) return status;
  if (absl::Status status = CheckFollows(batches); !status.ok()) return status;
  // It leads no more.
  tail_.Clear();
  // As many as fit go into the segment in one write.
  for (size_t i = 0; i < batches.size();) {
    const size_t start = batches[i].position;
    size_t end = start + static_cast<size_t>(batches[i].header.size_bytes());
    if (absl::Status status = RollFor(batches[i].header, end - start, now); !status.ok()) {
      return status;
    }
    std::vector<BatchHeader> headers = {batches[i].header};
    for (++i; i < batches.size(); ++i) {
      const size_t next_end =
          batches[i].position + static_cast<size_t>(batches[i].header.size_bytes());
      const bool fits = active().size_bytes() + (next_end - start) <=
                            static_cast<uint64_t>(config_.segment_bytes) &&
                        active().HasRoomFor(batches[i].header, next_end - start);
      if (!fits) break;
      end = next_end;
      headers.push_back(batches[i].header);
    }
    if (absl::Status status = AppendToActive(run.Sub(start, end - start), headers, now);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LogRead> PartitionLog::Read(Offset from, size_t max_bytes, Offset limit) {
  if (from < log_start() || from > log_end()) {
    return MakeError(
        v1::OFFSET_OUT_OF_RANGE,
        absl::StrCat("offset ", from.value(), " is outside of the log, which goes from ",
                     log_start().value(), " to ", log_end().value()));
  }
  limit = std::min(limit, log_end());
  if (auto tail = tail_.Read(from, max_bytes, limit)) {
    return LogRead{std::move(tail->batches), tail->next_offset};
  }
  LogRead read{{}, from};
  for (size_t i = SegmentIndexOf(from); i < segments_.size() && read.next_offset < limit; ++i) {
    const size_t have = read.batches.size();
    if (have > 0 && have >= max_bytes) break;
    auto bytes = segments_[i]->Read(read.next_offset, max_bytes - std::min(have, max_bytes), limit,
                                    /*at_least_one=*/have == 0);
    if (!bytes.ok()) {
      // What came before is good; the next read names the damage.
      if (have > 0) break;
      return bytes.status();
    }
    if (bytes->empty()) break;
    read.batches.Append(*bytes);
    read.next_offset = Segment::EndOf(*bytes);
    if (read.next_offset < segments_[i]->next_offset()) break;
  }
  return read;
}

absl::StatusOr<std::optional<TimestampedOffset>> PartitionLog::FindTimestamp(int64_t timestamp_ms,
                                                                             Offset limit) {
  for (const auto& segment : segments_) {
    if (segment->base_offset() >= limit) break;
    if (segment->next_offset() <= log_start()) continue;
    auto found =
        segment->FindTimestamp(timestamp_ms, std::max(segment->base_offset(), log_start()), limit);
    if (!found.ok() || *found) return found;
  }
  return std::nullopt;
}

EpochEnd PartitionLog::EndOfEpoch(LeaderEpoch epoch) const {
  return epochs().EndOf(epoch, log_end());
}

}  // namespace conclave
