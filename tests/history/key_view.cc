#include "tests/history/key_view.h"

#include <algorithm>
#include <map>

namespace conclave::history {
namespace {

using How = Sighting::How;

class Builder {
 public:
  Builder(const History& history, const Eras& eras) : history_(history), eras_(eras) {
    result_.facts.resize(history.keys());
  }

  Views Build() {
    for (const Send& send : history_.Of<Send>()) AddSend(send);
    AddStarts();
    for (const Poll& poll : history_.Of<Poll>()) AddPoll(poll);
    for (const FinalRead& read : history_.Of<FinalRead>()) AddFinalRead(read);
    AddStretches();
    for (auto& [place, view] : views_) {
      Finish(view, place.second);
      result_.views.push_back(std::move(view));
    }
    return std::move(result_);
  }

 private:
  KeyFacts& FactsOf(KeyIndex key) { return result_.facts[static_cast<size_t>(key)]; }

  // nullptr: it spans eras.
  KeyView* ViewOf(KeyIndex key, const Operation& operation) {
    const int era = eras_.Of(operation);
    if (era < 0) return nullptr;
    KeyView& view = views_[{key, era}];
    view.key = key;
    return &view;
  }

  void AddSend(const Send& send) {
    const ValueIndex value = FactsOf(send.key).AddSend(send);
    KeyView* view = ViewOf(send.key, send);
    if (view == nullptr) return;
    view->sends.push_back({&send, value});
    if (!IsAcknowledged(send) || send.offset < 0) return;
    view->sightings.push_back({send.offset, value, How::kAcknowledged, &send});
  }

  void AddStarts() {
    for (const LogStart& start : history_.Of<LogStart>()) {
      if (start.outcome == Outcome::kOk) FactsOf(start.key).AddStart(start.invoke, start.offset);
    }
    for (const FinalRead& read : history_.Of<FinalRead>()) {
      if (read.outcome == Outcome::kOk) FactsOf(read.key).AddStart(read.invoke, read.log_start);
    }
    for (KeyFacts& facts : result_.facts) facts.Sort();
  }

  void AddPoll(const Poll& poll) {
    if (poll.outcome != Outcome::kOk || poll.records.empty()) return;
    KeyView* view = ViewOf(poll.key, poll);
    if (view == nullptr) return;
    view->polls.push_back(&poll);
    AddRecords(*view, poll.records, How::kPolled, poll);
  }

  void AddFinalRead(const FinalRead& read) {
    KeyView* view = read.outcome == Outcome::kOk ? ViewOf(read.key, read) : nullptr;
    if (view == nullptr) return;
    view->final_reads.push_back(&read);
    view->final_start = std::max(view->final_start, read.log_start);
    view->final_from = std::min(view->final_from, read.invoke);
    AddRecords(*view, read.records, How::kReadAtTheEnd, read);
  }

  void AddRecords(KeyView& view, const std::vector<Record>& records, How how, const Operation& by) {
    KeyFacts& facts = FactsOf(view.key);
    for (const Record& record : records) {
      const ValueIndex value = facts.Number(record.value);
      view.sightings.push_back({record.offset, value, how, &by});
      if (value >= view.places.size()) view.places.resize(size_t{value} + value / 2 + 1);
      KeyView::Place& place = view.places[value];
      if (place.offset < 0 || record.offset < place.offset) place.offset = record.offset;
      (how == How::kPolled ? place.polled : place.read_at_the_end) = true;
    }
  }

  // What one process polled of one log, and where it was put, each in its order.
  struct Course {
    std::vector<const Position*> positions;
    std::vector<std::pair<int, const Poll*>> polls;
  };

  void AddStretches() {
    std::map<std::pair<KeyIndex, Name>, Course> courses;
    for (const Position& position : history_.Of<Position>()) {
      courses[{position.key, position.process}].positions.push_back(&position);
    }
    for (const auto& [place, view] : views_) {
      for (const Poll* poll : view.polls) {
        courses[{place.first, poll->process}].polls.emplace_back(place.second, poll);
      }
    }
    for (const auto& [who, course] : courses) AddStretches(who.first, course);
  }

  void AddStretches(KeyIndex key, const Course& course) {
    const Position* put = nullptr;
    Stretch* open = nullptr;
    int open_era = -1;
    auto next = course.positions.begin();
    for (const auto& [era, poll] : course.polls) {
      const Position* before = put;
      for (; next != course.positions.end() && (*next)->sequence < poll->sequence; ++next) {
        put = *next;
      }
      if (open == nullptr || put != before || era != open_era) {
        // Where it was put in another era is not where the log was the same.
        const bool begins = put != before && eras_.Of(*put) == era;
        std::vector<Stretch>& stretches = views_[{key, era}].stretches;
        stretches.push_back({begins ? put : nullptr, {}});
        open = &stretches.back();
        open_era = era;
      }
      open->polls.push_back(poll);
    }
  }

  void Finish(KeyView& view, int era) {
    view.facts = &result_.facts[static_cast<size_t>(view.key)];
    view.last_era = era == eras_.last();
    view.places.resize(view.facts->values());
    std::stable_sort(view.sightings.begin(), view.sightings.end(),
                     [](const Sighting& a, const Sighting& b) { return a.offset < b.offset; });
    view.offsets.reserve(view.sightings.size() / 2);
    for (const Sighting& seen : view.sightings) {
      if (view.offsets.empty() || view.offsets.back() != seen.offset) {
        view.offsets.push_back(seen.offset);
      }
    }
  }

  const History& history_;
  const Eras& eras_;
  Views result_;
  std::map<std::pair<KeyIndex, int>, KeyView> views_;
};

}  // namespace

ValueIndex KeyFacts::Number(std::string_view value) {
  const auto [known, added] = numbers_.try_emplace(value, static_cast<ValueIndex>(values_.size()));
  if (added) {
    values_.push_back(value);
    sends_.push_back(nullptr);
  }
  return known->second;
}

ValueIndex KeyFacts::AddSend(const Send& send) {
  const ValueIndex value = Number(send.value);
  // Sent once more after it had failed, it may well be there.
  if (sends_[value] == nullptr || sends_[value]->outcome == Outcome::kFail) sends_[value] = &send;
  return value;
}

void KeyFacts::Sort() {
  std::sort(starts_.begin(), starts_.end());
  int64_t greatest = 0;
  for (auto& [time, offset] : starts_) offset = greatest = std::max(greatest, offset);
}

int64_t KeyFacts::RemovedBy(Time time) const {
  // A start may have moved long before it was told: the one that was told next counts.
  const auto next = std::partition_point(starts_.begin(), starts_.end(),
                                         [&](const auto& start) { return start.first < time; });
  return next == starts_.end() ? Removed() : next->second;
}

int64_t KeyView::PlaceOf(const Sent& sent) const {
  if (IsAcknowledged(*sent.send) && sent.send->offset >= 0) return sent.send->offset;
  // Of what may be there twice any could be meant.
  return sent.send->idempotent ? places[sent.value].offset : -1;
}

int64_t KeyView::FirstBetween(int64_t from, int64_t to, int64_t removed) const {
  const auto first = std::lower_bound(offsets.begin(), offsets.end(), std::max(from, removed));
  return first == offsets.end() || *first >= to ? -1 : *first;
}

Views MakeViews(const History& history, const Eras& eras) { return Builder(history, eras).Build(); }

}  // namespace conclave::history
