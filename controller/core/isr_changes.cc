#include "controller/core/isr_changes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/topic_config.h"
#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/broker_records.h"
#include "controller/core/leadership_plan.h"

namespace conclave::controller {
namespace {

// One partition of a request.
class IsrChange {
 public:
  IsrChange(const MetadataImage& image, BrokerId proposer, const v1::PartitionAlteration& proposal)
      : image_(image), proposer_(proposer), proposal_(proposal) {}

  // The partition as it would be. A proposal of the ISR as it is raises the partition epoch all the
  // same: with it a leader makes sure that nothing it asked for earlier can still be applied.
  absl::StatusOr<Partition> Check() {
    if (auto status = Locate(); !status.ok()) return status;
    if (auto status = CheckEpochs(); !status.ok()) return status;
    if (proposal_.hand_over()) return HandOver();
    if (auto status = CheckMembers(); !status.ok()) return status;
    Partition after = *before_;
    ChangeIsr(after, ProposedIsr(), Minimum());
    if (proposal_.synced() && !IsUnsyncedAcknowledged(image_.FindTopic(id_.topic)->configs)) {
      after.flush_policy = v1::FLUSH_POLICY_FSYNC;
    }
    after.partition_epoch = before_->partition_epoch + 1;
    return after;
  }

  const PartitionId& id() const { return id_; }

 private:
  absl::Status Locate() {
    const auto topic = TopicId::FromBytes(proposal_.topic_id());
    if (!topic || image_.FindTopic(*topic) == nullptr) {
      return MakeError(v1::UNKNOWN_TOPIC_ID,
                       absl::StrCat("topic ", topic ? topic->ToString() : "(no id)",
                                    " does not exist; it may have been deleted"));
    }
    id_ = {*topic, PartitionIndex(proposal_.partition())};
    before_ = image_.FindPartition(id_);
    if (before_ == nullptr) {
      return MakeError(v1::UNKNOWN_TOPIC_OR_PARTITION,
                       absl::StrCat("topic ", image_.FindTopic(*topic)->name, " has no partition ",
                                    proposal_.partition()));
    }
    name_ = absl::StrCat(image_.FindTopic(*topic)->name, "-", id_.index.value());
    return absl::OkStatus();
  }

  // To a member of the ISR, else of the ELR: whoever was told that records are committed.
  absl::StatusOr<Partition> HandOver() const {
    const auto may_lead = [this](BrokerId id, bool in) {
      const Broker* broker = image_.FindBroker(id);
      return in && id != before_->leader && broker != nullptr && broker->IsEligible();
    };
    Partition after = *before_;
    after.leader = kNoBroker;
    for (const PartitionReplica& replica : before_->replicas) {
      if (may_lead(replica.broker, before_->InIsr(replica.broker))) {
        after.leader = replica.broker;
        break;
      }
      if (after.leader == kNoBroker && may_lead(replica.broker, before_->InElr(replica.broker))) {
        after.leader = replica.broker;
      }
    }
    if (after.leader == kNoBroker) {
      return MakeError(
          v1::ELIGIBLE_LEADERS_NOT_AVAILABLE,
          absl::StrCat("no broker but ", before_->leader.value(), " may lead ", name_));
    }
    if (!before_->InIsr(after.leader)) ChangeIsr(after, {after.leader}, Minimum());
    after.leader_epoch = before_->leader_epoch + 1;
    after.partition_epoch = before_->partition_epoch + 1;
    return after;
  }

  size_t Minimum() const {
    return EffectiveMinInsyncReplicas(image_.FindTopic(id_.topic)->configs,
                                      before_->replicas.size());
  }

  v1::NodeHint LeaderHint() const {
    v1::NodeHint hint;
    hint.set_node_id(before_->leader.value());
    hint.set_epoch(before_->leader_epoch.value());
    const Broker* leader = image_.FindBroker(before_->leader);
    if (leader != nullptr) hint.set_endpoint(leader->endpoint);
    return hint;
  }

