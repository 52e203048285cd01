#ifndef CONCLAVE_COMMON_METADATA_DELETED_TOPICS_H_
#define CONCLAVE_COMMON_METADATA_DELETED_TOPICS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

#include "common/types/ids.h"

namespace conclave {

// The ids of the topics deleted last, so that a creation which is still being repeated somewhere
// does not bring one of them back. Older ones are forgotten: a repetition ends with its deadline,
// within which nobody deletes as many. A value type; copying is linear.
class DeletedTopics {
 public:
  static constexpr size_t kMaxRemembered = 10'000;

  bool Contains(TopicId id) const { return ids_.contains(id); }
  // In the order of their deletion, the oldest first.
  const std::deque<TopicId>& in_order() const { return order_; }

  // `id` is not in it. Returns the one that is forgotten for it, if any.
  std::optional<TopicId> Add(TopicId id) {
    ids_.insert(id);
    order_.push_back(id);
    if (order_.size() <= kMaxRemembered) return std::nullopt;
    const TopicId oldest = order_.front();
    order_.pop_front();
    ids_.erase(oldest);
    return oldest;
  }

  // Undoes the last Add, which returned `forgotten`.
  void TakeBack(std::optional<TopicId> forgotten) {
    ids_.erase(order_.back());
    order_.pop_back();
    if (!forgotten) return;
    ids_.insert(*forgotten);
    order_.push_front(*forgotten);
  }

  friend bool operator==(const DeletedTopics& a, const DeletedTopics& b) {
    return a.order_ == b.order_;
  }

 private:
  std::deque<TopicId> order_;
  std::set<TopicId> ids_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_METADATA_DELETED_TOPICS_H_
