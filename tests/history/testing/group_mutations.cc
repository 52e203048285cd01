#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tests/history/testing/generator.h"
#include "tests/history/testing/mutations.h"
#include "tests/history/testing/scene.h"

namespace conclave::history {
namespace {

// --- Committed offsets

// A read that is not its register's last, with the newest commit that was over before it began.
struct Read {
  CommittedRead* read = nullptr;
  const Commit* newest = nullptr;
};

Read AnyRead(History& history, Random& random, Time min_commits_before) {
  const Name group = history.NameOf("offsets");
  std::vector<Read> reads;
  for (CommittedRead& read : history.Of<CommittedRead>()) {
    if (read.group != group || read.outcome != Outcome::kOk) continue;
    Read one{&read, nullptr};
    Time before = 0;
    for (const Commit& commit : history.Of<Commit>()) {
      if (commit.group != group || commit.outcome != Outcome::kOk) continue;
      if (commit.complete >= read.invoke) continue;
      ++before;
      if (one.newest == nullptr || commit.invoke > one.newest->invoke) one.newest = &commit;
    }
    if (before >= min_commits_before) reads.push_back(one);
  }
  return reads.empty() ? Read() : reads[random.Below(reads.size())];
}

bool Rewind(History& history, Random& random) {
  const Read one = AnyRead(history, random, 30);
  if (one.read == nullptr) return false;
  // To what was committed once, long over by now.
  std::map<int64_t, std::vector<const Commit*>> by_offset;
  for (const Commit& commit : history.Of<Commit>()) {
    if (commit.group == one.read->group) by_offset[commit.offset].push_back(&commit);
  }
  for (const auto& [offset, commits] : by_offset) {
    if (std::all_of(commits.begin(), commits.end(), [&](const Commit* commit) {
          return commit->outcome == Outcome::kOk && commit->complete < one.newest->invoke;
        })) {
      one.read->offset = offset;
      return true;
    }
  }
  return false;
}

bool ForgetCommitted(History& history, Random& random) {
  const Read one = AnyRead(history, random, 1);
  if (one.read == nullptr) return false;
  one.read->offset = -1;
  return true;
}

bool InventCommitted(History& history, Random& random) {
  const Read one = AnyRead(history, random, 0);
  if (one.read == nullptr) return false;
  one.read->offset = 1'000'000;
  return true;
}

// A member takes up where nobody committed, beyond what the members before it polled.
bool SkipInGroup(History& history, Random& random) {
  const Name group = history.NameOf("group");
  Scene scene(history);
  std::map<KeyIndex, int64_t> committed;
  for (const CommittedRead& read : history.Of<CommittedRead>()) {
    if (read.group == group && read.outcome == Outcome::kOk) committed[read.key] = read.offset;
  }
  const auto polled_by_group = [&](const Scene::Found& found) {
    return std::count_if(found.polled.begin(), found.polled.end(),
                         [&](const Scene::Place& place) { return place.poll->group == group; });
  };
  Poll* poll = AnyOf<Poll>(history.Of<Poll>(), random, [&](Poll& candidate) {
    if (candidate.group != group || candidate.records.empty()) return false;
    const std::vector<Poll*> polls = scene.PollsOf(candidate.process, candidate.key);
    const auto next = std::find(polls.begin(), polls.end(), &candidate) + 1;
    // What a process reads on through has no hole but at its end.
    if (next != polls.end() && scene.Before(**next) == &candidate) return false;
    return std::all_of(
        candidate.records.begin(), candidate.records.end(), [&](const Record& record) {
          const Scene::Found* found = scene.At(candidate.key, record.offset);
          return found != nullptr && polled_by_group(*found) == 1 && found->polled.size() > 1 &&
                 record.offset < committed[candidate.key];
        });
  });
  if (poll == nullptr) return false;
  Remove(history, *poll);
  return true;
}

// --- Assignments

bool TwoOwners(History& history, Random& random) {
  std::vector<Assignment>& all = history.Of<Assignment>();
  Assignment* one = AnyOf<Assignment>(all, random, [&](Assignment& assignment) {
    return std::any_of(all.begin(), all.end(), [&](const Assignment& other) {
      return other.epoch == assignment.epoch && other.member != assignment.member &&
             !other.keys.empty();
    });
  });
  if (one == nullptr) return false;
  for (const Assignment& other : all) {
    if (other.epoch != one->epoch || other.member == one->member || other.keys.empty()) continue;
    one->keys.push_back(other.keys.front());
    return true;
  }
  return false;
}

bool NoOwner(History& history, Random& random) {
  std::vector<Assignment>& all = history.Of<Assignment>();
  Assignment* one = AnyOf<Assignment>(all, random, [&](Assignment& assignment) {
    const auto told = std::count_if(all.begin(), all.end(), [&](const Assignment& other) {
      return other.epoch == assignment.epoch;
    });
    const std::vector<GroupEpoch>& epochs = history.Of<GroupEpoch>();
    return !assignment.keys.empty() &&
           std::any_of(epochs.begin(), epochs.end(), [&](const GroupEpoch& epoch) {
             return epoch.epoch == assignment.epoch && std::ssize(epoch.members) == told;
           });
  });
  if (one == nullptr) return false;
  one->keys.pop_back();
  return true;
}

// An assignment that a later epoch left as it was has a key that was given away since.
bool KeptByTwo(History& history, Random&) {
  std::vector<GroupEpoch>& epochs = history.Of<GroupEpoch>();
  Assignment assignment;
  assignment.process = assignment.member = history.NameOf("keeper");
  assignment.outcome = Outcome::kOk;
  assignment.group = epochs.front().group;
  assignment.keys = {epochs.front().keys.front()};
  assignment.complete = 0;
  history.Add(assignment);
  for (GroupEpoch& epoch : epochs) epoch.members.emplace_back(assignment.member, 0);
  return true;
}

bool EpochFalls(History& history, Random& random) {
  std::vector<Assignment>& all = history.Of<Assignment>();
  Assignment* one = AnyOf<Assignment>(all, random, [&](Assignment& assignment) {
    return std::any_of(all.begin(), all.end(), [&](const Assignment& other) {
      return other.member == assignment.member && other.epoch < assignment.epoch;
    });
  });
  if (one == nullptr) return false;
  one->epoch = 0;
  return true;
}

// A coordinator that forgot begins to count anew for whoever comes.
bool EpochOfANewMemberFalls(History& history, Random& random) {
  std::vector<Assignment>& all = history.Of<Assignment>();
  Assignment* one = AnyOf<Assignment>(all, random, [&](Assignment& assignment) {
    return std::any_of(
               all.begin(), all.end(),
               [&](const Assignment& other) { return other.complete < assignment.invoke; }) &&
           std::none_of(all.begin(), all.end(), [&](const Assignment& other) {
             return other.member == assignment.member && other.epoch < assignment.epoch;
           });
  });
  if (one == nullptr) return false;
  one->epoch = 0;
  return true;
}

}  // namespace

std::vector<Mutation> GroupMutations() {
  return {
      {"CommittedOffsetRewound", {12}, Rewind},
      {"CommittedOffsetForgotten", {12}, ForgetCommitted},
      {"CommittedOffsetInvented", {12}, InventCommitted},
      {"GroupSkips", {13}, SkipInGroup},
      {"TwoOwners", {14}, TwoOwners},
      {"NoOwner", {14}, NoOwner},
      {"KeptByTwo", {14}, KeptByTwo},
      {"GroupEpochFalls", {14}, EpochFalls},
      {"GroupEpochOfANewMemberFalls", {14}, EpochOfANewMemberFalls},
  };
}

}  // namespace conclave::history
