#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/history/rules.h"

namespace conclave::history {
namespace {

using How = Sighting::How;

// Of one gap in a poll that is looked at; it is a violation of rule 6 in any case.
constexpr size_t kMissingLookedAt = 1000;

std::string Described(const Record& record) {
  return absl::StrCat(Findings::Value(record.value), " at offset ", record.offset);
}

void CheckOffsets(const KeyView& view, Findings& findings) {
  const Sighting* first = nullptr;
  for (const Sighting& seen : view.sightings) {
    if (first == nullptr || seen.offset != first->offset) {
      first = &seen;
    } else if (seen.value != first->value) {
      findings.Add(1, findings.Log(view.key), ": at offset ", seen.offset, " is value ",
                   Findings::Value(view.facts->ValueAt(first->value)), ", by ",
                   findings.By(*first->by), ", and value ",
                   Findings::Value(view.facts->ValueAt(seen.value)), ", by ",
                   findings.By(*seen.by));
      first = &seen;
    }
  }
}

// Rule 6, and 7 where `before` is the last record of the poll before.
void CheckStep(int rule, const KeyView& view, const Poll& poll, const Record& before,
               const Record& record, Findings& findings) {
  if (record.offset <= before.offset) {
    findings.Add(rule, findings.Log(view.key), ": ", findings.By(poll), " polled ",
                 Described(record), " after ", Described(before));
    return;
  }
  if (record.offset == before.offset + 1) return;
  const int64_t skipped =
      view.FirstBetween(before.offset + 1, record.offset, view.facts->RemovedBy(poll.complete));
  if (skipped < 0) return;
  findings.Add(rule, findings.Log(view.key), ": ", findings.By(poll), " polled ", Described(record),
               " after ", Described(before), " and skipped offset ", skipped);
}

void CheckBeginning(const KeyView& view, const Stretch& stretch, Findings& findings) {
  if (stretch.begun == nullptr || stretch.begun->from < 0) return;
  const Poll& poll = *stretch.polls.front();
  const Record& first = poll.records.front();
  const int64_t from = stretch.begun->from;
  if (first.offset < from) {
    findings.Add(8, findings.Log(view.key), ": ", findings.By(poll), " polled ", Described(first),
                 ", though it was put at ", from, " (", findings.By(*stretch.begun), ")");
    return;
  }
  const int64_t skipped =
      view.FirstBetween(from, first.offset, view.facts->RemovedBy(poll.complete));
  if (skipped < 0) return;
  findings.Add(8, findings.Log(view.key), ": ", findings.By(poll), " polled ", Described(first),
               " first, though it was put at ", from, " (", findings.By(*stretch.begun),
               "), and skipped offset ", skipped);
}

void CheckOrder(const KeyView& view, Findings& findings) {
  for (const Stretch& stretch : view.stretches) {
    CheckBeginning(view, stretch, findings);
    const Poll* before = nullptr;
    for (const Poll* poll : stretch.polls) {
      const std::vector<Record>& records = poll->records;
      if (before != nullptr) {
        CheckStep(7, view, *poll, before->records.back(), records.front(), findings);
      }
      for (size_t i = 1; i < records.size(); ++i) {
        CheckStep(6, view, *poll, records[i - 1], records[i], findings);
      }
      before = poll;
    }
  }
}

// --- Rule 11

// A value that polls showed at an offset, and the one of them that was over first.
struct Showing {
  const Operation* by = nullptr;
  ValueIndex value = 0;
};

struct Shown {
  int64_t offset = 0;
  Showing first;
  // The first of another value; whatever a poll shows, one of the two is not that.
  Showing other;
};

void Note(const Sighting& seen, Showing& showing) {
  if (showing.by == nullptr || seen.by->complete < showing.by->complete) {
    showing = {seen.by, seen.value};
  }
}

std::vector<Shown> ShownByPolls(const KeyView& view) {
  std::vector<Shown> shown;
  shown.reserve(view.offsets.size());
  for (const Sighting& seen : view.sightings) {
    if (seen.how != How::kPolled) continue;
    if (shown.empty() || shown.back().offset != seen.offset) shown.push_back({seen.offset, {}, {}});
    Shown& at = shown.back();
    if (at.first.by == nullptr || at.first.value == seen.value) {
      Note(seen, at.first);
    } else {
      Note(seen, at.other);
    }
    if (at.other.by != nullptr && at.other.by->complete < at.first.by->complete) {
      std::swap(at.first, at.other);
    }
  }
  return shown;
}

class Later {
 public:
  Later(const KeyView& view, Findings& findings)
      : view_(view), findings_(findings), shown_(ShownByPolls(view)) {}