  absl::Status CheckEpochs() const {
    const LeaderEpoch epoch(proposal_.leader_epoch());
    const std::string both = absl::StrCat("leader epoch ", epoch.value(), " of ", name_, " is not ",
                                          before_->leader_epoch.value());
    if (epoch < before_->leader_epoch) {
      return MakeError(v1::FENCED_LEADER_EPOCH, absl::StrCat(both, ": another election came since"),
                       LeaderHint());
    }
    if (epoch > before_->leader_epoch) {
      return MakeError(v1::UNKNOWN_LEADER_EPOCH,
                       absl::StrCat(both, ": none of that number was held"), LeaderHint());
    }
    if (before_->leader != proposer_) {
      return MakeError(v1::NOT_LEADER_OR_FOLLOWER,
                       absl::StrCat("broker ", proposer_.value(), " does not lead ", name_,
                                    "; broker ", before_->leader.value(), " does"),
                       LeaderHint());
    }
    if (PartitionEpoch(proposal_.partition_epoch()) != before_->partition_epoch) {
      return MakeError(
          v1::INVALID_UPDATE_VERSION,
          absl::StrCat(name_, " is at partition epoch ", before_->partition_epoch.value(),
                       ", the proposal is based on ", proposal_.partition_epoch(),
                       "; wait for the metadata and propose again"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMembers() const {
    std::set<BrokerId> seen;
    for (const v1::IsrMember& member : proposal_.new_isr()) {
      const BrokerId id(member.broker_id());
      if (!seen.insert(id).second || !before_->HasReplica(id)) {
        return MakeError(
            v1::INVALID_REQUEST,
            absl::StrCat("the ISR proposed for ", name_, " names broker ", id.value(),
                         before_->HasReplica(id) ? " twice" : ", which has no replica"));
      }
      if (auto status = CheckEligible(id, BrokerEpoch(member.broker_epoch())); !status.ok()) {
        return status;
      }
    }
    if (!seen.contains(proposer_)) {
      return MakeError(v1::INVALID_REQUEST,
                       absl::StrCat("the ISR proposed for ", name_,
                                    " leaves out its leader, broker ", proposer_.value()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckEligible(BrokerId id, BrokerEpoch epoch) const {
    const auto ineligible = [&](std::string why) {
      return MakeError(v1::INELIGIBLE_REPLICA,
                       absl::StrCat("broker ", id.value(), " cannot be in sync for ", name_, ": ",
                                    std::move(why)));
    };
    const Broker* broker = image_.FindBroker(id);
    if (broker == nullptr) return ineligible("it is not registered");
    if (broker->epoch != epoch) {
      return ineligible(absl::StrCat("it acknowledged under broker epoch ", epoch.value(),
                                     " and now has ", broker->epoch.value()));
    }
    if (broker->fenced) return ineligible("it is fenced");
    // One that is in may stay while it stops, else a proposal that only drops another would fail.
    if (broker->stopping && !before_->InIsr(id)) return ineligible("it is stopping");
    return absl::OkStatus();
  }

  std::vector<BrokerId> ProposedIsr() const {
    std::vector<BrokerId> isr;
    for (const v1::IsrMember& member : proposal_.new_isr()) isr.emplace_back(member.broker_id());
    return before_->InAssignmentOrder(isr);
  }

  const MetadataImage& image_;
  const BrokerId proposer_;
  const v1::PartitionAlteration& proposal_;
  PartitionId id_;
  const Partition* before_ = nullptr;
  // "topic-3", for messages.
  std::string name_;
};

void FillResult(const Partition& partition, v1::PartitionAlterationResult& result) {
  result.set_leader(partition.leader.value());
  result.set_leader_epoch(partition.leader_epoch.value());
  result.set_partition_epoch(partition.partition_epoch.value());
  for (BrokerId broker : partition.isr) result.add_isr(broker.value());
}

}  // namespace

absl::StatusOr<Change<v1::AlterPartitionResponse>> AlterPartition(
    const MetadataImage& image, const v1::AlterPartitionRequest& request, Now now) {
  const BrokerId proposer(request.broker_id());
  const auto broker = FindIncarnation(image, proposer, BrokerEpoch(request.broker_epoch()));
  if (!broker.ok()) return broker.status();
  Change<v1::AlterPartitionResponse> change;
  BatchBuilder builder(now.wall);
  std::set<PartitionId> changed;
  for (const v1::PartitionAlteration& proposal : request.partitions()) {
    v1::PartitionAlterationResult& result = *change.response.add_partitions();
    result.set_topic_id(proposal.topic_id());
    result.set_partition(proposal.partition());
    IsrChange isr_change(image, proposer, proposal);
    auto after = isr_change.Check();
    if (after.ok() && changed.contains(isr_change.id())) {
      after = MakeError(v1::INVALID_REQUEST, "the request changes this partition twice");
    }
    if (!after.ok()) {
      *result.mutable_error() = ErrorFromStatus(after.status());
      continue;
    }
    FillResult(*after, result);
    changed.insert(isr_change.id());
    v1::MetadataRecord record;
    *record.mutable_partition_change() = ToChangeRecord(isr_change.id(), *after);
    builder.Add(std::move(record));
  }
  change.batches = builder.Take();
  return change;
}

}  // namespace conclave::controller
