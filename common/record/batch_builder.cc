#include "common/record/batch_builder.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/record/compression.h"
#include "common/record/varint.h"

namespace conclave {
namespace {

// Null is length -1.
size_t BytesOf(const std::optional<std::string_view>& bytes) {
  if (!bytes) return VarintBytes(-1);
  return VarintBytes(static_cast<int64_t>(bytes->size())) + bytes->size();
}

void Append(std::string& out, const std::optional<std::string_view>& bytes) {
  if (!bytes) return AppendVarint(out, -1);
  AppendVarint(out, static_cast<int64_t>(bytes->size()));
  out.append(*bytes);
}

// Of what follows the two deltas.
size_t ContentBytes(const RecordView& record) {
  size_t bytes = BytesOf(record.key) + BytesOf(record.value) +
                 VarintBytes(static_cast<int64_t>(record.headers.size()));
  for (const HeaderView& header : record.headers) {
    bytes += BytesOf(header.key) + BytesOf(header.value);
  }
  return bytes;
}

}  // namespace

BatchBuilder::BatchBuilder(Compression codec) : codec_(codec), bytes_(kBatchHeaderBytes, '\0') {
  header_.leader_epoch = LeaderEpoch(-1);
  header_.attributes = static_cast<uint16_t>(codec);
}

size_t BatchBuilder::RecordBytesAtMost(const RecordView& record) {
  return 3 * kMaxVarintBytes + 1 + ContentBytes(record);
}

void BatchBuilder::Add(const RecordView& record) {
  if (header_.count == 0) {
    header_.base_timestamp_ms = record.timestamp_ms;
    header_.max_timestamp_ms = record.timestamp_ms;
  }
  header_.max_timestamp_ms = std::max(header_.max_timestamp_ms, record.timestamp_ms);
  const int32_t offset_delta = header_.count++;
  // Wraps for timestamps that no check lets through.
  const auto timestamp_delta =
      static_cast<int64_t>(static_cast<uint64_t>(record.timestamp_ms) -
                           static_cast<uint64_t>(header_.base_timestamp_ms));
  AppendVarint(bytes_, static_cast<int64_t>(1 + VarintBytes(timestamp_delta) +
                                            VarintBytes(offset_delta) + ContentBytes(record)));
  bytes_.push_back('\0');  // Attributes: none are in use.
  AppendVarint(bytes_, timestamp_delta);
  AppendVarint(bytes_, offset_delta);
  Append(bytes_, record.key);
  Append(bytes_, record.value);
  AppendVarint(bytes_, static_cast<int64_t>(record.headers.size()));
  for (const HeaderView& header : record.headers) {
    Append(bytes_, header.key);
    Append(bytes_, header.value);
  }
}

void BatchBuilder::SetProducer(ProducerId id, ProducerEpoch epoch, int32_t base_sequence) {
  header_.producer_id = id;
  header_.producer_epoch = epoch;
  header_.base_sequence = base_sequence;
}

absl::StatusOr<Buffer> BatchBuilder::Finish() {
  CHECK_GT(header_.count, 0) << "a batch needs a record";
  if (codec_ != Compression::kNone) {
    std::string packed(kBatchHeaderBytes, '\0');
    if (absl::Status status =
            Compress(codec_, std::string_view(bytes_).substr(kBatchHeaderBytes), packed);
        !status.ok()) {
      return status;
    }
    bytes_ = std::move(packed);
  }
  header_.last_offset_delta = header_.count - 1;
  header_.length = static_cast<int32_t>(bytes_.size() - kBatchOverheadBytes);
  WriteBatchHeader(header_, bytes_.data());
  header_.crc = ComputeBatchCrc(std::string_view(bytes_));
  StoreBigEndian(header_.crc, bytes_.data() + kBatchCrcAt);
  return Buffer(std::move(bytes_));
}

}  // namespace conclave
