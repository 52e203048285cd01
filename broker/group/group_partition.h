#ifndef CONCLAVE_BROKER_GROUP_GROUP_PARTITION_H_
#define CONCLAVE_BROKER_GROUP_GROUP_PARTITION_H_

#include <cstdint>
#include <string_view>

namespace conclave::group {

// Of __consumer_offsets; fixed, for groups are found by it.
inline constexpr int32_t kOffsetsPartitions = 50;

// java.lang.String.hashCode of the text, over UTF-16 code units. `text` is UTF-8; a byte that
// belongs to no character counts as U+FFFD.
int32_t JavaStringHash(std::string_view text);

// The partition of __consumer_offsets whose leader coordinates the group: as Kafka, the absolute
// value of the hash (0 for INT32_MIN, which has none) modulo the number of partitions.
int32_t PartitionOfGroup(std::string_view group, int32_t partitions = kOffsetsPartitions);

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_GROUP_PARTITION_H_
