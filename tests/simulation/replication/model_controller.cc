#include "tests/simulation/replication/model_controller.h"

#include <algorithm>
#include <utility>

namespace conclave::replication_simulation {

ModelController::ModelController(int brokers, bool reelect_without_epoch,
                                 std::function<void()> changed)
    : reelect_without_epoch_(reelect_without_epoch), changed_(std::move(changed)) {
  for (int id = 1; id <= brokers; ++id) {
    metadata_.state.replicas.push_back(BrokerId(id));
    metadata_.state.isr.push_back(BrokerId(id));
  }
}

BrokerEpoch ModelController::Register(BrokerId broker) {
  auto& info = metadata_.brokers[broker];
  info.epoch = BrokerEpoch(++last_broker_epoch_);
  info.eligible = false;
  auto& isr = metadata_.state.isr;
  // A new incarnation ends the old one's session in the same commit.
  if (metadata_.leader == broker) {
    metadata_.leader = kNoBroker;
    if (isr.size() > 1) isr.erase(std::find(isr.begin(), isr.end(), broker));
    ElectIfNeeded(true);
  } else if (isr.size() > 1 && std::find(isr.begin(), isr.end(), broker) != isr.end()) {
    isr.erase(std::find(isr.begin(), isr.end(), broker));
    ++metadata_.state.partition_epoch;
  }
  Changed();
  return metadata_.brokers[broker].epoch;
}

void ModelController::Fence(BrokerId broker) {
  auto& info = metadata_.brokers[broker];
  if (!info.eligible) return;
  info.eligible = false;
  auto& isr = metadata_.state.isr;
  const auto member = std::find(isr.begin(), isr.end(), broker);
  if (member != isr.end() && isr.size() > 1) isr.erase(member);
  ++metadata_.state.partition_epoch;
  if (metadata_.leader == broker) {
    metadata_.leader = kNoBroker;
    ElectIfNeeded(true);
  }
  Changed();
}

void ModelController::Unfence(BrokerId broker, BrokerEpoch epoch) {
  auto& info = metadata_.brokers[broker];
  if (info.epoch != epoch || info.eligible) return;
  info.eligible = true;
  if (metadata_.leader == kNoBroker) ElectIfNeeded(false);
  Changed();
}

ModelController::Outcome ModelController::AlterIsr(
    BrokerId leader, LeaderEpoch leader_epoch,
    const replication::LeaderReplica::Proposal& proposal) {
  auto& state = metadata_.state;
  if (leader != metadata_.leader || leader_epoch != state.leader_epoch ||
      proposal.partition_epoch != state.partition_epoch) {
    return Outcome::kStale;
  }
  std::vector<BrokerId> isr;
  for (const auto& member : proposal.isr) {
    const auto& info = metadata_.brokers[member.broker];
    if (!info.eligible || info.epoch != member.epoch) return Outcome::kRefused;
    isr.push_back(member.broker);
  }
  if (std::find(isr.begin(), isr.end(), leader) == isr.end()) return Outcome::kRefused;
  state.isr = isr;
  ++state.partition_epoch;
  Changed();
  return Outcome::kTaken;
}

bool ModelController::IsEligible(BrokerId broker) const {
  const auto info = metadata_.brokers.find(broker);
  return info != metadata_.brokers.end() && info->second.eligible;
}

void ModelController::ElectIfNeeded(bool force) {
  auto& state = metadata_.state;
  BrokerId elected = kNoBroker;
  for (const BrokerId broker : state.replicas) {
    if (std::find(state.isr.begin(), state.isr.end(), broker) == state.isr.end()) continue;
    if (IsEligible(broker)) {
      elected = broker;
      break;
    }
  }
  if (elected == kNoBroker && !force) return;
  metadata_.leader = elected;
  if (!reelect_without_epoch_ || elections_ == 0) ++state.leader_epoch;
  ++state.partition_epoch;
  ++elections_;
}

void ModelController::Changed() {
  ++metadata_.version;
  changed_();
}

}  // namespace conclave::replication_simulation
