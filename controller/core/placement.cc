#include "controller/core/placement.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace conclave::controller {
namespace {

// The element that is not chosen yet and whose key is least.
template <class Candidates, class KeyOf>
auto& Least(Candidates& candidates, KeyOf key_of) {
  std::optional<decltype(key_of(candidates.front()))> least_key;
  typename Candidates::value_type* least = nullptr;
  for (auto& candidate : candidates) {
    if (candidate.chosen) continue;
    auto key = key_of(candidate);
    if (least_key && !(key < *least_key)) continue;
    least_key = key;
    least = &candidate;
  }
  CHECK(least != nullptr) << "more replicas than brokers";
  return *least;
}

}  // namespace

Placement::Placement(const MetadataImage& image) {
  std::map<std::string, size_t> racks;
  for (const auto& [id, broker] : image.brokers()) {
    if (!broker.IsEligible()) continue;
    Candidate candidate;
    candidate.broker = id;
    if (!broker.rack.empty()) {
      candidate.rack = racks.try_emplace(broker.rack, racks.size()).first->second;
    }
    candidate.leaders = image.PartitionsLedBy(id).size();
    candidate.replicas = image.PartitionsOn(id).size();
    candidates_.push_back(candidate);
  }
}

bool Placement::IsRackUsed(const Candidate& candidate) const {
  return std::find(used_racks_.begin(), used_racks_.end(), candidate.rack) != used_racks_.end();
}

Placement::Candidate& Placement::ChooseLeader(Random& random) {
  return Least(candidates_, [&random](const Candidate& c) {
    return std::make_tuple(c.topic_leaders, c.topic_replicas, c.leaders, c.replicas, random.Next());
  });
}

Placement::Candidate& Placement::ChooseFollower(Random& random) {
  return Least(candidates_, [this, &random](const Candidate& c) {
    return std::make_tuple(IsRackUsed(c), c.topic_replicas, c.replicas, random.Next());
  });
}

std::vector<BrokerId> Placement::PlaceOne(size_t replicas, Random& random) {
  std::vector<BrokerId> brokers;
  used_racks_.clear();
  for (Candidate& candidate : candidates_) candidate.chosen = false;
  while (brokers.size() < replicas) {
    const bool leads = brokers.empty();
    Candidate& candidate = leads ? ChooseLeader(random) : ChooseFollower(random);
    candidate.chosen = true;
    if (candidate.rack != kNoRack) used_racks_.push_back(candidate.rack);
    candidate.leaders += leads ? 1 : 0;
    candidate.topic_leaders += leads ? 1 : 0;
    ++candidate.replicas;
    ++candidate.topic_replicas;
    brokers.push_back(candidate.broker);
  }
  return brokers;
}

std::vector<std::vector<BrokerId>> Placement::Place(size_t partitions, size_t replicas,
                                                    Random& random) {
  for (Candidate& candidate : candidates_) {
    candidate.topic_leaders = 0;
    candidate.topic_replicas = 0;
  }
  std::vector<std::vector<BrokerId>> placed;
  placed.reserve(partitions);
  for (size_t i = 0; i < partitions; ++i) placed.push_back(PlaceOne(replicas, random));
  return placed;
}

}  // namespace conclave::controller
