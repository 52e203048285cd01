#include <algorithm>
#include <utility>

#include "tests/history/testing/generator.h"
#include "tests/history/testing/mutations.h"
#include "tests/history/testing/scene.h"

namespace conclave::history {
namespace {

using Found = Scene::Found;
using Place = Scene::Place;

// A record somewhere inside of a poll, of consumers without a group.
Place AnyInside(Scene& scene, Random& random,
                const std::function<bool(Found&, const Place&)>& pass) {
  std::vector<Place> places;
  for (Found& found : scene.records()) {
    for (const Place& place : found.polled) {
      const bool plain = place.poll->group == Name::kNone;
      if (plain && place.IsInside() && pass(found, place)) places.push_back(place);
    }
  }
  return places.empty() ? Place() : places[random.Below(places.size())];
}

bool Repeat(History& history, Random& random) {
  Scene scene(history);
  const Place place = AnyInside(scene, random, [](Found&, const Place&) { return true; });
  if (place.poll == nullptr) return false;
  const Record copy = place.record();
  place.poll->records.insert(place.poll->records.begin() + static_cast<int64_t>(place.index), copy);
  return true;
}

bool Swap(History& history, Random& random) {
  Scene scene(history);
  // Where nobody was before, none can be contradicted.
  const Place place = AnyInside(
      scene, random, [](Found& found, const Place& at) { return !found.WasShownBefore(*at.poll); });
  if (place.poll == nullptr) return false;
  std::swap(place.record(), place.poll->records[place.index + 1]);
  return true;
}

// The values at two offsets change places, in one poll.
bool Rebind(History& history, Random& random) {
  Scene scene(history);
  const Place place = AnyInside(scene, random, [&](Found& found, const Place& at) {
    Found* next = scene.At(found.key, found.offset + 1);
    return found.IsSafe() && next->IsSafe() && found.polled.size() > 1 && next->polled.size() > 1 &&
           !found.WasShownBefore(*at.poll);
  });
  if (place.poll == nullptr) return false;
  std::swap(place.record().value, place.poll->records[place.index + 1].value);
  return true;
}

// One poll shows at an offset what nobody else ever sees.
bool ShowAnother(History& history, Random& random) {
  Scene scene(history);
  const Place place =
      AnyInside(scene, random, [](Found& found, const Place&) { return found.polled.size() > 1; });
  if (place.poll == nullptr) return false;
  place.record().value = "another";
  Send send;
  send.process = history.NameOf("one more");
  send.invoke = 0;
  send.key = place.poll->key;
  send.value = "another";
  history.Add(send);
  return true;
}

bool IsCovered(Scene& scene, const Poll& poll) {
  return std::all_of(poll.records.begin(), poll.records.end(), [&](const Record& record) {
    const Found* found = scene.At(poll.key, record.offset);
    return found != nullptr && found->polled.size() > 1;
  });
}

// A poll that somebody else covers, within what its process reads on through.
Poll* AnyPoll(History& history, Scene& scene, Random& random, bool follows) {
  return AnyOf<Poll>(history.Of<Poll>(), random, [&](Poll& poll) {
    if (poll.group != Name::kNone || poll.records.empty() || !IsCovered(scene, poll)) return false;
    if ((scene.Before(poll) != nullptr) != follows) return false;
    const std::vector<Poll*> polls = scene.PollsOf(poll.process, poll.key);
    const auto next = std::find(polls.begin(), polls.end(), &poll) + 1;
    return next != polls.end() && scene.Before(**next) == &poll;
  });
}

bool SkipPoll(History& history, Random& random) {
  Scene scene(history);
  Poll* poll = AnyPoll(history, scene, random, true);
  if (poll == nullptr) return false;
  Remove(history, *poll);
  return true;
}

bool GoBack(History& history, Random& random) {
  Scene scene(history);
  Poll* poll = AnyPoll(history, scene, random, true);
  if (poll == nullptr) return false;
  const Record last = scene.Before(*poll)->records.back();
  poll->records.insert(poll->records.begin(), last);
  return true;
}

const Position* PutBefore(History& history, const Poll& poll) {
  const Position* put = nullptr;
  for (const Position& position : history.Of<Position>()) {
    if (position.process == poll.process && position.key == poll.key &&
        position.sequence < poll.sequence) {
      put = &position;
    }
  }
  return put;
}

bool ResumeTooLate(History& history, Random& random) {
  Scene scene(history);
  for (int tries = 0; tries < 50; ++tries) {
    Poll* poll = AnyPoll(history, scene, random, false);
    if (poll == nullptr) return false;
    if (PutBefore(history, *poll)->from < 0) continue;
    Remove(history, *poll);
    return true;
  }
  return false;
}

bool ResumeTooEarly(History& history, Random& random) {
  Scene scene(history);
  for (int tries = 0; tries < 50; ++tries) {
    Poll* poll = AnyPoll(history, scene, random, false);
    if (poll == nullptr) return false;
    const Position* put = PutBefore(history, *poll);
    if (put->from < 0) continue;
    const_cast<Position*>(put)->from = poll->records.front().offset + 1;
    return true;
  }
  return false;
}

}  // namespace

std::vector<Mutation> PollMutations() {
  return {
      {"RecordTwiceInAPoll", {6}, Repeat},    {"RecordsSwapped", {6}, Swap},
      {"ValuesRebound", {1, 2, 11}, Rebind},  {"AnotherValueShown", {1, 11}, ShowAnother},
      {"PollSkipped", {7}, SkipPoll},         {"PollGoesBack", {7}, GoBack},
      {"ResumedTooLate", {8}, ResumeTooLate}, {"ResumedTooEarly", {8}, ResumeTooEarly},
  };
}

}  // namespace conclave::history
