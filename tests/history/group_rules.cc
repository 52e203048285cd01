#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/history/rules.h"

namespace conclave::history {
namespace {

// --- Rule 12

constexpr Time kAlways = std::numeric_limits<Time>::min();

// Commits of one offset, by invocation, and the latest time at which any of them up to there was
// over: one that was never answered may take effect at any time.
struct CommitsOf {
  struct Entry {
    Time invoke;
    Time latest_end;
  };
  std::vector<Entry> entries;

  void Add(Time invoke, Time end) {
    const Time before = entries.empty() ? end : entries.back().latest_end;
    entries.push_back({invoke, std::max(before, end)});
  }
  // One began by `time` and was not over by `bound`.
  bool MayHold(Time time, Time bound) const {
    const auto after = std::partition_point(
        entries.begin(), entries.end(), [&](const Entry& entry) { return entry.invoke <= time; });
    return after != entries.begin() && std::prev(after)->latest_end >= bound;
  }
};

class RegisterCheck {
 public:
  RegisterCheck(Name group, KeyIndex key, const Eras& eras, Findings& findings)
      : group_(group), key_(key), eras_(eras), findings_(findings) {}

  void Run(int era, std::vector<const Commit*> commits,
           const std::vector<const CommittedRead*>& reads) {
    std::stable_sort(commits.begin(), commits.end(),
                     [](const Commit* a, const Commit* b) { return a->invoke < b->invoke; });
    std::map<int64_t, CommitsOf> by_offset;
    for (const Commit* commit : commits) {
      by_offset[commit->offset].Add(commit->invoke, EndOf(*commit));
    }
    FindEffects(era, commits, reads, by_offset);
    for (const CommittedRead* read : reads) Check(*read, by_offset);
  }

 private:
  // A commit that had taken effect by `by` at the latest, and began at `invoke`.
  struct Effect {
    Time by;
    Time invoke;
    const Commit* commit;
  };

  static Time EndOf(const Commit& commit) {
    return commit.outcome == Outcome::kOk ? commit.complete : kNever;
  }

  // By the time it had taken effect, with the latest invocation of all up to there.
  void FindEffects(int era, const std::vector<const Commit*>& commits,
                   const std::vector<const CommittedRead*>& reads,
                   const std::map<int64_t, CommitsOf>& by_offset) {
    std::map<int64_t, Time> read_by;
    for (const CommittedRead* read : reads) {
      const auto [it, first] = read_by.try_emplace(read->offset, read->complete);
      if (!first) it->second = std::min(it->second, read->complete);
    }
    for (const Commit* commit : commits) {
      // What another era committed may be lost.
      if (eras_.Of(*commit) != era) continue;
      Time by = EndOf(*commit);
      // What was read had been committed, if it is known by which commit.
      const auto read = read_by.find(commit->offset);
      if (read != read_by.end() && by_offset.at(commit->offset).entries.size() == 1) {
        by = std::min(by, read->second);
      }
      if (by != kNever) effects_.push_back({by, commit->invoke, commit});
    }
    std::stable_sort(effects_.begin(), effects_.end(),
                     [](const Effect& a, const Effect& b) { return a.by < b.by; });
    for (size_t i = 1; i < effects_.size(); ++i) {
      if (effects_[i - 1].invoke <= effects_[i].invoke) continue;
      effects_[i].invoke = effects_[i - 1].invoke;
      effects_[i].commit = effects_[i - 1].commit;
    }
  }

  void Check(const CommittedRead& read, const std::map<int64_t, CommitsOf>& by_offset) {
    const auto after =
        std::partition_point(effects_.begin(), effects_.end(),
                             [&](const Effect& effect) { return effect.by < read.invoke; });
    const Effect* newest = after == effects_.begin() ? nullptr : &*std::prev(after);
    if (read.offset < 0 && newest == nullptr) return;
    const auto commits = by_offset.find(read.offset);
    if (commits != by_offset.end() &&
        commits->second.MayHold(read.complete, newest == nullptr ? kAlways : newest->invoke)) {
      return;
    }
    findings_.Add(12, findings_.Log(key_), ", group ", findings_.Named(group_), ": ",
                  findings_.By(read), " read ",
                  read.offset < 0 ? "that none is committed"
                                  : absl::StrCat("the committed offset ", read.offset),
                  newest == nullptr
                      ? ", which nobody had tried to commit"
                      : absl::StrCat(", after ", newest->commit->offset, " was committed by ",
                                     findings_.By(*newest->commit)));
  }

