#ifndef CONCLAVE_TESTS_HISTORY_HISTORY_H_
#define CONCLAVE_TESTS_HISTORY_HISTORY_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// What clients of a cluster did and were told, in a form that check.h can hold against the contract
// of a replicated log. Plain values, without I/O; text.h reads and writes them.
namespace conclave::history {

// Nanoseconds on one clock that all who record share. Its origin does not matter.
using Time = int64_t;
// The completion of what was never answered.
inline constexpr Time kNever = std::numeric_limits<Time>::max();

enum class Outcome {
  kOk,
  // It certainly had no effect and never will have.
  kFail,
  // Nobody knows: a time-out, a lost connection, an error after the append. It may take effect at
  // any time after it was invoked.
  kInfo,
};

// Names and keys are recorded once, and known by their place in the history.
enum class Name : int32_t { kNone = -1 };
enum class KeyIndex : int32_t { kNone = -1 };

// One log: a partition of one life of a topic.
struct Key {
  std::string topic_id;
  int32_t partition = 0;

  friend auto operator<=>(const Key&, const Key&) = default;
};

// What every operation has. A process does one thing after the other, as `sequence` tells; where it
// has several under way at the same time, in the order in which it began them. A client that dies
// and starts anew is another process: nothing that it began before binds it.
struct Operation {
  Name process = Name::kNone;
  Time invoke = 0;
  // Not before `invoke`.
  Time complete = kNever;
  Outcome outcome = Outcome::kInfo;
  // Set by History::Add.
  uint64_t sequence = 0;
};

enum class Acks { kNone, kLeader, kAll };

// A record that is sent to a log. Its value is unlike any other that is sent there.
struct Send : Operation {
  KeyIndex key = KeyIndex::kNone;
  std::string value;
  Acks acks = Acks::kAll;
  // Retries neither double it nor change its place among those of its process.
  bool idempotent = true;
  // As acknowledged; -1: not told.
  int64_t offset = -1;
};

struct Record {
  int64_t offset = 0;
  std::string value;
};

// Records of one log that a consumer was handed together, in the order in which it was.
struct Poll : Operation {
  KeyIndex key = KeyIndex::kNone;
  // Of which the process is a member; kNone: it reads for itself.
  Name group = Name::kNone;
  std::vector<Record> records;
};

// From here on the polls of a process give a log from elsewhere: it was assigned the log, or
// sought.
struct Position : Operation {
  KeyIndex key = KeyIndex::kNone;
  Name group = Name::kNone;
  // The committed offset where a member takes up, 0 for one that begins at the log's start, or what
  // was sought. -1: not known, or chosen by a reset policy.
  int64_t from = -1;
};

// A member was told what it owns, all of it, in an epoch of its group.
struct Assignment : Operation {
  Name group = Name::kNone;
  Name member = Name::kNone;
  int64_t epoch = 0;
  std::vector<KeyIndex> keys;
};

// What there was to assign in an epoch of a group, and to whom.
struct GroupEpoch : Operation {
  Name group = Name::kNone;
  int64_t epoch = 0;
  // Each with the epoch of its last assignment: a later one may have left it as it was.
  std::vector<std::pair<Name, int64_t>> members;
  std::vector<KeyIndex> keys;
};

struct Commit : Operation {
  Name group = Name::kNone;
  KeyIndex key = KeyIndex::kNone;
  int64_t offset = 0;
};

// A read of a committed offset. Only those that are kOk tell anything.
struct CommittedRead : Operation {
  Name group = Name::kNone;
  KeyIndex key = KeyIndex::kNone;
  // -1: none is committed.
  int64_t offset = -1;
};

// The log begins here, as the process was told. A start never goes back.
struct LogStart : Operation {
  KeyIndex key = KeyIndex::kNone;
  int64_t offset = 0;
};

// All that a log held below its high watermark, from `log_start` on; once faults are over. Several
// of one log are parts of one read, or reads one after the other.
struct FinalRead : Operation {
  KeyIndex key = KeyIndex::kNone;
  int64_t log_start = 0;
  std::vector<Record> records;
};

// What a node knew at a moment; a part that is absent was not looked at.
struct Metadata : Operation {
  struct Controller {
    int64_t term = 0;
    int64_t leader = -1;
  };
  struct Leader {
    int64_t epoch = 0;
    // -1: none.
    int64_t leader = -1;
  };
  struct Log {
    int64_t start = 0;
    int64_t high_watermark = 0;
    int64_t end = 0;
  };

  std::optional<Controller> controller;
  // Of `leader` and `log`.
  KeyIndex key = KeyIndex::kNone;
  std::optional<Leader> leader;
  std::optional<Log> log;
};

struct DumpRow {
  int64_t offset = 0;
  int64_t epoch = 0;
  uint32_t crc = 0;
};

// Batches of one replica's log, read from its disk while nothing was written. `process` is the
// replica's node. Several of one replica are parts of one dump.
struct Dump : Operation {
  KeyIndex key = KeyIndex::kNone;
  int64_t log_start = 0;
  int64_t high_watermark = 0;
  std::vector<DumpRow> rows;
};

// A node (`process`) lost what it had not synced, at `invoke`; by `complete` it had caught up
// again.
struct PowerLoss : Operation {};

// Everything that was recorded. Not thread-safe.
class History {
 public:
  Name NameOf(std::string_view name);
  KeyIndex KeyOf(std::string_view topic_id, int32_t partition);
  // "-" for kNone.
  std::string_view TextOf(Name name) const;
  const Key& KeyAt(KeyIndex key) const { return keys_[static_cast<size_t>(key)]; }
  size_t keys() const { return keys_.size(); }
  size_t operations() const { return last_sequence_; }

  // The place in the vector, where what became of the operation may be filled in later. Operations
  // are added in the order in which they were invoked, those of each process at least.
  template <class Kind>
  size_t Add(Kind operation) {
    operation.sequence = ++last_sequence_;
    std::vector<Kind>& all = Of<Kind>();
    all.push_back(std::move(operation));
    return all.size() - 1;
  }
  template <class Kind>
  std::vector<Kind>& Of() {
    return std::get<std::vector<Kind>>(operations_);
  }
  template <class Kind>
  const std::vector<Kind>& Of() const {
    return std::get<std::vector<Kind>>(operations_);
  }

 private:
  std::tuple<std::vector<Send>, std::vector<Poll>, std::vector<Position>, std::vector<Assignment>,
             std::vector<GroupEpoch>, std::vector<Commit>, std::vector<CommittedRead>,
             std::vector<LogStart>, std::vector<FinalRead>, std::vector<Metadata>,
             std::vector<Dump>, std::vector<PowerLoss>>
      operations_;
  std::map<std::string, Name, std::less<>> names_;
  std::vector<std::string> texts_;
  std::map<Key, KeyIndex> key_indexes_;
  std::vector<Key> keys_;
  uint64_t last_sequence_ = 0;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_HISTORY_H_
