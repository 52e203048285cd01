#ifndef CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLUSTER_H_
#define CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLUSTER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/history/history.h"

namespace conclave::history {

// Runs actions in the order of their times.
class Agenda {
 public:
  Time now() const { return now_; }
  void At(Time time, std::function<void()> action) {
    actions_.push({std::max(time, now_), ++last_, std::move(action)});
  }
  void Run() {
    while (!actions_.empty()) {
      Entry next = actions_.top();
      actions_.pop();
      now_ = next.time;
      next.action();
    }
  }

 private:
  struct Entry {
    Time time;
    uint64_t number;
    std::function<void()> action;

    bool operator<(const Entry& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };
  std::priority_queue<Entry> actions_;
  Time now_ = 0;
  uint64_t last_ = 0;
};

// The state of a cluster in which everything happens at once and nothing goes wrong.
struct ModelCluster {
  struct Log {
    KeyIndex key = KeyIndex::kNone;
    int64_t start = 0;
    std::vector<std::string> values;
    // Of each leadership: its leader; the epoch is its place.
    std::vector<int64_t> leaders;
    // By group.
    std::map<Name, int64_t> committed;
    // The member of the group that owns it; kNone: nobody.
    Name owner = Name::kNone;

    int64_t end() const { return static_cast<int64_t>(values.size()); }
  };

  explicit ModelCluster(uint64_t seed) : random(seed) {}

  Time Soon(int64_t max) { return agenda.now() + random.Between(1, max); }
  Log& AnyLog() { return logs[random.Below(logs.size())]; }

  Random random;
  Agenda agenda;
  History history;
  std::vector<Log> logs;
  // By term.
  std::vector<int64_t> controllers;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLUSTER_H_
