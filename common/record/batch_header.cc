#include "common/record/batch_header.h"

#include <glog/logging.h>

#include <utility>

#include "common/checksum/crc32c.h"

namespace conclave {

const char* CompressionName(Compression codec) {
  switch (codec) {
    case Compression::kNone:
      return "none";
    case Compression::kGzip:
      return "gzip";
    case Compression::kSnappy:
      return "snappy";
    case Compression::kLz4:
      return "lz4";
    case Compression::kZstd:
      return "zstd";
  }
  return "unknown";
}

std::optional<Compression> BatchHeader::compression() const {
  const int codec = attributes & 0x07;
  if (codec > static_cast<int>(Compression::kZstd)) return std::nullopt;
  return static_cast<Compression>(codec);
}

int32_t BatchHeader::last_sequence() const {
  if (!has_producer() || base_sequence < 0 || last_offset_delta < 0) return base_sequence;
  return SequenceAfter(base_sequence, last_offset_delta);
}

BatchHeader ParseBatchHeader(std::string_view bytes) {
  CHECK_GE(bytes.size(), kBatchHeaderBytes);
  const char* at = bytes.data();
  BatchHeader header;
  header.base_offset = Offset(LoadBigEndian<int64_t>(at));
  header.length = LoadBigEndian<int32_t>(at + 8);
  header.leader_epoch = LeaderEpoch(LoadBigEndian<int32_t>(at + 12));
  header.magic = LoadBigEndian<int8_t>(at + 16);
  header.crc = LoadBigEndian<uint32_t>(at + 17);
  header.attributes = LoadBigEndian<uint16_t>(at + 21);
  header.last_offset_delta = LoadBigEndian<int32_t>(at + 23);
  header.base_timestamp_ms = LoadBigEndian<int64_t>(at + 27);
  header.max_timestamp_ms = LoadBigEndian<int64_t>(at + 35);
  header.producer_id = ProducerId(LoadBigEndian<int64_t>(at + 43));
  header.producer_epoch = ProducerEpoch(LoadBigEndian<int16_t>(at + 51));
  header.base_sequence = LoadBigEndian<int32_t>(at + 53);
  header.count = LoadBigEndian<int32_t>(at + 57);
  return header;
}

std::optional<BatchHeader> ParseBatchHeader(const Buffer& buffer, size_t at) {
  if (at > buffer.size() || buffer.size() - at < kBatchHeaderBytes) return std::nullopt;
  char bytes[kBatchHeaderBytes];
  buffer.CopyTo(at, kBatchHeaderBytes, bytes);
  return ParseBatchHeader(std::string_view(bytes, kBatchHeaderBytes));
}

void WriteBatchHeader(const BatchHeader& header, char* out) {
  StoreBigEndian(header.base_offset.value(), out);
  StoreBigEndian(header.length, out + 8);
  StoreBigEndian(header.leader_epoch.value(), out + 12);
  StoreBigEndian(header.magic, out + 16);
  StoreBigEndian(header.crc, out + 17);
  StoreBigEndian(header.attributes, out + 21);
  StoreBigEndian(header.last_offset_delta, out + 23);
  StoreBigEndian(header.base_timestamp_ms, out + 27);
  StoreBigEndian(header.max_timestamp_ms, out + 35);
  StoreBigEndian(header.producer_id.value(), out + 43);
  StoreBigEndian(header.producer_epoch.value(), out + 51);
  StoreBigEndian(header.base_sequence, out + 53);
  StoreBigEndian(header.count, out + 57);
}

Buffer PatchBatch(const Buffer& batch, Offset base_offset, LeaderEpoch leader_epoch) {
  CHECK_GE(batch.size(), kBatchHeaderBytes);
  std::string front(kBatchPatchedBytes, '\0');
  batch.CopyTo(0, kBatchPatchedBytes, front.data());
  StoreBigEndian(base_offset.value(), front.data());
  StoreBigEndian(leader_epoch.value(), front.data() + kBatchLeaderEpochAt);
  Buffer patched(std::move(front));
  patched.Append(batch.Sub(kBatchPatchedBytes, batch.size() - kBatchPatchedBytes));
  return patched;
}

uint32_t ComputeBatchCrc(const Buffer& batch) {
  CHECK_GE(batch.size(), kBatchCrcFrom);
  uint32_t crc = 0;
  size_t skip = kBatchCrcFrom;
  for (const Slice& slice : batch.slices()) {
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    crc = ExtendCrc32c(crc, slice.view().substr(skip));
    skip = 0;
  }
  return crc;
}

uint32_t ComputeBatchCrc(std::string_view batch) {
  CHECK_GE(batch.size(), kBatchCrcFrom);
  return Crc32c(batch.substr(kBatchCrcFrom));
}

}  // namespace conclave
