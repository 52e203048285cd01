#ifndef CONCLAVE_CLIENT_BASE_TOPIC_PARTITION_H_
#define CONCLAVE_CLIENT_BASE_TOPIC_PARTITION_H_

#include <compare>
#include <ostream>
#include <string>

#include "common/types/ids.h"

namespace conclave {

// A partition as people name it.
struct TopicPartition {
  std::string topic;
  PartitionIndex partition;

  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

// "topic-partition", as the broker's folders are named.
inline std::string ToString(const TopicPartition& partition) {
  return partition.topic + "-" + std::to_string(partition.partition.value());
}

inline std::ostream& operator<<(std::ostream& out, const TopicPartition& partition) {
  return out << ToString(partition);
}

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_BASE_TOPIC_PARTITION_H_
