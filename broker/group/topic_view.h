#ifndef CONCLAVE_BROKER_GROUP_TOPIC_VIEW_H_
#define CONCLAVE_BROKER_GROUP_TOPIC_VIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/types/ids.h"

namespace conclave::group {

struct TopicInfo {
  TopicId id;
  int32_t partitions = 0;

  friend bool operator==(const TopicInfo&, const TopicInfo&) = default;
};

// What the metadata says of topics, as far as groups care.
class TopicView {
 public:
  struct Named {
    std::string name;
    int32_t partitions = 0;
  };

  // nullopt: there is none of this name any more.
  void Set(const std::string& name, std::optional<TopicInfo> topic) {
    if (const auto before = by_name_.find(name); before != by_name_.end()) {
      by_id_.erase(before->second.id);
      by_name_.erase(before);
    }
    if (!topic) return;
    by_name_[name] = *topic;
    by_id_[topic->id] = {name, topic->partitions};
  }

  // nullptr: there is none.
  const TopicInfo* Find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }
  const Named* Find(TopicId id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, TopicInfo> by_name_;
  std::map<TopicId, Named> by_id_;
};

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_TOPIC_VIEW_H_
