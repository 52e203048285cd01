#include "tests/history/testing/scene.h"

#include <algorithm>

#include "tests/history/testing/generator.h"

namespace conclave::history {

Scene::Scene(History& history) : history_(history) {
  std::map<std::string, Send*> sends;
  for (Send& send : history_.Of<Send>()) sends[send.value] = &send;
  for (FinalRead& read : history_.Of<FinalRead>()) {
    if (static_cast<int>(read.key) == kRemovedFromLog) continue;
    for (Record& record : read.records) {
      places_[{read.key, record.offset}] = records_.size();
      records_.push_back({read.key, record.offset, &record, &read, sends.at(record.value), {}});
    }
  }
  for (Poll& poll : history_.Of<Poll>()) {
    for (size_t i = 0; i < poll.records.size(); ++i) {
      if (Found* found = At(poll.key, poll.records[i].offset)) found->polled.push_back({&poll, i});
    }
  }
}

bool Scene::Found::WasShownBefore(const Poll& poll) const {
  return std::any_of(polled.begin(), polled.end(), [&](const Place& place) {
    return place.poll->complete < poll.invoke && place.poll != &poll;
  });
}

Scene::Found* Scene::At(KeyIndex key, int64_t offset) {
  const auto found = places_.find({key, offset});
  return found == places_.end() ? nullptr : &records_[found->second];
}

std::vector<Poll*> Scene::PollsOf(Name process, KeyIndex key) {
  std::vector<Poll*> polls;
  for (Poll& poll : history_.Of<Poll>()) {
    if (poll.process == process && poll.key == key && !poll.records.empty()) polls.push_back(&poll);
  }
  return polls;
}

Poll* Scene::Before(const Poll& poll) {
  Poll* before = nullptr;
  for (Poll* other : PollsOf(poll.process, poll.key)) {
    if (other->sequence < poll.sequence) before = other;
  }
  if (before == nullptr) return nullptr;
  for (const Position& position : history_.Of<Position>()) {
    if (position.process == poll.process && position.key == poll.key &&
        position.sequence > before->sequence && position.sequence < poll.sequence) {
      return nullptr;
    }
  }
  return before;
}

}  // namespace conclave::history
