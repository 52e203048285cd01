#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/history/rules.h"

namespace conclave::history {
namespace {

// Disjoint ranges of offsets, first and last included, rising.
using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// What somebody read on through.
Ranges ReadThrough(const KeyView& view) {
  Ranges all;
  for (const Stretch& stretch : view.stretches) {
    all.emplace_back(stretch.polls.front()->records.front().offset,
                     stretch.polls.back()->records.back().offset);
  }
  std::sort(all.begin(), all.end());
  Ranges joined;
  for (const auto& [first, last] : all) {
    if (last < first) continue;  // The rules of polls tell.
    if (joined.empty() || joined.back().second < first) {
      joined.emplace_back(first, last);
    } else {
      joined.back().second = std::max(joined.back().second, last);
    }
  }
  return joined;
}

bool Contain(const Ranges& ranges, int64_t offset) {
  const auto after = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const auto& range) { return range.first <= offset; });
  return after != ranges.begin() && std::prev(after)->second >= offset;
}

std::string Told(const Findings& findings, const Send& send, int64_t place) {
  return absl::StrCat("value ", Findings::Value(send.value), ", sent by ", findings.By(send),
                      send.outcome == Outcome::kOk ? " and acknowledged" : "",
                      place >= 0 ? absl::StrCat(", at offset ", place) : "");
}

void CheckDuplicates(const KeyView& view, Findings& findings) {
  constexpr int64_t kNowhere = -1;
  std::vector<int64_t> found(view.facts->values(), kNowhere);
  for (const Sighting& seen : view.sightings) {
    int64_t& before = found[seen.value];
    const Send* send = view.facts->SendOf(seen.value);
    if (before == kNowhere) before = seen.offset;
    if (before == seen.offset || send == nullptr || !send->idempotent) continue;
    findings.Add(2, findings.Log(view.key), ": value ", Findings::Value(send->value), ", sent by ",
                 findings.By(*send), ", is at offset ", before, " and, by ", findings.By(*seen.by),
                 ", at offset ", seen.offset);
    before = seen.offset;
  }
}

void CheckLosses(const KeyView& view, Findings& findings) {
  const Ranges polled = ReadThrough(view);
  for (const Sent& sent : view.sends) {
    const Send& send = *sent.send;
    if (!IsAcknowledged(send)) continue;
    const KeyView::Place& place = view.places[sent.value];
    const int64_t offset = view.PlaceOf(sent);
    if (!place.polled && offset >= view.facts->Removed() && Contain(polled, offset)) {
      findings.Add(3, findings.Log(view.key), ": ", Told(findings, send, offset),
                   ", is in no poll, though what is around it is");
    }
    if (!view.last_era || view.final_reads.empty()) continue;
    if (place.read_at_the_end || send.complete >= view.final_from) continue;
    // Without an offset it could have been among what was removed.
    if (offset < view.final_start && (offset >= 0 || view.final_start > 0)) continue;
    findings.Add(4, findings.Log(view.key), ": ", Told(findings, send, offset),
                 ", is not there in the end");
  }
}

void CheckOrderOfProcesses(const KeyView& view, Findings& findings) {
  struct Greatest {
    int64_t offset = -1;
    const Send* send = nullptr;
  };
  std::map<Name, Greatest> last;
  for (const Sent& sent : view.sends) {
    const int64_t offset = view.PlaceOf(sent);
    if (offset < 0) continue;
    Greatest& before = last[sent.send->process];
    if (offset > before.offset) {
      before = {offset, sent.send};
    } else if (offset < before.offset) {
      findings.Add(9, findings.Log(view.key), ": ", Told(findings, *sent.send, offset),
                   ", is before ", Told(findings, *before.send, before.offset),
                   ", which was sent earlier");
    }
  }
}

// One sweep over time: of all that was acknowledged by then, only the greatest offset matters.
void CheckRealTimeOrder(const KeyView& view, Findings& findings) {
  struct Placed {
    int64_t offset;
    const Send* send;
  };
  std::vector<Placed> invoked, acknowledged;
  for (const Sent& sent : view.sends) {
    const int64_t offset = view.PlaceOf(sent);
    if (offset < 0) continue;
    invoked.push_back({offset, sent.send});
    if (sent.send->outcome == Outcome::kOk) acknowledged.push_back({offset, sent.send});
  }
  std::stable_sort(invoked.begin(), invoked.end(), [](const Placed& a, const Placed& b) {
    return a.send->invoke < b.send->invoke;
  });
  std::stable_sort(acknowledged.begin(), acknowledged.end(), [](const Placed& a, const Placed& b) {
    return a.send->complete < b.send->complete;
  });
  Placed greatest{-1, nullptr};
  size_t next = 0;
  for (const Placed& b : invoked) {
    for (; next < acknowledged.size() && acknowledged[next].send->complete < b.send->invoke;
         ++next) {
      if (acknowledged[next].offset > greatest.offset) greatest = acknowledged[next];
    }
    if (greatest.offset <= b.offset) continue;
    findings.Add(10, findings.Log(view.key), ": ", Told(findings, *b.send, b.offset),
                 ", is before ", Told(findings, *greatest.send, greatest.offset),
                 ", which was over before");
  }
}

// nullptr: it may be there when `by` saw it.
const char* WhyPhantom(const Send* send, const Operation& by) {
  if (send == nullptr) return ", which nobody sent, was seen by ";
  if (send->outcome == Outcome::kFail) return ", of a send that failed, was seen by ";
  if (by.complete < send->invoke) return ", which was not sent yet, was seen by ";
  return nullptr;
}

void CheckPhantoms(const KeyView& view, Findings& findings) {
  std::vector<bool> told(view.facts->values(), false);
  for (const Sighting& seen : view.sightings) {
    if (seen.how == Sighting::How::kAcknowledged || told[seen.value]) continue;
    const Send* send = view.facts->SendOf(seen.value);
    const char* why = WhyPhantom(send, *seen.by);
    if (why == nullptr) continue;
    told[seen.value] = true;
    findings.Add(5, findings.Log(view.key), ": value ",
                 Findings::Value(view.facts->ValueAt(seen.value)),
                 send == nullptr ? "" : ", sent by " + findings.By(*send), why,
                 findings.By(*seen.by), " at offset ", seen.offset);
  }
}

}  // namespace

void CheckSends(const KeyView& view, Findings& findings) {
  CheckDuplicates(view, findings);
  CheckPhantoms(view, findings);
  CheckLosses(view, findings);
  CheckOrderOfProcesses(view, findings);
  CheckRealTimeOrder(view, findings);
}

}  // namespace conclave::history
