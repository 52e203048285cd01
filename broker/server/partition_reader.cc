#include "broker/server/partition_reader.h"

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

// The records of `batches` at `position` or later. OK, or what is malformed in one of them; the
// result then ends behind that batch.
absl::Status Decode(const Buffer& batches, Offset position, v1::FetchPartitionResult& result) {
  const auto run = CheckBatchRun(batches);
  if (!run.ok()) return run.status();
  for (const PlacedBatch& placed : *run) {
    const Buffer batch =
        batches.Sub(placed.position, static_cast<size_t>(placed.header.size_bytes()));
    const absl::Status read = AppendRecords(batch, position, *result.mutable_records());
    result.set_next_offset(placed.header.next_offset().value());
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

absl::Status Read(Replica& replica, Offset position, size_t max_bytes, bool decode,
                  PartitionRead& read) {
  if (absl::Status in_range = CheckRange(replica, position); !in_range.ok()) return in_range;
  const Offset high_watermark = replica.high_watermark();
  if (position >= high_watermark) return absl::OkStatus();
  auto found = replica.log().Read(position, max_bytes, high_watermark);
  if (!found.ok()) return found.status();
  read.bytes = found->batches.size();
  if (read.bytes > 0) read.result.set_next_offset(found->next_offset.value());
  if (decode) return Decode(found->batches, position, read.result);
  read.result.set_batches(found->batches.ToString());
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
