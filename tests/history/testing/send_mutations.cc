#include <algorithm>
#include <utility>

#include "tests/history/testing/generator.h"
#include "tests/history/testing/mutations.h"
#include "tests/history/testing/scene.h"

namespace conclave::history {
namespace {

using Found = Scene::Found;

void RemoveRecord(std::vector<Record>& records, int64_t offset) {
  records.erase(std::remove_if(records.begin(), records.end(),
                               [&](const Record& record) { return record.offset == offset; }),
                records.end());
}

bool IsPlain(const Found& found) { return static_cast<int>(found.key) == kUngroupedLog; }

// It vanished, as if it had been truncated.
bool Drop(History& history, Random& random, bool acknowledged, bool polled) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    return record.IsAcknowledged() == acknowledged && record.sent->idempotent &&
           record.polled.empty() != polled;
  });
  if (found == nullptr) return false;
  RemoveRecord(found->final_read->records, found->offset);
  return true;
}

// Every consumer passed over it, though it is there.
bool PassOver(History& history, Random& random) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    return IsPlain(record) && record.IsSafe() && !record.polled.empty() &&
           std::all_of(record.polled.begin(), record.polled.end(),
                       [](const Scene::Place& place) { return place.IsInside(); });
  });
  if (found == nullptr) return false;
  const std::vector<Scene::Place> polled = found->polled;
  for (const Scene::Place& place : polled) RemoveRecord(place.poll->records, found->offset);
  return true;
}

// The record is there a second time, at the end.
bool Double(History& history, Random& random) {
  Scene scene(history);
  Found* found =
      AnyOf<Found>(scene.records(), random, [](Found& record) { return record.IsSafe(); });
  if (found == nullptr) return false;
  const Found* last = found;
  for (const Found& other : scene.records()) {
    if (other.key == found->key && other.offset > last->offset) last = &other;
  }
  const Record copy{last->offset + 1, found->sent->value};
  last->final_read->records.push_back(copy);
  return true;
}

// Acknowledged at one offset and found at another, where something else is.
bool AcknowledgeElsewhere(History& history, Random& random, bool idempotent) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    const Found* next = scene.At(record.key, record.offset + 1);
    return record.IsAcknowledged() && record.sent->idempotent == idempotent && next != nullptr &&
           next->sent != record.sent && record.sent->offset == record.offset;
  });
  if (found == nullptr) return false;
  ++found->sent->offset;
  return true;
}

bool InventValue(History& history, Random& random) {
  std::vector<FinalRead>& reads = history.Of<FinalRead>();
  FinalRead& read = reads[random.Below(reads.size())];
  int64_t end = 0;
  for (const FinalRead& other : reads) {
    if (other.key != read.key) continue;
    end = std::max(end, other.log_start);
    if (!other.records.empty()) end = std::max(end, other.records.back().offset + 1);
  }
  read.records.push_back({end, "nobody's"});
  return true;
}

bool FailWhatIsThere(History& history, Random& random) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random,
                              [](Found& record) { return record.sent->outcome == Outcome::kInfo; });
  if (found == nullptr) return false;
  found->sent->outcome = Outcome::kFail;
  return true;
}

// Seen before it was sent.
bool SendLater(History& history, Random& random) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    return scene.At(record.key, record.offset + 1) == nullptr && record.sent->idempotent &&
           record.polled.empty();
  });
  if (found == nullptr) return false;
  found->sent->invoke = found->final_read->complete + 1;
  found->sent->complete = found->sent->invoke + 1;
  return true;
}

// Two sends of a process, both under way at once, are stored the other way round.
bool Reorder(History& history, Random& random) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    const Found* next = scene.At(record.key, record.offset + 1);
    if (next == nullptr || !record.IsSafe() || !next->IsSafe()) return false;
    const Send& a = *record.sent;
    const Send& b = *next->sent;
    return a.process == b.process && a.complete >= b.invoke && record.polled.empty() &&
           next->polled.empty();
  });
  if (found == nullptr) return false;
  Send& a = *found->sent;
  Send& b = *scene.At(found->key, found->offset + 1)->sent;
  std::swap(a.value, b.value);
  std::swap(a.offset, b.offset);
  return true;
}

// A send begins only when one that is stored behind it has been acknowledged.
bool ViolateRealTime(History& history, Random& random) {
  Scene scene(history);
  Found* found = AnyOf<Found>(scene.records(), random, [&](Found& record) {
    const Found* next = scene.At(record.key, record.offset + 1);
    return next != nullptr && record.IsSafe() && next->IsSafe() && record.polled.empty() &&
           record.sent->process != next->sent->process;
  });
  if (found == nullptr) return false;
  Send& earlier = *found->sent;
  earlier.invoke = scene.At(found->key, found->offset + 1)->sent->complete + 1;
  earlier.complete = std::max(earlier.complete, earlier.invoke + 1);
  return true;
}

}  // namespace

std::vector<Mutation> SendMutations() {
  const auto drop = [](bool acknowledged, bool polled) {
    return [=](History& history, Random& random) {
      return Drop(history, random, acknowledged, polled);
    };
  };
  const auto elsewhere = [](bool idempotent) {
    return [=](History& history, Random& random) {
      return AcknowledgeElsewhere(history, random, idempotent);
    };
  };
  return {
      {"AcknowledgedVanishes", {4}, drop(true, false)},
      {"AcknowledgedAndPolledVanishes", {4, 11}, drop(true, true)},
      {"PolledVanishes", {11}, drop(false, true)},
      {"NobodyPolls", {3, 6}, PassOver},
      {"StoredTwice", {2}, Double},
      {"AcknowledgedElsewhere", {1, 2}, elsewhere(true)},
      {"AcknowledgedElsewhereWithoutIdempotence", {1}, elsewhere(false)},
      {"Invented", {5}, InventValue},
      {"FailedAndThere", {5}, FailWhatIsThere},
      {"SeenBeforeItWasSent", {5}, SendLater},
      {"ReorderedOfAProcess", {9}, Reorder},
      {"RealTimeOrder", {10}, ViolateRealTime},
  };
}

}  // namespace conclave::history
