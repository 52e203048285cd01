#include <algorithm>
#include <utility>

#include "tests/history/testing/mutations.h"
#include "tests/history/testing/scene.h"

namespace conclave::history {
namespace {

using Change = std::function<void(Metadata&)>;

// Of an observation that is not its process's last.
bool ChangeSeen(History& history, Random& random, const std::function<bool(Metadata&)>& pass,
                const Change& change) {
  Metadata* seen = AnyOf<Metadata>(history.Of<Metadata>(), random, pass);
  if (seen == nullptr) return false;
  change(*seen);
  return true;
}

bool TwoLeaders(History& history, Random& random) {
  const std::vector<Metadata>& all = history.Of<Metadata>();
  return ChangeSeen(
      history, random,
      [&](Metadata& seen) {
        return seen.leader->leader >= 0 &&
               std::any_of(all.begin(), all.end(), [&](const Metadata& other) {
                 return &other != &seen && other.key == seen.key &&
                        other.leader->epoch == seen.leader->epoch && other.leader->leader >= 0;
               });
      },
      [](Metadata& seen) { seen.leader->leader += 10; });
}

bool TwoControllers(History& history, Random& random) {
  const std::vector<Metadata>& all = history.Of<Metadata>();
  return ChangeSeen(
      history, random,
      [&](Metadata& seen) {
        return seen.controller && std::any_of(all.begin(), all.end(), [&](const Metadata& other) {
                 return &other != &seen && other.controller &&
                        other.controller->term == seen.controller->term;
               });
      },
      [](Metadata& seen) { seen.controller->leader += 10; });
}

bool LeaderEpochFalls(History& history, Random& random) {
  const std::vector<Metadata>& all = history.Of<Metadata>();
  return ChangeSeen(
      history, random,
      [&](Metadata& seen) {
        return std::any_of(all.begin(), all.end(), [&](const Metadata& other) {
          return other.process == seen.process && other.key == seen.key &&
                 other.leader->epoch > 0 && other.sequence < seen.sequence;
        });
      },
      [](Metadata& seen) {
        seen.leader = {0, -1};
      });
}

bool TermFalls(History& history, Random& random) {
  const std::vector<Metadata>& all = history.Of<Metadata>();
  return ChangeSeen(
      history, random,
      [&](Metadata& seen) {
        return seen.controller && std::any_of(all.begin(), all.end(), [&](const Metadata& other) {
                 return other.process == seen.process && other.controller &&
                        other.controller->term > 0 && other.sequence < seen.sequence;
               });
      },
      [](Metadata& seen) {
        seen.controller = {0, -1};
      });
}

bool Always(Metadata&) { return true; }

bool MarkBeyondTheEnd(History& history, Random& random) {
  return ChangeSeen(history, random, Always,
                    [](Metadata& seen) { seen.log->high_watermark = seen.log->end + 1; });
}

bool StartBeyondTheMark(History& history, Random& random) {
  return ChangeSeen(history, random, Always,
                    [](Metadata& seen) { seen.log->start = seen.log->high_watermark + 1; });
}

// --- Dumps

// A row that every replica has to have.
bool ChangeRow(History& history, Random& random, const std::function<void(Dump&, size_t)>& change) {
  std::vector<Dump>& dumps = history.Of<Dump>();
  Dump* dump = AnyOf<Dump>(dumps, random, [&](Dump& one) {
    return one.rows.size() > 3 && one.log_start == 0 &&
           std::all_of(dumps.begin(), dumps.end(), [&](const Dump& other) {
             return other.key != one.key || other.log_start == 0;
           });
  });
  if (dump == nullptr) return false;
  change(*dump, 1 + random.Below(dump->rows.size() - 3));
  return true;
}

Mutation Row(const std::string& name, std::function<void(Dump&, size_t)> change) {
  return {name, {16}, [change = std::move(change)](History& history, Random& random) {
            return ChangeRow(history, random, change);
          }};
}

}  // namespace

std::vector<Mutation> MetadataMutations() {
  return {
      {"TwoLeadersInAnEpoch", {15}, TwoLeaders},
      {"TwoControllersInATerm", {15}, TwoControllers},
      {"LeaderEpochFalls", {15}, LeaderEpochFalls},
      {"TermFalls", {15}, TermFalls},
      {"HighWatermarkBeyondTheEnd", {15}, MarkBeyondTheEnd},
      {"LogStartBeyondTheHighWatermark", {15}, StartBeyondTheMark},
      Row("DumpsDifferInAChecksum", [](Dump& dump, size_t row) { dump.rows[row].crc ^= 1; }),
      Row("DumpsDifferInAnEpoch", [](Dump& dump, size_t row) { dump.rows[row].epoch += 1000; }),
      Row("BatchIsMissingInADump",
          [](Dump& dump, size_t row) {
            dump.rows.erase(dump.rows.begin() + static_cast<int64_t>(row));
          }),
      Row("BatchTwiceInADump",
          [](Dump& dump, size_t row) {
            dump.rows.insert(dump.rows.begin() + static_cast<int64_t>(row), dump.rows[row]);
          }),
      Row("BatchesSwappedInADump",
          [](Dump& dump, size_t row) { std::swap(dump.rows[row], dump.rows[row + 1]); }),
  };
}

}  // namespace conclave::history
