#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "broker/log/segment.h"
#include "broker/log/segment_index.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"
#include "common/record/batch_reader.h"
#include "common/record/record_view.h"

namespace conclave {
namespace {

// A lookup by time is answered on the thread that serves the partition: it unpacks no more than the
// largest batch that is sent uncompressed.
constexpr size_t kMostUnpackedForTime = size_t{32} << 20;

}  // namespace

absl::Status Segment::DamageAt(uint64_t position, Offset first_missing,
                               const std::string& what) const {
  return DamageError({path(), position, first_missing, next_offset_, what});
}

absl::StatusOr<std::optional<uint64_t>> Segment::TryLookup(Offset offset) {
  const auto last = index_->LastWhere([&](std::string_view bytes) {
    return base_offset_ + ParseIndexEntry(bytes).relative_offset <= offset;
  });
  if (!last.ok()) return last.status();
  if (!*last) return 0;
  const auto bytes = index_->Entry(**last);
  if (!bytes.ok()) return bytes.status();
  const IndexEntry entry = ParseIndexEntry(*bytes);
  const auto position = static_cast<uint64_t>(entry.position);
  if (entry.position < 0 || position + kBatchHeaderBytes > log_->size()) return std::nullopt;
  const auto header_bytes = log_->ReadAt(position, kBatchHeaderBytes);
  if (!header_bytes.ok()) return header_bytes.status();
  if (header_bytes->size() < kBatchHeaderBytes) return std::nullopt;
  const BatchHeader header = ParseBatchHeader(*header_bytes);
  if (!CheckBatchHeader(header).ok() ||
      header.last_offset() != base_offset_ + entry.relative_offset) {
    return std::nullopt;
  }
  return position;
}

// Either an entry is wrong or its batch is. Marks of the segment stay: they describe what was
// appended, and a rebuild that stops at a damaged batch would forget what lies behind it.
absl::Status Segment::RepairIndexes() {
  const Offset next = next_offset_;
  const LeaderEpoch epoch = last_epoch_;
  const auto timestamp = max_timestamp_;
  const Offset timestamp_offset = max_timestamp_offset_;
  absl::Status status = RebuildIndexes();
  unsound_.clear();
  next_offset_ = next;
  last_epoch_ = epoch;
  max_timestamp_ = timestamp;
  max_timestamp_offset_ = timestamp_offset;
  return status;
}

absl::StatusOr<uint64_t> Segment::Lookup(Offset offset) {
  const auto position = TryLookup(offset);
  if (!position.ok()) return position.status();
  if (*position) return **position;
  LOG(WARNING) << "the index of " << path() << " is wrong about offset " << offset.value();
  if (absl::Status status = RepairIndexes(); !status.ok()) return status;
  const auto again = TryLookup(offset);
  if (!again.ok()) return again.status();
  return again->value_or(0);
}

absl::StatusOr<std::optional<ScannedBatch>> Segment::Find(Offset offset) {
  const auto start = Lookup(offset);
  if (!start.ok()) return start.status();
  std::optional<Offset> expected;
  if (*start == 0) expected = base_offset_;
  BatchScanner scanner(*log_, *start, log_->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) {
      if (scanner.stop_reason().empty()) return std::nullopt;
      return DamageAt(scanner.position(), expected.value_or(offset), scanner.stop_reason());
    }
    const BatchHeader& header = (*batch)->header;
    if (expected && header.base_offset != *expected) {
      return DamageAt((*batch)->position, *expected,
                      absl::StrCat("offset ", header.base_offset.value(), " follows, and ",
                                   expected->value(), " should"));
    }
    if (header.last_offset() >= offset) return *batch;
    expected = header.next_offset();
  }
}

absl::StatusOr<Buffer> Segment::Read(Offset from, size_t max_bytes, Offset limit,
                                     bool at_least_one) {
  const auto first = Find(from);
  if (!first.ok()) return first.status();
  if (!*first || (*first)->header.next_offset() > limit) return Buffer();
  const auto first_size = static_cast<size_t>((*first)->header.size_bytes());
  const size_t want = at_least_one ? std::max(max_bytes, first_size) : max_bytes;
  if (first_size > want) return Buffer();
  const uint64_t start = (*first)->position;
  auto read = log_->ReadAt(start, std::min<uint64_t>(want, log_->size() - start));
  if (!read.ok()) return read.status();
  const std::string_view bytes = *read;
  size_t good = 0;
  Offset expected = (*first)->header.base_offset;
  while (bytes.size() - good >= kBatchHeaderBytes) {
    const BatchHeader header = ParseBatchHeader(bytes.substr(good));
    std::string damage;
    if (header.base_offset != expected || !CheckBatchHeader(header).ok()) {
      damage = "what follows the batch before is no batch, or not the next one";
    } else {
      const auto size = static_cast<size_t>(header.size_bytes());
      if (size > bytes.size() - good || header.next_offset() > limit) break;
      const uint32_t crc = ComputeBatchCrc(bytes.substr(good, size));
      if (crc == header.crc) {
        good += size;
        expected = header.next_offset();
        continue;
      }
      damage = absl::StrFormat("the batch at offset %d has the CRC %08x, and its bytes give %08x",
                               expected.value(), header.crc, crc);
    }
    // What is good is served first; the next read begins at the damage and names it.
    if (good > 0) break;
    return DamageError({path(), start, expected, header.next_offset(), damage});
  }
  return Buffer(Slice::FromString(*std::move(read)).Sub(0, good));
}

