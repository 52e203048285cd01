#ifndef CONCLAVE_COMMON_METADATA_TOPIC_H_
#define CONCLAVE_COMMON_METADATA_TOPIC_H_

#include <map>
#include <string>
#include <vector>

#include "common/metadata/partition.h"
#include "common/types/ids.h"

namespace conclave {

// Settings given, by key; what is absent has its default.
using ConfigMap = std::map<std::string, std::string>;

struct Topic {
  TopicId id;
  std::string name;
  // By number, from 0 without gaps.
  std::vector<Partition> partitions;
  ConfigMap configs;

  friend bool operator==(const Topic&, const Topic&) = default;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_TOPIC_H_
