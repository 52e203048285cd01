#ifndef CONCLAVE_COMMON_METADATA_DELTA_H_
#define CONCLAVE_COMMON_METADATA_DELTA_H_

#include <map>
#include <set>
#include <string>

#include "common/metadata/partition.h"
#include "common/types/ids.h"

namespace conclave {

class MetadataImage;

// What differs between an older image and a newer one: names alone, the newer image has the values.
struct MetadataDelta {
  bool cluster_changed = false;
  // Registered, changed or unregistered.
  std::set<BrokerId> brokers;
  // With their names.
  std::map<TopicId, std::string> created_topics;
  // With their names; their partitions and settings went with them and are not named again.
  std::map<TopicId, std::string> deleted_topics;
  // Created or changed.
  std::set<PartitionId> partitions;
  // Topics whose own settings changed.
  std::set<TopicId> topic_configs;
  // "" for the default of all brokers.
  std::set<std::string> broker_configs;
  bool producer_ids_changed = false;

  bool empty() const;

  void TopicCreated(TopicId id, std::string name);
  // Forgets what was said of the topic; a topic created in this delta leaves no trace.
  void TopicDeleted(TopicId id, std::string name);
  // `later` begins where this one ends.
  void Merge(const MetadataDelta& later);

  friend bool operator==(const MetadataDelta&, const MetadataDelta&) = default;
};

// For a follower that was sent a whole image while it held an older one.
MetadataDelta DeltaBetween(const MetadataImage& before, const MetadataImage& after);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_DELTA_H_
