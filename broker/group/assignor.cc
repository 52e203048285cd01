#include "broker/group/assignor.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace conclave::group {
namespace {

using Members = std::vector<const std::string*>;

// In the order of ids.
Members SubscribersOf(const AssignmentProblem& problem, TopicId topic) {
  Members subscribers;
  for (const auto& [id, member] : problem.members) {
    if (member.topics.contains(topic)) subscribers.push_back(&id);
  }
  return subscribers;
}

Assignment NothingYet(const AssignmentProblem& problem) {
  Assignment assignment;
  for (const auto& [id, member] : problem.members) assignment[id];
  return assignment;
}

Assignment AssignRanges(const AssignmentProblem& problem) {
  Assignment assignment = NothingYet(problem);
  for (const auto& [topic, partitions] : problem.topics) {
    const Members subscribers = SubscribersOf(problem, topic);
    if (subscribers.empty()) continue;
    const auto count = static_cast<int32_t>(subscribers.size());
    int32_t next = 0;
    for (int32_t i = 0; i < count; ++i) {
      const int32_t share = partitions / count + (i < partitions % count ? 1 : 0);
      for (int32_t n = 0; n < share; ++n) {
        assignment[*subscribers[static_cast<size_t>(i)]].insert({topic, PartitionIndex(next++)});
      }
    }
  }
  return assignment;
}

// The member, if one of the subscribers, that was to hold the partition; the first, should several.
std::map<PartitionId, const std::string*> HoldersBefore(const AssignmentProblem& problem) {
  std::map<PartitionId, const std::string*> holders;
  for (const auto& [id, member] : problem.members) {
    for (const PartitionId& partition : member.before) {
      const auto topic = problem.topics.find(partition.topic);
      const bool exists = topic != problem.topics.end() && partition.index.value() < topic->second;
      if (exists && member.topics.contains(partition.topic)) holders.emplace(partition, &id);
    }
  }
  return holders;
}

// One topic over its subscribers: each has the floor of an even share or one more. Those that get
// one more are those with the fewest partitions so far, and among these those that had it.
void SpreadTopic(TopicId topic, int32_t partitions, const Members& subscribers,
                 const std::map<PartitionId, const std::string*>& before, Assignment& assignment) {
  struct Share {
    const std::string* member;
    std::vector<PartitionId> had;
    size_t quota = 0;
  };
  std::vector<Share> shares;
  for (const std::string* member : subscribers) shares.push_back({member, {}, 0});
  std::vector<PartitionId> open;
  for (int32_t i = 0; i < partitions; ++i) {
    const PartitionId id{topic, PartitionIndex(i)};
    const auto holder = before.find(id);
    if (holder == before.end()) {
      open.push_back(id);
      continue;
    }
    std::find_if(shares.begin(), shares.end(), [&](const Share& share) {
      return share.member == holder->second;
    })->had.push_back(id);
  }
  const size_t floor = static_cast<size_t>(partitions) / shares.size();
  size_t extra = static_cast<size_t>(partitions) % shares.size();
  std::vector<Share*> order;
  for (Share& share : shares) order.push_back(&share);
  std::stable_sort(order.begin(), order.end(), [&](const Share* a, const Share* b) {
    const size_t total_a = assignment[*a->member].size();
    const size_t total_b = assignment[*b->member].size();
    if (total_a != total_b) return total_a < total_b;
    return a->had.size() > b->had.size();
  });
  for (Share* share : order) {
    share->quota = floor + (extra > 0 ? 1 : 0);
    if (extra > 0) --extra;
  }
  for (Share& share : shares) {
    PartitionSet& held = assignment[*share.member];
    for (size_t i = 0; i < share.had.size(); ++i) {
      if (i < share.quota) {
        held.insert(share.had[i]);
      } else {
        open.push_back(share.had[i]);
      }
    }
    share.quota -= std::min(share.quota, share.had.size());
  }
  auto next = open.begin();
  for (Share& share : shares) {
    for (; share.quota > 0; --share.quota) assignment[*share.member].insert(*next++);
  }
}

Assignment AssignUniformly(const AssignmentProblem& problem) {
  Assignment assignment = NothingYet(problem);
  const auto before = HoldersBefore(problem);
  for (const auto& [topic, partitions] : problem.topics) {
    const Members subscribers = SubscribersOf(problem, topic);
    if (!subscribers.empty()) SpreadTopic(topic, partitions, subscribers, before, assignment);
  }
  return assignment;
}

// Keeps what was, gives what is open to whoever has least, then moves single partitions from those
// with many to those with few while that makes the two more alike.
class StickyAssignment {
 public:
  explicit StickyAssignment(const AssignmentProblem& problem) : assignment_(NothingYet(problem)) {
    const auto before = HoldersBefore(problem);
    for (const auto& [partition, member] : before) assignment_[*member].insert(partition);
    std::vector<std::pair<size_t, PartitionId>> open;
    for (const auto& [topic, partitions] : problem.topics) {
      subscribers_[topic] = SubscribersOf(problem, topic);
      if (subscribers_[topic].empty()) continue;
      for (int32_t i = 0; i < partitions; ++i) {
        const PartitionId id{topic, PartitionIndex(i)};
        if (!before.contains(id)) open.emplace_back(subscribers_[topic].size(), id);
      }
    }
    // Those with the fewest who could take them first.
    std::sort(open.begin(), open.end());
    for (const auto& [choices, partition] : open) {
      assignment_[*Least(subscribers_[partition.topic])].insert(partition);
    }
  }

