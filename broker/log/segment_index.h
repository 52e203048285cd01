#ifndef CONCLAVE_BROKER_LOG_SEGMENT_INDEX_H_
#define CONCLAVE_BROKER_LOG_SEGMENT_INDEX_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/record/batch_header.h"

// Entries of the two index files of a segment, as Kafka lays them out. Big-endian.
namespace conclave {

// 8 bytes: the last offset of a batch, less the segment's base, and where the batch begins.
struct IndexEntry {
  int32_t relative_offset = 0;
  int32_t position = 0;
};

// 12 bytes: the greatest timestamp up to here, and the last offset, less the base, of the first
// batch that has it.
struct TimeIndexEntry {
  int64_t timestamp_ms = 0;
  int32_t relative_offset = 0;
};

inline IndexEntry ParseIndexEntry(std::string_view bytes) {
  return {LoadBigEndian<int32_t>(bytes.data()), LoadBigEndian<int32_t>(bytes.data() + 4)};
}

inline std::string MakeIndexEntry(IndexEntry entry) {
  std::string bytes(8, '\0');
  StoreBigEndian(entry.relative_offset, bytes.data());
  StoreBigEndian(entry.position, bytes.data() + 4);
  return bytes;
}

inline TimeIndexEntry ParseTimeIndexEntry(std::string_view bytes) {
  return {LoadBigEndian<int64_t>(bytes.data()), LoadBigEndian<int32_t>(bytes.data() + 8)};
}

inline std::string MakeTimeIndexEntry(TimeIndexEntry entry) {
  std::string bytes(12, '\0');
  StoreBigEndian(entry.timestamp_ms, bytes.data());
  StoreBigEndian(entry.relative_offset, bytes.data() + 8);
  return bytes;
}

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_SEGMENT_INDEX_H_
