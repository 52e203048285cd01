#include "broker/log/testing/log_testing.h"

#include <glog/logging.h>

#include <array>
#include <optional>
#include <utility>

#include "broker/log/segment.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_check.h"
#include "common/record/record_view.h"

namespace conclave::log_testing {

Buffer MakeBatch(const BatchSpec& spec) {
  BatchBuilder builder(spec.codec);
  if (spec.producer_id >= 0) {
    builder.SetProducer(ProducerId(spec.producer_id), ProducerEpoch(spec.producer_epoch),
                        spec.sequence);
  }
  for (int i = 0; i < spec.records; ++i) {
    std::string value = std::to_string(spec.salt) + ":" + std::to_string(i) + ":";
    value.resize(std::max(value.size(), spec.value_bytes), 'v');
    RecordView record;
    record.timestamp_ms = spec.timestamp_ms + i * spec.timestamp_step_ms;
    record.value = value;
    builder.Add(record);
  }
  auto batch = builder.Finish();
  CHECK(batch.ok()) << batch.status();
  return *std::move(batch);
}

BatchHeader HeaderOf(const Buffer& batch) { return *ParseBatchHeader(batch, 0); }

AppendResult Append(PartitionLog& log, const BatchSpec& spec, LeaderEpoch epoch) {
  const Buffer batch = MakeBatch(spec);
  const auto result =
      log.AppendAsLeader(batch, HeaderOf(batch), epoch, WallTime::FromUnixMillis(kNowMs));
  CHECK(result.ok()) << result.status();
  return *result;
}

absl::StatusOr<std::unique_ptr<PartitionLog>> TryOpen(FileSystem& fs, const LogConfig& config,
                                                      Offset recovery_point, bool clean_stop) {
  PartitionLog::OpenOptions options;
  options.config = config;
  options.recovery_point = recovery_point;
  options.clean_stop = clean_stop;
  return PartitionLog::Open(fs, kDirectory, std::move(options));
}

std::unique_ptr<PartitionLog> Open(FileSystem& fs, const LogConfig& config, Offset recovery_point,
                                   bool clean_stop) {
  auto log = TryOpen(fs, config, recovery_point, clean_stop);
  CHECK(log.ok()) << log.status();
  return *std::move(log);
}

std::vector<std::string> AllBatches(PartitionLog& log) {
  std::vector<std::string> batches;
  for (Offset at = log.log_start(); at < log.log_end();) {
    const auto read = log.Read(at, 1, log.log_end());
    CHECK(read.ok()) << read.status();
    CHECK(!read->batches.empty()) << at;
    // The log may start within the first.
    const Offset base = HeaderOf(read->batches).base_offset;
    CHECK(base == at || (base < at && at == log.log_start())) << base << " at " << at;
    batches.push_back(read->batches.ToString());
    at = read->next_offset;
  }
  return batches;
}

LogConfig SmallSegments() {
  LogConfig config;
  config.segment_bytes = 2000;
  config.index_interval_bytes = 200;
  return config;
}

std::string PathOf(Offset base, const char* suffix) {
  return SegmentPath(kDirectory, base, suffix);
}

Offset FirstSegment(FileSystem& fs) {
  const auto entries = fs.List(kDirectory);
  CHECK(entries.ok()) << entries.status();
  std::optional<Offset> first;
  for (const DirectoryEntry& entry : *entries) {
    const auto base = ParseSegmentName(entry.name);
    if (base && (!first || *base < *first)) first = base;
  }
  CHECK(first) << "there is no segment";
  return *first;
}

Buffer WithCrc(const Buffer& batch, uint32_t crc) {
  // A CRC is linear in the bytes: each of the 32 free bits flips a fixed set of its bits. Solved by
  // elimination over those sets.
  std::string bytes = batch.ToString();
  // Before the count of headers, the last byte, lies the value.
  const size_t at = bytes.size() - 5;
  const uint32_t start = ComputeBatchCrc(std::string_view(bytes));
  std::array<std::pair<uint32_t, uint32_t>, 32> rows;  // Effect on the CRC, and which bits.
  for (int bit = 0; bit < 32; ++bit) {
    std::string flipped = bytes;
    flipped[at + bit / 8] = static_cast<char>(flipped[at + bit / 8] ^ (1 << (bit % 8)));
    rows[bit] = {ComputeBatchCrc(std::string_view(flipped)) ^ start, uint32_t{1} << bit};
  }
  uint32_t wanted = start ^ crc;
  uint32_t flips = 0;
  for (int column = 31, row = 0; column >= 0; --column) {
    int pivot = row;
    while (pivot < 32 && (rows[pivot].first >> column & 1) == 0) ++pivot;
    if (pivot == 32) continue;
    std::swap(rows[row], rows[pivot]);
    for (int other = 0; other < 32; ++other) {
      if (other != row && (rows[other].first >> column & 1) != 0) {
        rows[other].first ^= rows[row].first;
        rows[other].second ^= rows[row].second;
      }
    }
    if ((wanted >> column & 1) != 0) {
      wanted ^= rows[row].first;
      flips ^= rows[row].second;
    }
    ++row;
  }
  CHECK_EQ(wanted, 0u);
  for (int bit = 0; bit < 32; ++bit) {
    if ((flips >> bit & 1) != 0) {
      bytes[at + bit / 8] = static_cast<char>(bytes[at + bit / 8] ^ (1 << (bit % 8)));
    }
  }
  StoreBigEndian(crc, bytes.data() + kBatchCrcAt);
  CHECK_EQ(ComputeBatchCrc(std::string_view(bytes)), crc);
  return Buffer(std::move(bytes));
}

}  // namespace conclave::log_testing