  void CheckPolls() {
    for (const Poll* poll : view_.polls) {
      const int64_t removed = view_.facts->RemovedBy(poll->complete);
      const Record* before = nullptr;
      for (const Record& record : poll->records) {
        if (before != nullptr) CheckGap(before->offset + 1, record.offset, removed, *poll);
        CheckRecord(record, *poll);
        before = &record;
      }
    }
  }

  // All of them are one read.
  void CheckFinalReads() {
    if (view_.final_reads.empty()) return;
    const FinalRead* first = view_.final_reads.front();
    for (const FinalRead* read : view_.final_reads) {
      if (read->invoke < first->invoke) first = read;
      for (const Record& record : read->records) CheckRecord(record, *read);
    }
    for (const Shown& shown : shown_) {
      if (shown.offset < view_.final_start || shown.first.by->complete >= first->invoke) continue;
      if (IsReadAtTheEnd(shown.offset)) continue;
      Tell(shown.offset, shown.first, *first, "; it is not there in the end");
    }
  }

 private:
  void CheckRecord(const Record& record, const Operation& by) {
    const auto shown = At(record.offset);
    if (shown == shown_.end() || shown->offset != record.offset) return;
    for (const Showing& showing : {shown->first, shown->other}) {
      if (showing.by == nullptr || showing.by->complete >= by.invoke) continue;
      if (view_.facts->ValueAt(showing.value) == record.value) continue;
      return Tell(record.offset, showing, by, "; later " + Described(record) + " was seen");
    }
  }

  void CheckGap(int64_t from, int64_t to, int64_t removed, const Poll& poll) {
    if (from >= to) return;
    size_t looked_at = 0;
    for (auto shown = At(std::max(from, removed));
         shown != shown_.end() && shown->offset < to && looked_at < kMissingLookedAt;
         ++shown, ++looked_at) {
      if (shown->first.by->complete >= poll.invoke) continue;
      Tell(shown->offset, shown->first, poll, "; later it was passed over");
    }
  }

  std::vector<Shown>::const_iterator At(int64_t offset) const {
    return std::partition_point(shown_.begin(), shown_.end(),
                                [&](const Shown& shown) { return shown.offset < offset; });
  }

  bool IsReadAtTheEnd(int64_t offset) const {
    const auto seen =
        std::partition_point(view_.sightings.begin(), view_.sightings.end(),
                             [&](const Sighting& sighting) { return sighting.offset < offset; });
    return std::any_of(seen,
                       std::upper_bound(seen, view_.sightings.end(), offset,
                                        [](int64_t wanted, const Sighting& sighting) {
                                          return wanted < sighting.offset;
                                        }),
                       [](const Sighting& sighting) { return sighting.how == How::kReadAtTheEnd; });
  }

  void Tell(int64_t offset, const Showing& showing, const Operation& by, const std::string& what) {
    findings_.Add(11, findings_.Log(view_.key), ": ", findings_.By(*showing.by), " polled ",
                  Findings::Value(view_.facts->ValueAt(showing.value)), " at offset ", offset, what,
                  " by ", findings_.By(by));
  }

  const KeyView& view_;
  Findings& findings_;
  const std::vector<Shown> shown_;
};

}  // namespace

void CheckPolls(const KeyView& view, Findings& findings) {
  CheckOffsets(view, findings);
  CheckOrder(view, findings);
  Later later(view, findings);
  later.CheckPolls();
  later.CheckFinalReads();
}

}  // namespace conclave::history