  Assignment Balanced() && {
    while (MoveOne()) {
    }
    return std::move(assignment_);
  }

 private:
  size_t Load(const std::string& member) const { return assignment_.at(member).size(); }

  const std::string* Least(const Members& members) const {
    return *std::min_element(
        members.begin(), members.end(),
        [this](const std::string* a, const std::string* b) { return Load(*a) < Load(*b); });
  }

  // From the fullest member that has one to give to a member with at least two fewer.
  bool MoveOne() {
    std::vector<const std::string*> fullest;
    for (const auto& [member, partitions] : assignment_) fullest.push_back(&member);
    std::stable_sort(
        fullest.begin(), fullest.end(),
        [this](const std::string* a, const std::string* b) { return Load(*a) > Load(*b); });
    for (const std::string* giver : fullest) {
      const PartitionSet& held = assignment_[*giver];
      std::optional<PartitionId> gift;
      const std::string* taker = nullptr;
      for (auto it = held.rbegin(); it != held.rend();) {
        const std::string* least = Least(subscribers_[it->topic]);
        if (Load(*least) + 2 <= Load(*giver) && (!taker || Load(*least) < Load(*taker))) {
          gift = *it;
          taker = least;
        }
        // One partition of a topic is as good as another.
        const TopicId topic = it->topic;
        while (it != held.rend() && it->topic == topic) ++it;
      }
      if (!gift) continue;
      assignment_[*giver].erase(*gift);
      assignment_[*taker].insert(*gift);
      return true;
    }
    return false;
  }

  std::map<TopicId, Members> subscribers_;
  Assignment assignment_;
};

}  // namespace

std::optional<Assignor> ParseAssignor(std::string_view name) {
  if (name.empty() || name == "uniform") return Assignor::kUniform;
  if (name == "range") return Assignor::kRange;
  if (name == "sticky") return Assignor::kSticky;
  return std::nullopt;
}

const char* AssignorName(Assignor assignor) {
  switch (assignor) {
    case Assignor::kUniform:
      return "uniform";
    case Assignor::kRange:
      return "range";
    case Assignor::kSticky:
      return "sticky";
  }
  return "";
}

Assignment Assign(Assignor assignor, const AssignmentProblem& problem) {
  switch (assignor) {
    case Assignor::kUniform:
      return AssignUniformly(problem);
    case Assignor::kRange:
      return AssignRanges(problem);
    case Assignor::kSticky:
      return StickyAssignment(problem).Balanced();
  }
  return {};
}

}  // namespace conclave::group
