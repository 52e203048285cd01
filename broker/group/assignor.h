#ifndef CONCLAVE_BROKER_GROUP_ASSIGNOR_H_
#define CONCLAVE_BROKER_GROUP_ASSIGNOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/metadata/partition.h"
#include "common/types/ids.h"

// Who is to hold what. Pure functions of their input: the same on every coordinator, and what they
// give, given back as what was before, they give again.
namespace conclave::group {

enum class Assignor {
  // Every topic spread evenly over its subscribers, and their totals too; of what that leaves open,
  // as little as possible moves.
  kUniform,
  // Each topic in contiguous ranges, in the order of member ids: partitions of the same number of
  // topics that the same members subscribe to meet at one member.
  kRange,
  // Totals as even as subscriptions allow, and nothing else moves.
  kSticky,
};

// "uniform", "range" or "sticky"; empty is the default, uniform. nullopt for anything else.
std::optional<Assignor> ParseAssignor(std::string_view name);
const char* AssignorName(Assignor assignor);

using PartitionSet = std::set<PartitionId>;

struct Subscriber {
  std::set<TopicId> topics;
  // What it was to hold so far.
  PartitionSet before;
};

// Members by id, and topics with their numbers of partitions. Topics that nobody subscribes to are
// not assigned; topics that are not in `topics` do not exist.
struct AssignmentProblem {
  std::map<std::string, Subscriber> members;
  std::map<TopicId, int32_t> topics;
};

using Assignment = std::map<std::string, PartitionSet>;

// Every member is in the result. Each partition of each subscribed topic is given to one of its
// subscribers.
Assignment Assign(Assignor assignor, const AssignmentProblem& problem);

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_ASSIGNOR_H_
