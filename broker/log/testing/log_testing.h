#ifndef CONCLAVE_BROKER_LOG_TESTING_LOG_TESTING_H_
#define CONCLAVE_BROKER_LOG_TESTING_LOG_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "broker/log/partition_log.h"
#include "common/buffer/buffer.h"
#include "common/fs/file_system.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"

// What tests of the log share.
namespace conclave::log_testing {

inline constexpr int64_t kNowMs = 1'700'000'000'000;
inline constexpr char kDirectory[] = "/data/topic-0";

struct BatchSpec {
  int records = 1;
  size_t value_bytes = 20;
  int64_t timestamp_ms = kNowMs;
  // Added from record to record.
  int64_t timestamp_step_ms = 1;
  int64_t producer_id = -1;
  int16_t producer_epoch = 0;
  int32_t sequence = 0;
  // Makes contents differ.
  uint64_t salt = 0;
  Compression codec = Compression::kNone;
};

// As a producer sends it: at offset 0.
Buffer MakeBatch(const BatchSpec& spec);

BatchHeader HeaderOf(const Buffer& batch);

// Appends as leader; dies if it fails.
AppendResult Append(PartitionLog& log, const BatchSpec& spec, LeaderEpoch epoch = LeaderEpoch(1));

// Opens a log in kDirectory.
absl::StatusOr<std::unique_ptr<PartitionLog>> TryOpen(FileSystem& fs, const LogConfig& config,
                                                      Offset recovery_point, bool clean_stop);
// The same; dies if it fails.
std::unique_ptr<PartitionLog> Open(FileSystem& fs, const LogConfig& config,
                                   Offset recovery_point = Offset(0), bool clean_stop = false);

// Every batch from log start to log end, read one by one. Dies if one cannot be read.
std::vector<std::string> AllBatches(PartitionLog& log);

// Small segments and indexes with many entries.
LogConfig SmallSegments();

// The path of a segment's file.
std::string PathOf(Offset base, const char* suffix);

// Where the first segment there begins; some. The log may start within it.
Offset FirstSegment(FileSystem& fs);

// The same batch with four bytes of its last value chosen so that its CRC is `crc`.
Buffer WithCrc(const Buffer& batch, uint32_t crc);

}  // namespace conclave::log_testing

#endif  // CONCLAVE_BROKER_LOG_TESTING_LOG_TESTING_H_
