#ifndef CONCLAVE_TESTS_HISTORY_TESTING_SCENE_H_
#define CONCLAVE_TESTS_HISTORY_TESTING_SCENE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/history/history.h"

namespace conclave::history {

// Finds its way in a generated history that is about to be mutated. Adding operations ends it.
class Scene {
 public:
  explicit Scene(History& history);

  // A record of a poll.
  struct Place {
    Poll* poll = nullptr;
    size_t index = 0;

    Record& record() const { return poll->records[index]; }
    // Neither the poll's first nor its last, nor beside them.
    bool IsInside() const { return index >= 2 && index + 3 <= poll->records.size(); }
  };

  // A record that is there in the end, and what is known of it.
  struct Found {
    KeyIndex key = KeyIndex::kNone;
    int64_t offset = 0;
    Record* read = nullptr;
    FinalRead* final_read = nullptr;
    Send* sent = nullptr;
    std::vector<Place> polled;

    bool IsAcknowledged() const {
      return sent->outcome == Outcome::kOk && sent->acks == Acks::kAll;
    }
    // As long as everything is there once.
    bool IsSafe() const { return IsAcknowledged() && sent->idempotent; }
    // Some poll other than `poll` was over before that began.
    bool WasShownBefore(const Poll& poll) const;
  };

  // Of the logs from which nothing is removed, by log and offset.
  std::vector<Found>& records() { return records_; }
  // nullptr: there is none.
  Found* At(KeyIndex key, int64_t offset);

  // Of a process, on a log, in its order.
  std::vector<Poll*> PollsOf(Name process, KeyIndex key);
  // It is the next of its process on its log, with nothing in between; nullptr: none.
  Poll* Before(const Poll& poll);

 private:
  History& history_;
  std::vector<Found> records_;
  std::map<std::pair<KeyIndex, int64_t>, size_t> places_;
};

// One of those that pass; nullptr: none does.
template <class T>
T* AnyOf(std::vector<T>& all, Random& random, const std::function<bool(T&)>& pass) {
  std::vector<T*> passed;
  for (T& one : all) {
    if (pass(one)) passed.push_back(&one);
  }
  return passed.empty() ? nullptr : passed[random.Below(passed.size())];
}

template <class T>
void Remove(History& history, const T& operation) {
  std::vector<T>& all = history.Of<T>();
  all.erase(all.begin() + (&operation - all.data()));
}

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TESTING_SCENE_H_
