#include "broker/log/segment.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "broker/log/segment_index.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr char kLogSuffix[] = ".log";
constexpr size_t kNameDigits = 20;

// Room is set aside for as much as there is, within these bounds (docs/decisions/0015).
constexpr uint64_t kMinReserve = 1 << 20;
constexpr uint64_t kMaxReserve = 8 << 20;

}  // namespace

std::string SegmentPath(const std::string& directory, Offset base, const char* suffix) {
  return JoinPath(directory, absl::StrFormat("%020d%s", base.value(), suffix));
}

std::optional<Offset> ParseSegmentName(const std::string& name) {
  if (name.size() != kNameDigits + 4 || name.substr(kNameDigits) != kLogSuffix) {
    return std::nullopt;
  }
  int64_t base = 0;
  for (size_t i = 0; i < kNameDigits; ++i) {
    if (name[i] < '0' || name[i] > '9') return std::nullopt;
    if (__builtin_mul_overflow(base, int64_t{10}, &base) ||
        __builtin_add_overflow(base, int64_t{name[i] - '0'}, &base)) {
      return std::nullopt;
    }
  }
  return Offset(base);
}

absl::Status Segment::OpenFiles(FileSystem& fs, FileSystem::OpenMode log_mode) {
  auto log = fs.Open(SegmentPath(directory_, base_offset_, kLogSuffix), log_mode);
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  auto index =
      IndexFile::Open(fs, SegmentPath(directory_, base_offset_, ".index"), kIndexEntryBytes);
  if (!index.ok()) return index.status();
  index_ = *std::move(index);
  auto time_index = IndexFile::Open(fs, SegmentPath(directory_, base_offset_, ".timeindex"),
                                    kTimeIndexEntryBytes);
  if (!time_index.ok()) return time_index.status();
  time_index_ = *std::move(time_index);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::Create(FileSystem& fs,
                                                         const std::string& directory, Offset base,
                                                         int64_t index_interval_bytes) {
  std::unique_ptr<Segment> segment(new Segment(directory, base, index_interval_bytes));
  absl::Status status = segment->OpenFiles(fs, FileSystem::OpenMode::kCreateNew);
  // Left by a segment of this name that was removed in part.
  if (status.ok()) status = segment->ClearIndexes();
  if (status.ok()) return segment;
  // The next attempt, once descriptors or room can be had, finds the name free.
  if (segment->log_ != nullptr) status.Update(segment->Remove(fs));
  return status;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::Open(FileSystem& fs, const std::string& directory,
                                                       Offset base, int64_t index_interval_bytes) {
  std::unique_ptr<Segment> segment(new Segment(directory, base, index_interval_bytes));
  if (absl::Status status = segment->OpenFiles(fs, FileSystem::OpenMode::kExisting); !status.ok()) {
    return status;
  }
  const auto found = segment->FindEnd();
  if (!found.ok()) return found.status();
  if (!*found) {
    if (absl::Status status = segment->RebuildIndexes(); !status.ok()) return status;
  }
  return segment;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::OpenToRecover(FileSystem& fs,
                                                                const std::string& directory,
                                                                Offset base,
                                                                int64_t index_interval_bytes) {
  std::unique_ptr<Segment> segment(new Segment(directory, base, index_interval_bytes));
  if (absl::Status status = segment->OpenFiles(fs, FileSystem::OpenMode::kExisting); !status.ok()) {
    return status;
  }
  segment->unsound_ = "it has not been recovered";
  return segment;
}

absl::Status Segment::ClearIndexes() {
  next_offset_ = base_offset_;
  last_epoch_ = LeaderEpoch(-1);
  first_timestamp_.reset();
  max_timestamp_.reset();
  last_time_entry_.reset();
  bytes_since_entry_ = 0;
  unsound_.clear();
  if (absl::Status status = index_->TruncateTo(0); !status.ok()) return status;
  return time_index_->TruncateTo(0);
}

absl::Status Segment::RebuildIndexes() {
  if (!empty()) LOG(INFO) << "indexes of " << path() << " are made anew";
  if (absl::Status status = ClearIndexes(); !status.ok()) return status;
  BatchScanner scanner(*log_, 0, log_->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) break;
    if ((*batch)->header.base_offset != next_offset_) {
      unsound_ = absl::StrCat("at byte ", (*batch)->position, ": offset ",
                              (*batch)->header.base_offset.value(), " follows, and ",
                              next_offset_.value(), " should");
      return FlushIndexes();
    }
    Note((*batch)->position, (*batch)->header);
  }
  if (!scanner.stop_reason().empty()) {
    unsound_ = absl::StrCat("at byte ", scanner.position(), ": ", scanner.stop_reason());
  }
  return FlushIndexes();
}

absl::StatusOr<bool> Segment::WalkTail() {
  uint64_t start = 0;
  Offset expected_last(-1);
  if (index_->count() > 0) {
    const auto bytes = index_->Entry(index_->count() - 1);
    if (!bytes.ok()) return bytes.status();
    const IndexEntry entry = ParseIndexEntry(*bytes);
    if (entry.position <= 0 || entry.relative_offset < 0) return false;
    start = static_cast<uint64_t>(entry.position);
    expected_last = base_offset_ + entry.relative_offset;
    if (start >= log_->size()) return false;
  }
  bytes_since_entry_ = 0;
  bool first = true;
  BatchScanner scanner(*log_, start, log_->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) break;
    const BatchHeader& header = (*batch)->header;
    if (first && start > 0) {
      if (header.last_offset() != expected_last) return false;
    } else if (header.base_offset != next_offset_ || bytes_since_entry_ > index_interval_bytes_) {
      return false;  // Out of order, or an entry is missing: the walk from the start tells which.
    }
    first = false;
    NoteMarks(header);
    bytes_since_entry_ += header.size_bytes();
  }
  return scanner.stop_reason().empty();
}

absl::StatusOr<bool> Segment::FindEnd() {
  if (empty()) return index_->count() == 0 && time_index_->count() == 0;
  if (time_index_->count() == 0) return false;
  BatchScanner scanner(*log_, 0, log_->size(), BatchScanner::Depth::kHeaders);
  const auto first = scanner.Next();
  if (!first.ok()) return first.status();
  if (!*first || (*first)->header.base_offset != base_offset_) return false;
  first_timestamp_ = (*first)->header.max_timestamp_ms;
  if (absl::Status status = TakeMarksOfTimeIndex(); !status.ok()) return status;
  const auto walked = WalkTail();
  if (!walked.ok() || !*walked) return walked;
  return LastTimeEntryHolds();
}

absl::Status Segment::TakeMarksOfTimeIndex() {
  max_timestamp_.reset();
  last_time_entry_.reset();
  if (time_index_->count() == 0) return absl::OkStatus();
  const auto bytes = time_index_->Entry(time_index_->count() - 1);
  if (!bytes.ok()) return bytes.status();
  const TimeIndexEntry entry = ParseTimeIndexEntry(*bytes);
  last_time_entry_ = max_timestamp_ = entry.timestamp_ms;
  max_timestamp_offset_ = base_offset_ + entry.relative_offset;
  return absl::OkStatus();
}

absl::StatusOr<bool> Segment::LastTimeEntryHolds() {
  if (max_timestamp_ != last_time_entry_) return false;
  if (max_timestamp_offset_ < base_offset_ || max_timestamp_offset_ >= next_offset_) return false;
  const auto position = TryLookup(max_timestamp_offset_);
  if (!position.ok()) return position.status();
  if (!*position) return false;
  BatchScanner scanner(*log_, **position, log_->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) return false;
    const BatchHeader& header = (*batch)->header;
    if (header.last_offset() < max_timestamp_offset_) continue;
    return header.last_offset() == max_timestamp_offset_ &&
           header.max_timestamp_ms == *last_time_entry_;
  }
}

