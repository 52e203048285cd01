#include "controller/core/leadership_plan.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/topic_config.h"

namespace conclave::controller {
namespace {

void Erase(std::vector<BrokerId>& brokers, BrokerId broker) {
  brokers.erase(std::remove(brokers.begin(), brokers.end(), broker), brokers.end());
}

std::string Names(const std::vector<BrokerId>& brokers) {
  return absl::StrCat(brokers.size() == 1 ? "broker " : "brokers ",
                      absl::StrJoin(brokers, ", ", [](std::string* out, BrokerId broker) {
                        absl::StrAppend(out, broker.value());
                      }));
}

// An empty ISR has lost its last member with a directory.
std::string LostNote(BrokerId broker, DirectoryId directory) {
  return absl::StrCat(
      "possible loss of acknowledged records: broker ", broker.value(),
      " came back without directory ", directory.ToString(),
      ", which held the last in-sync replica. To go on with what is left, "
      "elect one with 'conclave topic elect-leader --unclean'; or delete and create the topic");
}

}  // namespace

void ChangeIsr(Partition& partition, std::vector<BrokerId> isr, size_t minimum) {
  std::vector<BrokerId> eligible = partition.elr;
  eligible.insert(eligible.end(), partition.isr.begin(), partition.isr.end());
  for (const BrokerId member : isr) Erase(eligible, member);
  if (isr.size() >= minimum) {
    eligible.clear();
    partition.stopped_uncleanly.clear();
  }
  for (const BrokerId member : isr) Erase(partition.stopped_uncleanly, member);
  partition.isr = std::move(isr);
  partition.elr = partition.InAssignmentOrder(eligible);
}

bool LeadershipPlan::IsEligible(BrokerId id) const {
  if (const auto marked = eligible_.find(id); marked != eligible_.end()) return marked->second;
  const Broker* broker = image_.FindBroker(id);
  return broker != nullptr && broker->IsEligible();
}

bool LeadershipPlan::IsUncleanAllowed(const PartitionId& id) const {
  return unclean_once_.contains(id) || unclean_.contains(id.topic) ||
         IsUncleanElectionEnabled(image_.FindTopic(id.topic)->configs);
}

size_t LeadershipPlan::MinimumOf(const PartitionId& id) const {
  return EffectiveMinInsyncReplicas(image_.FindTopic(id.topic)->configs,
                                    Current(id).replicas.size());
}

const Partition& LeadershipPlan::Current(const PartitionId& id) const {
  if (const auto found = edited_.find(id); found != edited_.end()) return found->second;
  const Partition* partition = image_.FindPartition(id);
  CHECK(partition != nullptr) << "no partition " << ToString(id);
  return *partition;
}

Partition& LeadershipPlan::Edit(const PartitionId& id) {
  return edited_.try_emplace(id, Current(id)).first->second;
}

std::optional<BrokerId> LeadershipPlan::CleanCandidate(const Partition& partition) const {
  for (const PartitionReplica& replica : partition.replicas) {
    if (partition.InIsr(replica.broker) && IsEligible(replica.broker)) return replica.broker;
  }
  for (const PartitionReplica& replica : partition.replicas) {
    if (partition.InElr(replica.broker) && IsEligible(replica.broker)) return replica.broker;
  }
  return std::nullopt;
}

std::optional<BrokerId> LeadershipPlan::FurthestCandidate(const PartitionId& id,
                                                          const Partition& partition) const {
  if (!partition.isr.empty() || !partition.elr.empty()) return std::nullopt;
  std::optional<BrokerId> furthest;
  std::optional<ReplicaEnd> greatest;
  for (const BrokerId broker : partition.InAssignmentOrder(partition.stopped_uncleanly)) {
    const auto end = reports_.EndOf(broker, id);
    if (!IsEligible(broker) || !end) return std::nullopt;
    if (greatest && *end <= *greatest) continue;
    greatest = end;
    furthest = broker;
  }
  return furthest;
}

std::optional<BrokerId> LeadershipPlan::UncleanCandidate(const PartitionId& id,
                                                         const Partition& partition) const {
  if (!IsUncleanAllowed(id)) return std::nullopt;
  std::optional<BrokerId> damaged;
  for (const PartitionReplica& replica : partition.replicas) {
    if (!IsEligible(replica.broker)) continue;
    if (!reports_.IsDamaged(replica.broker, id)) return replica.broker;
    if (!damaged) damaged = replica.broker;
  }
  return damaged;
}

void LeadershipPlan::LeadUncleanly(const PartitionId& id, BrokerId leader, std::string why) {
  Partition& partition = Edit(id);
  partition.leader = leader;
  partition.isr = {leader};
  // Nobody else's records count any more.
  partition.elr.clear();
  partition.stopped_uncleanly.clear();
  partition.note = absl::StrCat("possible loss of acknowledged records: ", why);
}

void LeadershipPlan::Elect(const PartitionId& id, const std::string& why_none) {
  Partition& partition = Edit(id);
  std::vector<BrokerId> away = partition.isr;
  away.insert(away.end(), partition.elr.begin(), partition.elr.end());
  if (const auto clean = CleanCandidate(partition)) {
    if (!partition.InIsr(*clean)) ChangeIsr(partition, {*clean}, MinimumOf(id));
    partition.leader = *clean;
    partition.note.clear();
  } else if (const auto furthest = FurthestCandidate(id, partition)) {
    const ReplicaEnd end = *reports_.EndOf(*furthest, id);
    LeadUncleanly(id, *furthest,
                  absl::StrCat(Names(partition.stopped_uncleanly), " stopped uncleanly under ",
                               kFlushPolicy, "=replicated, and nobody else had them; broker ",
                               furthest->value(), " has come furthest, to offset ",
                               end.log_end.value(), " of leader epoch ", end.last_epoch.value()));
  } else if (const auto unclean = UncleanCandidate(id, partition)) {
    LeadUncleanly(id, *unclean,
                  absl::StrCat("unclean election of broker ", unclean->value(),
                               away.empty() ? ", with no replica left in sync"
                                            : absl::StrCat(", while ", Names(away),
                                                           away.size() == 1 ? " was" : " were",
                                                           " in sync and away")));
  } else {
    partition.leader = kNoBroker;
    partition.note = why_none;
  }
  partition.leader_epoch = image_.FindPartition(id)->leader_epoch + 1;
}

void LeadershipPlan::ElectIfLeaderless(const PartitionId& id) {
  const Partition& partition = Current(id);
  if (partition.leader != kNoBroker) return;
  if (CleanCandidate(partition) || FurthestCandidate(id, partition) ||
      UncleanCandidate(id, partition)) {
    Elect(id, "");
  }
}

void LeadershipPlan::LeaveIsr(const PartitionId& id, BrokerId broker) {
  Partition& partition = Edit(id);
  std::vector<BrokerId> isr = partition.isr;
  Erase(isr, broker);
  ChangeIsr(partition, std::move(isr), MinimumOf(id));
}

void LeadershipPlan::FenceReplica(const PartitionId& id, const Fenced& fenced) {
  const Partition& current = Current(id);
  if (current.InIsr(fenced.broker) && current.isr.size() > 1) LeaveIsr(id, fenced.broker);
  if (Current(id).leader != fenced.broker) return;
  std::vector<BrokerId> last = Current(id).isr;
  last.insert(last.end(), Current(id).elr.begin(), Current(id).elr.end());
  Elect(id, absl::StrCat("no leader: ", Names(last), last.size() == 1 ? ", the last" : ", the only",
                         " in sync, cannot lead now; broker ", fenced.broker.value(),
                         " led until it was fenced (", fenced.why, "). Bring ",
                         last.size() == 1 ? "it" : "one of them", " back"));
}

void LeadershipPlan::Fence(const std::vector<Fenced>& brokers) {
  for (const Fenced& fenced : brokers) eligible_[fenced.broker] = false;
  for (const Fenced& fenced : brokers) {
    for (const PartitionId& id : image_.PartitionsOn(fenced.broker)) FenceReplica(id, fenced);
  }
}

void LeadershipPlan::Unfence(BrokerId broker) {
  eligible_[broker] = true;
  for (const PartitionId& id : image_.PartitionsOn(broker)) ElectIfLeaderless(id);
}

void LeadershipPlan::MoveAwayFrom(BrokerId broker) {
  eligible_[broker] = false;
  for (const PartitionId& id : image_.PartitionsOn(broker)) {
    if (Current(id).leader == broker && CleanCandidate(Current(id))) Elect(id, "");
    const Partition& partition = Current(id);
    if (partition.leader == broker || !partition.InIsr(broker)) continue;
    const size_t minimum = MinimumOf(id);
    // The last one stays, whatever the minimum.
    if (partition.isr.size() > std::max<size_t>(minimum, 1)) Erase(Edit(id).isr, broker);
  }
}

void LeadershipPlan::TakeOut(const PartitionId& id, BrokerId broker, const std::string& note) {
  Partition& partition = Edit(id);
  Erase(partition.isr, broker);
  Erase(partition.elr, broker);
  Erase(partition.stopped_uncleanly, broker);
  if (partition.leader == broker) return Elect(id, note);
  if (partition.leader != kNoBroker || !partition.isr.empty()) return;
  partition.note =
      partition.elr.empty()
          ? note
          : absl::StrCat("no leader: ", Names(partition.elr), " alone can lead, and ",
                         partition.elr.size() == 1 ? "is" : "are", " away. Before: ", note);
  ElectIfLeaderless(id);
}

void LeadershipPlan::StopReplica(const PartitionId& id, BrokerId broker) {
  const Partition& current = Current(id);
  if (current.flush_policy != v1::FLUSH_POLICY_REPLICATED) return;
  if (!current.InIsr(broker) && !current.InElr(broker)) return;
  Partition& partition = Edit(id);
  Erase(partition.isr, broker);
  Erase(partition.elr, broker);
  // The others have what it had, as far as is known; and if these, too, turn out to have stopped,
  // fewer than the minimum have lost something, or the policy promises nothing.
  if (partition.leader != kNoBroker && partition.isr.size() >= MinimumOf(id)) return;
  partition.stopped_uncleanly.push_back(broker);
  partition.stopped_uncleanly = partition.InAssignmentOrder(partition.stopped_uncleanly);
  if (partition.leader != kNoBroker) return;
  std::vector<BrokerId> complete = partition.isr;
  complete.insert(complete.end(), partition.elr.begin(), partition.elr.end());
  const std::string others =
      complete.empty()
          ? "once all of them are back, the one that has come furthest leads, and what it lacks is "
            "lost: possible loss of acknowledged records. To go on without those that do not come "
            "back, elect one with 'conclave topic elect-leader --unclean'"
          : absl::StrCat(Names(complete), " can lead, once back");
  partition.note = absl::StrCat("no leader: ", Names(partition.stopped_uncleanly),
                                " stopped uncleanly under ", kFlushPolicy, "=replicated; ", others);
  ElectIfLeaderless(id);
}

void LeadershipPlan::StoppedUncleanly(BrokerId broker) {
  for (const PartitionId& id : image_.PartitionsOn(broker)) StopReplica(id, broker);
}

void LeadershipPlan::TakeOutDamaged(BrokerId broker) {
  const std::string damaged =
      absl::StrCat("the replica on broker ", broker.value(), " is damaged: ");
  for (const PartitionId& id : image_.PartitionsLedBy(broker)) {
    if (!Current(id).note.starts_with(damaged) || reports_.IsDamaged(broker, id)) continue;
    Edit(id).note.clear();
  }
  for (const auto& [id, damage] : reports_.DamagedOn(broker)) {
    const Partition* before = image_.FindPartition(id);
    if (before == nullptr || !before->HasReplica(broker)) continue;
    const Partition& current = Current(id);
    if (!current.InIsr(broker) && !current.InElr(broker) && !current.HasStoppedUncleanly(broker)) {
      continue;
    }
    Partition without = current;
    Erase(without.isr, broker);
    Erase(without.elr, broker);
    const std::string found = damaged + damage.what;
    const bool may_lead = current.leader == broker || current.leader == kNoBroker;
    if (damage.open && may_lead && !CleanCandidate(without)) {
      if (current.leader == broker && current.note != found) Edit(id).note = found;
      continue;
    }
    TakeOut(id, broker,
            absl::StrCat("possible loss of acknowledged records: ", found,
                         ". No other replica can stand in for it. To go on with what is left, "
                         "elect one with 'conclave topic elect-leader --unclean'"));
  }
}

void LeadershipPlan::LoseReplica(const PartitionId& id, BrokerId broker, DirectoryId replacement) {
  Partition& partition = Edit(id);
  const auto replica =
      std::find_if(partition.replicas.begin(), partition.replicas.end(),
                   [broker](const PartitionReplica& r) { return r.broker == broker; });
  const std::string note = LostNote(broker, std::exchange(replica->directory, replacement));
  const bool counted =
      partition.InIsr(broker) || partition.InElr(broker) || partition.HasStoppedUncleanly(broker);
  if (counted) TakeOut(id, broker, note);
}

void LeadershipPlan::LoseDirectories(BrokerId broker, const std::vector<DirectoryId>& kept,
                                     Random& random) {
  for (const PartitionId& id : image_.PartitionsOn(broker)) {
    for (const PartitionReplica& replica : image_.FindPartition(id)->replicas) {
      if (replica.broker != broker) continue;
      if (std::find(kept.begin(), kept.end(), replica.directory) != kept.end()) continue;
      LoseReplica(id, broker, kept[random.Below(kept.size())]);
    }
  }
}

void LeadershipPlan::AllowUncleanElection(TopicId topic) {
  unclean_.insert(topic);
  const auto& leaderless = image_.PartitionsLedBy(kNoBroker);
  for (auto id = leaderless.lower_bound({topic, PartitionIndex(0)});
       id != leaderless.end() && id->topic == topic; ++id) {
    ElectIfLeaderless(*id);
  }
}

void LeadershipPlan::ElectUncleanly(const PartitionId& id) {
  unclean_once_.insert(id);
  ElectIfLeaderless(id);
}

void LeadershipPlan::ElectPreferred(const PartitionId& id) {
  const Partition& partition = Current(id);
  const BrokerId preferred = partition.replicas.front().broker;
  if (partition.leader == preferred || !partition.InIsr(preferred) || !IsEligible(preferred)) {
    return;
  }
  Elect(id, "");
}

void LeadershipPlan::ForgetEligible(TopicId topic) {
  const size_t count = image_.FindTopic(topic)->partitions.size();
  for (size_t i = 0; i < count; ++i) {
    const PartitionId id{topic, PartitionIndex(static_cast<int32_t>(i))};
    if (Current(id).leader != kNoBroker && !Current(id).elr.empty()) Edit(id).elr.clear();
  }
}

void LeadershipPlan::SetFlushPolicy(TopicId topic, v1::FlushPolicy policy) {
  const size_t count = image_.FindTopic(topic)->partitions.size();
  for (size_t i = 0; i < count; ++i) {
    const PartitionId id{topic, PartitionIndex(static_cast<int32_t>(i))};
    if (Current(id).flush_policy != policy) Edit(id).flush_policy = policy;
  }
}

void LeadershipPlan::ElectWhereLeaderless() {
  for (const PartitionId& id : image_.PartitionsLedBy(kNoBroker)) ElectIfLeaderless(id);
}

void LeadershipPlan::AddRecords(BatchBuilder& builder) const {
  for (const auto& [id, edited] : edited_) {
    const Partition& before = *image_.FindPartition(id);
    Partition after = edited;
    if (after.leader != kNoBroker && after.isr.size() >= MinimumOf(id)) after.elr.clear();
    if (after == before) continue;
    after.partition_epoch = before.partition_epoch + 1;
    v1::MetadataRecord record;
    if (after.replicas == before.replicas) {
      *record.mutable_partition_change() = ToChangeRecord(id, after);
    } else {
      *record.mutable_partition() = ToRecord(id, after);
    }
    builder.Add(std::move(record));
  }
}

}  // namespace conclave::controller
