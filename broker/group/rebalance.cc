#include "broker/group/rebalance.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "broker/group/assignor.h"

namespace conclave::group {
namespace {

// What most members ask for; of several such the first by the enumeration's order.
Assignor ChosenAssignor(const Group& group) {
  std::map<Assignor, int> votes;
  for (const auto& [id, member] : group.members) ++votes[member.description->assignor];
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? Assignor::kUniform : most->first;
}

Assignment DrawTargets(const Group& group, const TopicView& topics) {
  AssignmentProblem problem;
  for (const auto& [id, member] : group.members) {
    Subscriber& subscriber = problem.members[id];
    subscriber.before = member.target;
    for (const std::string& name : member.description->topics) {
      const TopicInfo* topic = topics.Find(name);
      if (topic == nullptr) continue;
      subscriber.topics.insert(topic->id);
      problem.topics[topic->id] = topic->partitions;
    }
  }
  return Assign(ChosenAssignor(group), problem);
}

// What of the member's set can change now.
Member Step(const Member& member, const std::map<PartitionId, std::string>& holders,
            GroupEpoch epoch) {
  Member next = member;
  for (auto& [partition, held] : next.held) {
    if (!held.IsRevoked() && !member.target.contains(partition)) held.revoked = epoch;
  }
  for (const PartitionId& partition : member.target) {
    if (!holders.contains(partition)) next.held[partition] = {epoch, GroupEpoch(0)};
  }
  if (next.held != member.held) next.epoch = epoch;
  return next;
}

}  // namespace

GroupEpoch Transaction::Raise(const std::string& group, std::optional<std::string> reason) {
  if (const auto raised = raised_.find(group); raised != raised_.end()) return raised->second;
  Group header;
  if (const Group* now = image_.Find(group); now != nullptr) {
    header.epoch = now->epoch;
    header.reason = now->reason;
    if (now->members.empty()) header.empty_since = now->empty_since ? now->empty_since : wall_;
  } else {
    header.empty_since = wall_;
  }
  ++header.epoch;
  if (reason) header.reason = *std::move(reason);
  raised_[group] = header.epoch;
  Put(RecordOfGroup(group, header));
  return header.epoch;
}

void Rebalance(Transaction& transaction, const std::string& group, const TopicView& topics,
               const std::string& reason) {
  transaction.Raise(group, reason);
  const Group& now = *transaction.image().Find(group);
  for (auto& [member, target] : DrawTargets(now, topics)) {
    if (now.members.at(member).target == target) continue;
    transaction.Put(RecordOfTarget(group, member, target));
  }
  Reconcile(transaction, group);
}

bool TargetsAreOutdated(const GroupImage& image, const std::string& group,
                        const TopicView& topics) {
  const Group& now = *image.Find(group);
  for (const auto& [member, target] : DrawTargets(now, topics)) {
    if (now.members.at(member).target != target) return true;
  }
  return false;
}

void Reconcile(Transaction& transaction, const std::string& group) {
  const Group* now = transaction.image().Find(group);
  std::map<PartitionId, std::string> holders;
  for (const auto& [id, member] : now->members) {
    for (const auto& [partition, held] : member.held) holders.emplace(partition, id);
  }
  // A step never takes what another could be given in the same pass: targets are disjoint.
  std::map<std::string, Member> steps;
  for (const auto& [id, member] : now->members) {
    Member next = Step(member, holders, now->epoch + 1);
    if (next.held != member.held) steps.emplace(id, std::move(next));
  }
  if (steps.empty()) return;
  const GroupEpoch epoch = transaction.Raise(group);
  for (const auto& [id, planned] : steps) {
    const Member& member = transaction.image().Find(group)->members.at(id);
    transaction.Put(RecordOfHolding(group, id, Step(member, holders, epoch)));
    transaction.MarkChanged(group, id);
  }
}

bool GiveUp(Transaction& transaction, const std::string& group, const std::string& member,
            GroupEpoch epoch, const PartitionSet& owned) {
  Member next = *transaction.image().FindMember(group, member);
  for (auto it = next.held.begin(); it != next.held.end();) {
    const auto& [partition, held] = *it;
    const bool given_up = held.IsRevoked() && held.revoked <= epoch && !owned.contains(partition);
    it = given_up ? next.held.erase(it) : std::next(it);
  }
  if (next.held == transaction.image().FindMember(group, member)->held) return false;
  transaction.Put(RecordOfHolding(group, member, next));
  return true;
}

void RemoveMember(Transaction& transaction, const std::string& group, const std::string& member) {
  transaction.Put(EndOfMember(group, member));
  transaction.Put(EndOfTarget(group, member));
  transaction.Put(EndOfHolding(group, member));
}

}  // namespace conclave::group