absl::StatusOr<uint64_t> Segment::Recover(Offset recovery_point, Offset end_missing,
                                          LeaderEpoch epoch_before,
                                          const std::function<void(uint64_t bytes)>& progress,
                                          const std::function<absl::Status(uint64_t)>& before_cut) {
  if (absl::Status status = ClearIndexes(); !status.ok()) return status;
  LeaderEpoch epoch = epoch_before;
  std::string why;
  uint64_t good = 0;
  uint64_t known_durable = 0;
  BatchScanner scanner(*log_, 0, log_->size(), BatchScanner::Depth::kWhole);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) break;
    const BatchHeader& header = (*batch)->header;
    if (header.base_offset != next_offset_) {
      why = absl::StrCat("offset ", header.base_offset.value(), " follows, and ",
                         next_offset_.value(), " should");
      break;
    }
    if (header.leader_epoch < epoch) {
      why = absl::StrCat("leader epoch ", header.leader_epoch.value(), " follows ", epoch.value());
      break;
    }
    epoch = header.leader_epoch;
    Note((*batch)->position, header);
    good = scanner.position();
    if (next_offset_ <= recovery_point) known_durable = good;
    progress(good);
  }
  if (why.empty()) why = scanner.stop_reason();
  if (next_offset_ < recovery_point) {
    if (why.empty()) why = "the file ends before what was known to be on disk";
    return DamageError({path(), good, next_offset_, end_missing, why});
  }
  const uint64_t cut = log_->size() - good;
  if (cut > 0) {
    LOG(WARNING) << path() << ": cut " << cut << " bytes from byte " << good << " (offset "
                 << next_offset_.value() << ") on, which were not yet known to be on disk: " << why;
    if (absl::Status status = before_cut(good); !status.ok()) return status;
    if (absl::Status status = log_->Truncate(good); !status.ok()) return status;
    // Before anything follows: else the next loss of power may bring back what was cut, below what
    // is known to be durable by then.
    if (absl::Status status = log_->Sync(); !status.ok()) return status;
  }
  // What has been read may be in memory alone: a sync of the process that is gone may have failed.
  if (absl::Status status = log_->Rewrite(known_durable); !status.ok()) return status;
  if (absl::Status status = FlushIndexes(); !status.ok()) return status;
  // What the process that is gone set aside.
  log_->ReleaseReserved();
  return cut;
}

