#include "common/record/batch_check.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/error/error.h"

namespace conclave {
namespace {

// Length, attributes, two deltas, two lengths and the count of headers, a byte each.
constexpr int64_t kMinRecordBytes = 7;

absl::Status Corrupt(const std::string& what) {
  return MakeError(v1::CORRUPT_MESSAGE,
                   absl::StrCat("this is no record batch of format v2: ", what));
}

absl::Status CheckOffsets(const BatchHeader& header) {
  if (header.base_offset.value() < 0) {
    return Corrupt(absl::StrCat("its base offset is ", header.base_offset.value()));
  }
  if (header.last_offset_delta < 0) {
    return Corrupt(absl::StrCat("its last offset delta is ", header.last_offset_delta));
  }
  // The offset after the last must be one, too.
  if (header.base_offset.value() >=
      std::numeric_limits<int64_t>::max() - header.last_offset_delta) {
    return Corrupt(absl::StrCat("its offsets, from ", header.base_offset.value(), ", overflow"));
  }
  if (header.count < 0 || header.count > int64_t{header.last_offset_delta} + 1) {
    return Corrupt(absl::StrCat("it says to have ", header.count, " records at ",
                                int64_t{header.last_offset_delta} + 1, " offsets"));
  }
  return absl::OkStatus();
}

absl::Status CheckBytes(const BatchHeader& header, const Buffer& batch) {
  const uint32_t crc = ComputeBatchCrc(batch);
  if (crc == header.crc) return absl::OkStatus();
  return Corrupt(absl::StrFormat("its CRC is %08x, and its bytes give %08x", header.crc, crc));
}

absl::Status CheckKind(const BatchHeader& header) {
  const auto refuse = [](const std::string& what) { return MakeError(v1::INVALID_RECORD, what); };
  if (header.is_control()) {
    return refuse(
        "control batches are written by brokers alone, and this one came from a producer");
  }
  if (header.is_transactional()) {
    return refuse("transactions come in a later release; send without a transactional id");
  }
  if (header.count == 0) return refuse("the batch has no records");
  if (header.count != int64_t{header.last_offset_delta} + 1) {
    return refuse(absl::StrCat("the batch has ", header.count,
                               " records and a last offset delta of ", header.last_offset_delta,
                               "; a producer's offsets have no holes, so it must be one less"));
  }
  if (header.producer_id.value() < -1) {
    return refuse(absl::StrCat("the producer id is ", header.producer_id.value(),
                               "; it is -1 for none, or one that InitProducerId gave"));
  }
  if (header.has_producer() && (header.producer_epoch.value() < 0 || header.base_sequence < 0)) {
    return refuse(absl::StrCat("producer ", header.producer_id.value(), " sent epoch ",
                               header.producer_epoch.value(), " and base sequence ",
                               header.base_sequence, "; both start at 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckTimestamps(const BatchHeader& header, const ProduceLimits& limits) {
  const auto refuse = [](const std::string& what) {
    return MakeError(v1::INVALID_TIMESTAMP, what);
  };
  if (header.is_log_append_time()) {
    return refuse("the batch is marked LogAppendTime; timestamps are the producer's: CreateTime");
  }
  const int64_t base = header.base_timestamp_ms;
  const int64_t max = header.max_timestamp_ms;
  if (base < 0 || max < base) {
    return refuse(absl::StrCat("the first timestamp is ", base, " and the greatest ", max,
                               "; they are milliseconds since 1970, and the first is not after the "
                               "greatest"));
  }
  const int64_t now = limits.now.unix_millis();
  if (limits.timestamp_after_max && max - now > limits.timestamp_after_max->milliseconds()) {
    return refuse(
        absl::StrCat("timestamp ", max, " is ", max - now,
                     " ms ahead of the broker's clock; message.timestamp.after.max.ms is ",
                     limits.timestamp_after_max->milliseconds(),
                     ". Are the clocks right, and the unit milliseconds?"));
  }
  if (limits.timestamp_before_max && now - base > limits.timestamp_before_max->milliseconds()) {
    return refuse(absl::StrCat("timestamp ", base, " is ", now - base,
                               " ms behind the broker's clock; message.timestamp.before.max.ms is ",
                               limits.timestamp_before_max->milliseconds(),
                               ". Are the clocks right, and the unit milliseconds?"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBatchHeader(const BatchHeader& header) {
  if (header.magic != kBatchMagic) {
    return Corrupt(absl::StrCat("its magic byte is ", int{header.magic}, ", not 2"));
  }
  if (header.size_bytes() < static_cast<int64_t>(kBatchHeaderBytes)) {
    return Corrupt(absl::StrCat("its length field is ", header.length, ", less than a header"));
  }
  if (absl::Status status = CheckOffsets(header); !status.ok()) return status;
  const int64_t body = header.size_bytes() - static_cast<int64_t>(kBatchHeaderBytes);
  if (header.compression() == Compression::kNone &&
      int64_t{header.count} * kMinRecordBytes > body) {
    return Corrupt(
        absl::StrCat(header.count, " records cannot be in its ", body, " bytes of records"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchHeader> CheckBatch(const Buffer& batch) {
  const auto header = ParseBatchHeader(batch, 0);
  if (!header) {
    return Corrupt(
        absl::StrCat("it has ", batch.size(), " bytes, fewer than a header's ", kBatchHeaderBytes));
  }
  if (absl::Status status = CheckBatchHeader(*header); !status.ok()) return status;
  if (header->size_bytes() != static_cast<int64_t>(batch.size())) {
    return Corrupt(absl::StrCat("its length field makes it ", header->size_bytes(),
                                " bytes, and there are ", batch.size(),
                                "; one batch is taken at a time"));
  }
  if (absl::Status status = CheckBytes(*header, batch); !status.ok()) return status;
  return *header;
}

absl::StatusOr<std::vector<PlacedBatch>> CheckBatchRun(const Buffer& run) {
  std::vector<PlacedBatch> batches;
  const auto refuse = [](size_t position, const std::string& why) {
    return MakeError(v1::CORRUPT_MESSAGE, absl::StrCat("at byte ", position, ": ", why));
  };
  for (size_t at = 0; at < run.size();) {
    const auto header = ParseBatchHeader(run, at);
    if (!header) return refuse(at, "the bytes end within a batch's header");
    if (absl::Status status = CheckBatchHeader(*header); !status.ok()) {
      return refuse(at, std::string(status.message()));
    }
    const auto size = static_cast<size_t>(header->size_bytes());
    if (size > run.size() - at) return refuse(at, "the bytes end within a batch");
    if (absl::Status status = CheckBytes(*header, run.Sub(at, size)); !status.ok()) {
      return refuse(at, std::string(status.message()));
    }
    if (!batches.empty() && header->base_offset < batches.back().header.next_offset()) {
      return refuse(at, absl::StrCat("offset ", header->base_offset.value(), " follows offset ",
                                     batches.back().header.last_offset().value()));
    }
    batches.push_back({at, *header});
    at += size;
  }
  return batches;
}

absl::Status CheckCodec(const BatchHeader& header) {
  const auto codec = header.compression();
  if (!codec) {
    return MakeError(v1::UNSUPPORTED_COMPRESSION_TYPE,
                     absl::StrCat("compression ", header.attributes & 0x07,
                                  " is no codec; none, lz4 and zstd are taken"));
  }
  if (*codec == Compression::kGzip || *codec == Compression::kSnappy) {
    return MakeError(
        v1::UNSUPPORTED_COMPRESSION_TYPE,
        absl::StrCat(CompressionName(*codec), " comes in a later release; use lz4, zstd or none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchHeader> CheckProduced(const Buffer& batch, const ProduceLimits& limits) {
  if (batch.size() > limits.max_batch_bytes) {
    return MakeError(
        v1::MESSAGE_TOO_LARGE,
        absl::StrCat("the batch has ", batch.size(), " bytes; max.message.bytes is ",
                     limits.max_batch_bytes,
                     "; send smaller records or batches, or raise the topic's "
                     "limit ('conclave topic alter TOPIC --set max.message.bytes=N')"));
  }
  auto header = CheckBatch(batch);
  if (!header.ok()) return header;
  if (absl::Status status = CheckCodec(*header); !status.ok()) return status;
  if (absl::Status status = CheckKind(*header); !status.ok()) return status;
  if (absl::Status status = CheckTimestamps(*header, limits); !status.ok()) return status;
  return header;
}

}  // namespace conclave
