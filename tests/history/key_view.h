#ifndef CONCLAVE_TESTS_HISTORY_KEY_VIEW_H_
#define CONCLAVE_TESTS_HISTORY_KEY_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/history/eras.h"
#include "tests/history/history.h"

// A history as the rules of one log look at it. Everything points into the history.
namespace conclave::history {

// Number of a value within its log.
using ValueIndex = uint32_t;

// What holds of one log at all times: who sent what, and what it may have removed.
class KeyFacts {
 public:
  ValueIndex Number(std::string_view value);
  size_t values() const { return values_.size(); }
  std::string_view ValueAt(ValueIndex value) const { return values_[value]; }
  // nullptr: nobody sent it.
  const Send* SendOf(ValueIndex value) const { return sends_[value]; }

  ValueIndex AddSend(const Send& send);
  void AddStart(Time time, int64_t offset) { starts_.emplace_back(time, offset); }
  // After the last AddStart.
  void Sort();

  // All that the log had removed by `time` is below this; so may other records be.
  int64_t RemovedBy(Time time) const;
  // The same, by any time.
  int64_t Removed() const { return starts_.empty() ? 0 : starts_.back().second; }

 private:
  std::unordered_map<std::string_view, ValueIndex> numbers_;
  std::vector<std::string_view> values_;
  std::vector<const Send*> sends_;
  // After Sort: the greatest start that was told by each time.
  std::vector<std::pair<Time, int64_t>> starts_;
};

// A value that was seen at an offset.
struct Sighting {
  enum class How { kAcknowledged, kPolled, kReadAtTheEnd };
  int64_t offset = 0;
  ValueIndex value = 0;
  How how = How::kAcknowledged;
  const Operation* by = nullptr;
};

struct Sent {
  const Send* send = nullptr;
  ValueIndex value = 0;
};

// Polls of a process from one place on.
struct Stretch {
  // nullptr: where it began is not known.
  const Position* begun = nullptr;
  std::vector<const Poll*> polls;
};

// One log within one era (see Eras). What failed, or was never answered, shows nothing and is left
// out, but for sends; so are polls that gave nothing.
struct KeyView {
  KeyIndex key = KeyIndex::kNone;
  const KeyFacts* facts = nullptr;
  // No era follows.
  bool last_era = false;
  // In the order of the history.
  std::vector<Sent> sends;
  std::vector<const Poll*> polls;
  std::vector<const FinalRead*> final_reads;
  std::vector<Stretch> stretches;

  // By offset; those of one offset in the order of acknowledgements, polls and final reads.
  std::vector<Sighting> sightings;
  // Where there are records, rising.
  std::vector<int64_t> offsets;
  // By value.
  struct Place {
    // The lowest at which it was polled or read at the end; -1: it never was.
    int64_t offset = -1;
    bool polled = false;
    bool read_at_the_end = false;
  };
  std::vector<Place> places;
  // Of the final reads: the greatest start, and when the first began.
  int64_t final_start = 0;
  Time final_from = kNever;

  // Where the one copy of what was sent is; -1: not known, or nowhere.
  int64_t PlaceOf(const Sent& sent) const;
  // The first record in [from, to) that is not below `removed`; -1: none is known.
  int64_t FirstBetween(int64_t from, int64_t to, int64_t removed) const;
};

inline bool IsAcknowledged(const Send& send) {
  return send.outcome == Outcome::kOk && send.acks == Acks::kAll;
}

struct Views {
  // By KeyIndex.
  std::vector<KeyFacts> facts;
  // By key, then era.
  std::vector<KeyView> views;
};
Views MakeViews(const History& history, const Eras& eras);

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_KEY_VIEW_H_
