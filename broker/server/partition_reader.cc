#include "broker/server/partition_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/server/partition_lookup.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"
#include "common/record/record_conversion.h"

namespace conclave::broker {
namespace {

absl::Status CheckRange(const Replica& replica, Offset position) {
  const Offset start = replica.log().log_start();
  const Offset end = replica.log().log_end();
  if (position >= start && position <= end) return absl::OkStatus();
  return MakeError(
      v1::OFFSET_OUT_OF_RANGE,
      absl::StrCat(replica.name(), ": offset ", position.value(), " is not in the log, which has ",
                   start.value(), " to ", end.value()));
}

absl::Status TooLargeToDecode(const Replica& replica, const BatchHeader& header) {
  return MakeError(
      v1::MESSAGE_TOO_LARGE,
      absl::StrCat(replica.name(), ": the batch at offsets ", header.base_offset.value(), " to ",
                   header.last_offset().value(), " unpacks to more than ", kMostDecodedBytes,
                   " bytes, the most that a broker decodes. Fetch from offset ",
                   header.base_offset.value(),
                   " without `decode` and unpack it there, as the client library does, or go on at "
                   "offset ",
                   header.next_offset().value()));
}

// The records of `batches` at `position` or later, as many as `max_bytes` allow, one at least. OK,
// or what is wrong with one of the batches; the result then ends behind that batch where it is
// malformed, and before it where it is too large.
absl::Status Decode(const Replica& replica, const Buffer& batches, Offset position,
                    size_t max_bytes, PartitionRead& read) {
  const auto run = CheckBatchRun(batches);
  if (!run.ok()) return run.status();
  for (const PlacedBatch& placed : *run) {
    if (read.unpacked_bytes >= kMostDecodedBytes) break;
    const Buffer batch =
        batches.Sub(placed.position, static_cast<size_t>(placed.header.size_bytes()));
    const RecordLimits limits{max_bytes - std::min(max_bytes, read.bytes),
                              /*at_least_one=*/read.bytes == 0, kMostDecodedBytes};
    AppendedRecords appended =
        AppendRecordsWithin(limits, batch, position, *read.result.mutable_records());
    read.unpacked_bytes += appended.unpacked_bytes;
    if (ErrorCodeOf(appended.status) == v1::MESSAGE_TOO_LARGE) {
      // What comes before it is good; the next read begins there and names it.
      if (read.bytes > 0) break;
      return TooLargeToDecode(replica, placed.header);
    }
    // A batch without a record at the position moves it, too.
    read.bytes += std::max<size_t>(appended.bytes, 1);
    position = std::max(position, appended.next);
    read.result.set_next_offset(position.value());
    if (!appended.status.ok()) return appended.status;
    if (position < placed.header.next_offset()) break;
  }
  return absl::OkStatus();
}

absl::Status Read(Replica& replica, Offset position, size_t max_bytes, bool decode,
                  PartitionRead& read) {
  if (absl::Status in_range = CheckRange(replica, position); !in_range.ok()) return in_range;
  const Offset high_watermark = replica.high_watermark();
  if (position >= high_watermark || max_bytes == 0) return absl::OkStatus();
  auto found = replica.Read(position, max_bytes, high_watermark);
  if (!found.ok()) return found.status();
  if (decode) return Decode(replica, found->batches, position, max_bytes, read);
  read.bytes = found->batches.size();
  if (read.bytes > 0) read.result.set_next_offset(found->next_offset.value());
  read.batches = std::move(found->batches);
  return absl::OkStatus();
}

}  // namespace

PartitionRead ReadPartition(ReplicaSet& replicas, const v1::FetchPartition& partition,
                            Offset position, size_t max_bytes, bool decode) {
  PartitionRead read;
  v1::FetchPartitionResult& result = read.result;
  result.set_topic(partition.topic());
  result.set_topic_id(partition.topic_id());
  result.set_partition(partition.partition());
  result.set_next_offset(position.value());
  const auto leader =
      FindLeader(replicas, {partition.topic(), partition.topic_id(), partition.partition()});
  absl::Status status = leader.status();
  if (leader.ok()) {
    result.set_high_watermark((*leader)->high_watermark().value());
    result.set_log_start_offset((*leader)->log().log_start().value());
    status =
        CheckEpoch(**leader, partition.has_leader_epoch() ? std::optional(partition.leader_epoch())
                                                          : std::nullopt);
    if (status.ok()) status = Read(**leader, position, max_bytes, decode, read);
  }
  if (!status.ok()) {
    *result.mutable_error() = ErrorFromStatus(status);
    read.failed = true;
  }
  return read;
}

}  // namespace conclave::broker