bool Segment::HasRoomFor(const BatchHeader& header, size_t bytes) const {
  return size_bytes() + bytes <= static_cast<uint64_t>(kMaxSegmentBytes) &&
         header.last_offset() - base_offset_ <= INT32_MAX;
}

void Segment::Reserve(size_t bytes) {
  const uint64_t size = log_->size();
  if (size < kMinReserve || size + bytes <= reserved_end_) return;
  const uint64_t more = std::min(size / kMinReserve * kMinReserve, kMaxReserve) + bytes;
  log_->Reserve(more);
  reserved_end_ = size + more;
}

void Segment::ReleaseReserved() {
  if (reserved_end_ == 0) return;
  log_->ReleaseReserved();
  reserved_end_ = 0;
}

absl::Status Segment::Append(const Buffer& bytes, std::span<const BatchHeader> headers) {
  uint64_t position = log_->size();
  Reserve(bytes.size());
  if (absl::Status status = log_->Append(bytes); !status.ok()) return status;
  for (const BatchHeader& header : headers) {
    Note(position, header);
    position += static_cast<uint64_t>(header.size_bytes());
  }
  DCHECK_EQ(position, log_->size());
  return absl::OkStatus();
}

void Segment::NoteMarks(const BatchHeader& header) {
  next_offset_ = header.next_offset();
  last_epoch_ = header.leader_epoch;
  if (!first_timestamp_) first_timestamp_ = header.max_timestamp_ms;
  if (!max_timestamp_ || header.max_timestamp_ms > *max_timestamp_) {
    max_timestamp_ = header.max_timestamp_ms;
    max_timestamp_offset_ = header.last_offset();
  }
}

// Kafka's rule (LogSegment.append): the batch that comes once more than the interval has passed is
// the one that gets an entry.
void Segment::Note(uint64_t position, const BatchHeader& header) {
  NoteMarks(header);
  if (bytes_since_entry_ > index_interval_bytes_) {
    index_->Append(MakeIndexEntry({static_cast<int32_t>(header.last_offset() - base_offset_),
                                   static_cast<int32_t>(position)}));
    AppendTimeEntry();
    bytes_since_entry_ = 0;
  }
  bytes_since_entry_ += header.size_bytes();
}

void Segment::AppendTimeEntry() {
  if (!max_timestamp_ || (last_time_entry_ && *max_timestamp_ <= *last_time_entry_)) return;
  time_index_->Append(MakeTimeIndexEntry(
      {*max_timestamp_, static_cast<int32_t>(max_timestamp_offset_ - base_offset_)}));
  last_time_entry_ = max_timestamp_;
}

absl::Status Segment::FlushIndexes() {
  AppendTimeEntry();
  for (IndexFile* index : {index_.get(), time_index_.get()}) {
    const absl::Status flushed = index->Flush();
    // They are hints: on a full disk they stay in memory, and the next start reads more of the log.
    if (!flushed.ok() && ErrorCodeOf(flushed) != v1::OUT_OF_RESOURCES) return flushed;
  }
  return absl::OkStatus();
}

absl::Status Segment::TruncateTo(Offset offset) {
  if (offset >= next_offset_) return absl::OkStatus();
  const auto batch = Find(offset);
  if (!batch.ok()) return batch.status();
  // An earlier attempt got as far as the log.
  if (!*batch) return RebuildIndexes();
  const uint64_t position = (*batch)->position;
  const Offset end = (*batch)->header.base_offset;
  if (absl::Status status = log_->Truncate(position); !status.ok()) return status;
  reserved_end_ = 0;
  const auto last = index_->LastWhere([&](std::string_view bytes) {
    return ParseIndexEntry(bytes).position < static_cast<int64_t>(position);
  });
  if (!last.ok()) return last.status();
  if (absl::Status status = index_->TruncateTo(*last ? **last + 1 : 0); !status.ok()) return status;
  const auto last_time = time_index_->LastWhere([&](std::string_view bytes) {
    return base_offset_ + ParseTimeIndexEntry(bytes).relative_offset < end;
  });
  if (!last_time.ok()) return last_time.status();
  if (absl::Status status = time_index_->TruncateTo(*last_time ? **last_time + 1 : 0);
      !status.ok()) {
    return status;
  }
  if (empty()) return ClearIndexes();
  next_offset_ = base_offset_;
  if (absl::Status status = TakeMarksOfTimeIndex(); !status.ok()) return status;
  const auto walked = WalkTail();
  if (!walked.ok()) return walked.status();
  return *walked && next_offset_ == end ? absl::OkStatus() : RebuildIndexes();
}

std::vector<std::shared_ptr<File>> Segment::Files(bool with_indexes) const {
  if (!with_indexes) return {log_};
  return {log_, index_->file(), time_index_->file()};
}

absl::Status Segment::Remove(FileSystem& fs) {
  for (const char* suffix : {kLogSuffix, ".index", ".timeindex"}) {
    const absl::Status status = fs.RemoveFile(SegmentPath(directory_, base_offset_, suffix));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace conclave
