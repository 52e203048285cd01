#include "common/record/batch_builder.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/record/compression.h"
#include "common/record/varint.h"

namespace conclave {
namespace {

// Of a batch that is a few records.
constexpr size_t kFirstBytes = 512;

// Null is length -1.
size_t BytesOf(const std::optional<std::string_view>& bytes) {
  if (!bytes) return VarintBytes(-1);
  return VarintBytes(static_cast<int64_t>(bytes->size())) + bytes->size();
}

char* Write(char* out, const std::optional<std::string_view>& bytes) {
  if (!bytes) return WriteVarint(out, -1);
  out = WriteVarint(out, static_cast<int64_t>(bytes->size()));
  return std::copy(bytes->begin(), bytes->end(), out);
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

BatchBuilder::BatchBuilder(Compression codec) : codec_(codec) {
  Grow(kFirstBytes);
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
  const size_t length =
      1 + VarintBytes(timestamp_delta) + VarintBytes(offset_delta) + ContentBytes(record);
  const size_t needed = size_ + VarintBytes(static_cast<int64_t>(length)) + length;
  if (needed > capacity_) Grow(std::max(needed, 2 * capacity_));
  char* out = WriteVarint(bytes_.get() + size_, static_cast<int64_t>(length));
  *out++ = '\0';  // Attributes: none are in use.
  out = WriteVarint(out, timestamp_delta);
  out = WriteVarint(out, offset_delta);
  out = Write(out, record.key);
  out = Write(out, record.value);
  out = WriteVarint(out, static_cast<int64_t>(record.headers.size()));
  for (const HeaderView& header : record.headers) {
    out = Write(out, header.key);
    out = Write(out, header.value);
  }
  size_ = needed;
  DCHECK(out == bytes_.get() + size_);
}

void BatchBuilder::Grow(size_t capacity) {
  auto bytes = std::make_shared_for_overwrite<char[]>(capacity);
  if (bytes_ != nullptr) std::memcpy(bytes.get(), bytes_.get(), size_);
  bytes_ = std::move(bytes);
  capacity_ = capacity;
}

void BatchBuilder::SetProducer(ProducerId id, ProducerEpoch epoch, int32_t base_sequence) {
  header_.producer_id = id;
  header_.producer_epoch = epoch;
  header_.base_sequence = base_sequence;
}

absl::StatusOr<Buffer> BatchBuilder::Finish() {
  CHECK_GT(header_.count, 0) << "a batch needs a record";
  header_.last_offset_delta = header_.count - 1;
  if (codec_ == Compression::kNone) {
    WriteHeader(bytes_.get(), size_);
    const char* data = bytes_.get();
    return Buffer(Slice(std::move(bytes_), data, size_));
  }
  std::string packed(kBatchHeaderBytes, '\0');
  const std::string_view records(bytes_.get() + kBatchHeaderBytes, size_ - kBatchHeaderBytes);
  if (absl::Status status = Compress(codec_, records, packed); !status.ok()) return status;
  WriteHeader(packed.data(), packed.size());
  return Buffer(std::move(packed));
}

void BatchBuilder::WriteHeader(char* batch, size_t size) {
  header_.length = static_cast<int32_t>(size - kBatchOverheadBytes);
  WriteBatchHeader(header_, batch);
  header_.crc = ComputeBatchCrc(std::string_view(batch, size));
  StoreBigEndian(header_.crc, batch + kBatchCrcAt);
}

}  // namespace conclave