  const Name group_;
  const KeyIndex key_;
  const Eras& eras_;
  Findings& findings_;
  std::vector<Effect> effects_;
};

using GroupAndKey = std::pair<Name, KeyIndex>;

void CheckRegisters(const History& history, const Eras& eras, Findings& findings) {
  std::map<GroupAndKey, std::vector<const Commit*>> commits;
  for (const Commit& commit : history.Of<Commit>()) {
    if (commit.outcome == Outcome::kFail) continue;
    commits[{commit.group, commit.key}].push_back(&commit);
  }
  std::map<std::pair<GroupAndKey, int>, std::vector<const CommittedRead*>> reads;
  for (const CommittedRead& read : history.Of<CommittedRead>()) {
    const int era = eras.Of(read);
    if (read.outcome != Outcome::kOk || era < 0) continue;
    reads[{{read.group, read.key}, era}].push_back(&read);
  }
  for (const auto& [where, of_one] : reads) {
    const auto& [register_of, era] = where;
    RegisterCheck(register_of.first, register_of.second, eras, findings)
        .Run(era, commits[register_of], of_one);
  }
}

// --- Rule 13

struct Progress {
  std::vector<int64_t> polled;
  // Where the group began to read; kNever: nowhere.
  int64_t base = kNever;
  const CommittedRead* last_read = nullptr;
};

std::map<GroupAndKey, Progress> ProgressOfGroups(const History& history) {
  std::map<GroupAndKey, Progress> groups;
  for (const Poll& poll : history.Of<Poll>()) {
    if (poll.group == Name::kNone || poll.outcome != Outcome::kOk) continue;
    Progress& progress = groups[{poll.group, poll.key}];
    for (const Record& record : poll.records) progress.polled.push_back(record.offset);
  }
  for (const Position& position : history.Of<Position>()) {
    if (position.group == Name::kNone || position.from < 0) continue;
    int64_t& base = groups[{position.group, position.key}].base;
    base = std::min(base, position.from);
  }
  for (const CommittedRead& read : history.Of<CommittedRead>()) {
    const auto group = groups.find({read.group, read.key});
    if (group == groups.end() || read.outcome != Outcome::kOk) continue;
    const CommittedRead*& last = group->second.last_read;
    if (last == nullptr || read.invoke >= last->invoke) last = &read;
  }
  for (auto& [where, progress] : groups) {
    std::sort(progress.polled.begin(), progress.polled.end());
    if (!progress.polled.empty()) progress.base = std::min(progress.base, progress.polled.front());
  }
  return groups;
}

void CheckSkips(const History& history, const Views& views, Findings& findings) {
  std::map<KeyIndex, const KeyView*> last_era;
  for (const KeyView& view : views.views) {
    if (view.last_era) last_era[view.key] = &view;
  }
  for (const auto& [where, progress] : ProgressOfGroups(history)) {
    const auto view = last_era.find(where.second);
    if (progress.last_read == nullptr || view == last_era.end()) continue;
    const std::vector<int64_t>& offsets = view->second->offsets;
    const int64_t from = std::max(progress.base, view->second->facts->Removed());
    auto polled = progress.polled.begin();
    for (auto offset = std::lower_bound(offsets.begin(), offsets.end(), from);
         offset != offsets.end() && *offset < progress.last_read->offset; ++offset) {
      while (polled != progress.polled.end() && *polled < *offset) ++polled;
      if (polled != progress.polled.end() && *polled == *offset) continue;
      findings.Add(13, findings.Log(where.second), ", group ", findings.Named(where.first),
                   ": offset ", *offset, " was polled by no member, and ",
                   progress.last_read->offset, " is committed, as ",
                   findings.By(*progress.last_read), " read");
    }
  }
}

// --- Rule 14

void CheckDisjoint(const History& history, Findings& findings) {
  std::map<std::tuple<Name, int64_t, KeyIndex>, const Assignment*> owners;
  for (const Assignment& assignment : history.Of<Assignment>()) {
    if (assignment.outcome != Outcome::kOk) continue;
    for (const KeyIndex key : assignment.keys) {
      const auto [owner, first] =
          owners.try_emplace({assignment.group, assignment.epoch, key}, &assignment);
      if (first || owner->second->member == assignment.member) continue;
      findings.Add(14, findings.Log(key), ", group ", findings.Named(assignment.group),
                   ": in epoch ", assignment.epoch, " assigned to ",
                   findings.Named(owner->second->member), ", by ", findings.By(*owner->second),
                   ", and to ", findings.Named(assignment.member), ", by ",
                   findings.By(assignment));
    }
  }
}

using MemberEpoch = std::tuple<Name, Name, int64_t>;

// Between members, whose assignments are of different epochs.
void CheckCover(const GroupEpoch& epoch, const std::map<MemberEpoch, const Assignment*>& told,
                Findings& findings) {
  std::map<KeyIndex, const Assignment*> owners;
  for (const auto& [member, since] : epoch.members) {
    const auto assignment = told.find({epoch.group, member, since});
    if (assignment == told.end()) return;  // Not all that members were told is known.
    for (const KeyIndex key : assignment->second->keys) {
      const auto [owner, first] = owners.try_emplace(key, assignment->second);
      if (first || owner->second->epoch == since) continue;
      findings.Add(14, findings.Log(key), ", group ", findings.Named(epoch.group), ": in epoch ",
                   epoch.epoch, " assigned to ", findings.Named(owner->second->member),
                   " since epoch ", owner->second->epoch, " and to ", findings.Named(member),
                   " since epoch ", since);
    }
  }
  for (const KeyIndex key : epoch.keys) {
    if (epoch.members.empty() || owners.count(key) > 0) continue;
    findings.Add(14, findings.Log(key), ", group ", findings.Named(epoch.group), ": in epoch ",
                 epoch.epoch, " assigned to none of ", epoch.members.size(), " members, as ",
                 findings.By(epoch), " saw");
  }
}

void CheckCover(const History& history, Findings& findings) {
  std::map<MemberEpoch, const Assignment*> told;
  for (const Assignment& assignment : history.Of<Assignment>()) {
    if (assignment.outcome != Outcome::kOk) continue;
    told[{assignment.group, assignment.member, assignment.epoch}] = &assignment;
  }
  for (const GroupEpoch& epoch : history.Of<GroupEpoch>()) {
    if (epoch.outcome == Outcome::kOk) CheckCover(epoch, told, findings);
  }
}

// Told that a lower epoch is the group's, after a higher one had been told to whomever.
void CheckEpochs(const History& history, Findings& findings) {
  std::map<Name, std::vector<const Assignment*>> groups;
  std::map<std::pair<Name, Name>, const Assignment*> of_members;
  const auto tell = [&](const Assignment& later, const Assignment& before) {
    findings.Add(14, "group ", findings.Named(later.group), ": epoch ", later.epoch,
                 " was told to ", findings.Named(later.member), ", by ", findings.By(later),
                 ", after epoch ", before.epoch, " to ", findings.Named(before.member), ", by ",
                 findings.By(before));
  };
  for (const Assignment& assignment : history.Of<Assignment>()) {
    if (assignment.outcome != Outcome::kOk) continue;
    groups[assignment.group].push_back(&assignment);
    const Assignment*& before = of_members[{assignment.group, assignment.member}];
    if (before != nullptr && before->complete >= assignment.invoke &&
        assignment.epoch < before->epoch) {
      tell(assignment, *before);
    }
    if (before == nullptr || assignment.epoch >= before->epoch) before = &assignment;
  }
  for (auto& [group, by_invoke] : groups) {
    std::vector<const Assignment*> by_end = by_invoke;
    std::stable_sort(by_invoke.begin(), by_invoke.end(),
                     [](const auto* a, const auto* b) { return a->invoke < b->invoke; });
    std::stable_sort(by_end.begin(), by_end.end(),
                     [](const auto* a, const auto* b) { return a->complete < b->complete; });
    const Assignment* greatest = nullptr;
    size_t next = 0;
    for (const Assignment* later : by_invoke) {
      for (; next < by_end.size() && by_end[next]->complete < later->invoke; ++next) {
        if (greatest == nullptr || by_end[next]->epoch > greatest->epoch) greatest = by_end[next];
      }
      if (greatest != nullptr && later->epoch < greatest->epoch) tell(*later, *greatest);
    }
  }
}

}  // namespace

void CheckGroups(const History& history, const Eras& eras, const Views& views, Findings& findings) {
  CheckRegisters(history, eras, findings);
  CheckSkips(history, views, findings);
  CheckDisjoint(history, findings);
  CheckCover(history, findings);
  CheckEpochs(history, findings);
}

}  // namespace conclave::history