absl::StatusOr<std::optional<TimestampedOffset>> Segment::FindTimestamp(int64_t timestamp_ms,
                                                                        Offset from, Offset limit) {
  if (!max_timestamp_ || *max_timestamp_ < timestamp_ms) return std::nullopt;
  const auto start = LookupTimestamp(timestamp_ms);
  if (!start.ok()) return start.status();
  const auto first = Find(std::max(from, *start));
  if (!first.ok()) return first.status();
  if (!*first) return std::nullopt;
  BatchScanner scanner(*log_, (*first)->position, log_->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) {
      if (scanner.stop_reason().empty()) return std::nullopt;
      return DamageAt(scanner.position(), (*first)->header.base_offset, scanner.stop_reason());
    }
    const BatchHeader& header = (*batch)->header;
    if (header.base_offset >= limit) return std::nullopt;
    if (header.max_timestamp_ms < timestamp_ms) continue;
    const auto found = FindTimestampIn(**batch, timestamp_ms, from, limit);
    if (!found.ok() || *found) return found;
  }
}

// Everything before the entry that is greatest at or below the timestamp is earlier: an entry's
// offset belongs to the first batch that has its timestamp.
absl::StatusOr<Offset> Segment::LookupTimestamp(int64_t timestamp_ms) {
  for (const bool last_try : {false, true}) {
    const auto last = time_index_->LastWhere([&](std::string_view bytes) {
      return ParseTimeIndexEntry(bytes).timestamp_ms <= timestamp_ms;
    });
    if (!last.ok()) return last.status();
    if (!*last) return base_offset_;
    const auto bytes = time_index_->Entry(**last);
    if (!bytes.ok()) return bytes.status();
    const TimeIndexEntry entry = ParseTimeIndexEntry(*bytes);
    const Offset offset = base_offset_ + entry.relative_offset;
    if (offset >= base_offset_ && offset < next_offset_) {
      const auto batch = Find(offset);
      if (!batch.ok()) return batch.status();
      if (*batch && (*batch)->header.last_offset() == offset &&
          (*batch)->header.max_timestamp_ms == entry.timestamp_ms) {
        return (*batch)->header.base_offset;
      }
    }
    if (last_try) break;
    LOG(WARNING) << "the time index of " << path() << " is wrong about " << timestamp_ms;
    if (absl::Status status = RepairIndexes(); !status.ok()) return status;
  }
  return base_offset_;
}

absl::StatusOr<std::optional<TimestampedOffset>> Segment::FindTimestampIn(const ScannedBatch& batch,
                                                                          int64_t timestamp_ms,
                                                                          Offset from,
                                                                          Offset limit) {
  const BatchHeader& header = batch.header;
  auto bytes = log_->ReadAt(batch.position, static_cast<size_t>(header.size_bytes()));
  if (!bytes.ok()) return bytes.status();
  const Buffer buffer(*std::move(bytes));
  if (const auto checked = CheckBatch(buffer); !checked.ok()) {
    return DamageError({path(), batch.position, header.base_offset, header.next_offset(),
                        std::string(checked.status().message())});
  }
  auto reader = BatchReader::Open(buffer, kMostUnpackedForTime);
  absl::Status status = reader.status();
  if (ErrorCodeOf(status) == v1::MESSAGE_TOO_LARGE) {
    // Where it begins is too early for some readers; behind it would be too late for all.
    LOG(WARNING) << path() << ": " << status.message();
    const Offset offset = std::max(header.base_offset, from);
    if (offset >= limit) return std::nullopt;
    return TimestampedOffset{offset, header.max_timestamp_ms, header.leader_epoch};
  }
  RecordView record;
  while (status.ok()) {
    const auto more = reader->Next(record);
    status = more.status();
    if (!status.ok()) break;
    if (!*more || record.offset >= limit) return std::nullopt;
    if (record.timestamp_ms >= timestamp_ms && record.offset >= from) {
      return TimestampedOffset{record.offset, record.timestamp_ms, header.leader_epoch};
    }
  }
  LOG(WARNING) << path() << ": " << status.message();
  return std::nullopt;
}

absl::Status Segment::VisitHeaders(Offset from,
                                   const std::function<void(const BatchHeader&)>& visit) {
  if (from >= next_offset_) return absl::OkStatus();
  const auto first = Find(from);
  if (!first.ok()) return first.status();
  if (!*first) return absl::OkStatus();
  BatchScanner scanner(*log_, (*first)->position, log_->size(), BatchScanner::Depth::kHeaders);
  Offset expected = (*first)->header.base_offset;
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) {
      if (scanner.stop_reason().empty()) return absl::OkStatus();
      return DamageAt(scanner.position(), expected, scanner.stop_reason());
    }
    visit((*batch)->header);
    expected = (*batch)->header.next_offset();
  }
}

absl::Status Segment::VisitBatchOf(Offset offset,
                                   const std::function<void(const BatchHeader&)>& visit) {
  const auto batch = Find(offset);
  if (!batch.ok()) return batch.status();
  if (*batch) visit((*batch)->header);
  return absl::OkStatus();
}

Offset Segment::EndOf(const Buffer& batches) {
  Offset end;
  for (size_t at = 0; at < batches.size();) {
    const auto header = ParseBatchHeader(batches, at);
    end = header->next_offset();
    at += static_cast<size_t>(header->size_bytes());
  }
  return end;
}

}  // namespace conclave
