#include "controller/core/controller_core.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "controller/core/batch_builder.h"
#include "controller/core/broker_records.h"
#include "controller/core/isr_changes.h"
#include "controller/core/leader_election.h"
#include "controller/core/producer_ids.h"
#include "controller/core/registration.h"
#include "controller/core/topic_changes.h"

namespace conclave::controller {

ControllerCore::ControllerCore(Options options, const Random& random)
    : session_timeout_(options.broker_session_timeout),
      random_(random.Fork("controller")),
      sessions_(options.broker_session_timeout, options.broker_session_grace),
      lag_(options.broker_session_timeout) {}

absl::Status ControllerCore::CheckActive() const {
  if (active_) return absl::OkStatus();
  return MakeError(v1::NOT_CONTROLLER, "this is not the active controller; ask the one that is");
}

const MetadataImage& ControllerCore::speculative() const {
  CHECK(active_) << "only an active controller has a speculative image";
  return speculative_;
}

// --- What the log says

absl::Status ControllerCore::Restore(const v1::MetadataImageProto& proto,
                                     MetadataPosition position) {
  CHECK(!active_) << "an active controller has the whole log";
  auto image = MetadataImage::FromProto(proto, position);
  if (!image.ok()) return image.status();
  committed_ = *std::move(image);
  return absl::OkStatus();
}

absl::Status ControllerCore::Committed(MetadataPosition position, const v1::MetadataBatch& batch,
                                       MetadataDelta* delta) {
  if (active_) {
    CHECK_LE(position.index, speculative_.position().index)
        << "a batch is committed that this active controller did not append";
  }
  return committed_.Apply(position, batch, delta);
}

// --- Leadership

Batches ControllerCore::Activate(Term term, Now now) {
  CHECK(!active_) << "active already, in term " << term_;
  active_ = true;
  term_ = term;
  speculative_ = committed_;
  for (const auto& [id, broker] : speculative_.brokers()) {
    if (!broker.fenced) sessions_.BeginAfterChangeOfController(id, broker.epoch, now.time);
  }
  LeadershipPlan plan(speculative_, reports_);
  plan.ElectWhereLeaderless();
  BatchBuilder builder(now.wall);
  plan.AddRecords(builder);
  return builder.Take();
}

void ControllerCore::Deactivate() {
  active_ = false;
  speculative_ = MetadataImage();
  sessions_.Clear();
  lag_.Clear();
  reports_.Clear();
  fenced_reasons_.clear();
}

void ControllerCore::Appended(MetadataPosition position, const v1::MetadataBatch& batch,
                              MonotonicTime now) {
  CHECK(active_) << "only an active controller appends";
  MetadataDelta delta;
  const absl::Status status = speculative_.Apply(position, batch, &delta);
  CHECK(status.ok()) << "own records contradict the image: " << status;
  for (BrokerId id : delta.brokers) {
    const Broker* broker = speculative_.FindBroker(id);
    if (broker == nullptr) {
      sessions_.Forget(id);
      reports_.Forget(id);
    } else if (broker->epoch.value() == static_cast<int64_t>(position.index.value())) {
      // A registration: the old incarnation's session ends with it.
      sessions_.Begin(id, broker->epoch, now);
      fenced_reasons_.erase(id);
      lag_.Forget(id);
      reports_.Forget(id);
    }
  }
}

absl::StatusOr<Change<NoResponse>> ControllerCore::Bootstrap(ClusterId id, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  const ClusterId known = speculative_.cluster_id();
  if (known == id) return Change<NoResponse>();
  if (!known.IsNone()) {
    return MakeError(v1::INCONSISTENT_CLUSTER_ID,
                     absl::StrCat("this controller was formatted for cluster ", id.ToString(),
                                  ", and its log is that of cluster ", known.ToString(),
                                  "; check which data directory it was started on"));
  }
  BatchBuilder builder(now.wall);
  v1::MetadataRecord record;
  record.mutable_cluster()->set_cluster_id(id.ToBytes());
  builder.Add(std::move(record));
  return Change<NoResponse>{builder.Take(), {}};
}

// --- Brokers

absl::StatusOr<Change<v1::RegisterBrokerResponse>> ControllerCore::RegisterBroker(
    const v1::RegisterBrokerRequest& request, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::RegisterBroker(speculative_, sessions_, reports_, request, random_, now);
}

absl::StatusOr<Change<NoResponse>> ControllerCore::UnregisterBroker(BrokerId broker, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::UnregisterBroker(speculative_, sessions_, broker, now);
}

absl::Status ControllerCore::StreamOpened(BrokerId broker, BrokerEpoch epoch, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  const auto found = FindIncarnation(speculative_, broker, epoch);
  if (!found.ok()) return found.status();
  sessions_.Opened(broker, epoch, now.time);
  return absl::OkStatus();
}

void ControllerCore::StreamBroken(BrokerId broker, BrokerEpoch epoch, Now now) {
  if (active_) sessions_.Broken(broker, epoch, now.time);
}

absl::StatusOr<Change<v1::BrokerHeartbeatReply>> ControllerCore::Heartbeat(
    const v1::BrokerHeartbeat& heartbeat, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  if (auto status = CheckClusterId(speculative_, heartbeat.cluster_id()); !status.ok()) {
    return status;
  }
  const BrokerId id(heartbeat.broker_id());
  const auto found = FindIncarnation(speculative_, id, BrokerEpoch(heartbeat.broker_epoch()));
  if (!found.ok()) return found.status();
  const Broker& broker = **found;
  sessions_.Heard(id, broker.epoch, now.time);
  const bool reports = reports_.Heard(id, heartbeat);
  const LogIndex at(heartbeat.metadata_index());
  const LogIndex commit_index = committed_.position().index;
  const bool is_behind = lag_.Observe(id, at, commit_index, now.time);
  std::string why_fenced = WhyFenced(broker, heartbeat, is_behind);

  Change<v1::BrokerHeartbeatReply> change;
  if (heartbeat.wants_shutdown()) {
    change.batches = BeginStop(broker, now);
    change.response.set_may_stop(change.batches.empty() && MayStop(broker));
  } else if (broker.fenced && why_fenced.empty()) {
    change.batches = Unfence(broker, now);
  } else if (!broker.fenced && is_behind) {
    fenced_reasons_[id] = why_fenced;
    change.batches = Fence({{id, broker.epoch, now.time, why_fenced}}, now);
  } else if (reports) {
    change.batches = ActOnReports(broker, now);
  }

  const Broker* visible = committed_.FindBroker(id);
  change.response.set_commit_index(commit_index.value());
  change.response.set_term(term_.value());
  if (visible == nullptr || visible->epoch != broker.epoch || visible->fenced) {
    change.response.set_fenced(true);
    if (why_fenced.empty()) why_fenced = "its unfencing is being committed";
    const auto earlier = fenced_reasons_.find(id);
    if (earlier != fenced_reasons_.end() && earlier->second != why_fenced) {
      absl::StrAppend(&why_fenced, "; it was fenced because ", earlier->second);
    }
    change.response.set_fenced_reason(std::move(why_fenced));
  }
  return change;
}

std::string ControllerCore::WhyFenced(const Broker& broker, const v1::BrokerHeartbeat& heartbeat,
                                      bool is_behind) const {
  const auto registered_at = static_cast<uint64_t>(broker.epoch.value());
  if (is_behind) {
    return absl::StrCat("its metadata stands at index ", heartbeat.metadata_index(),
                        " and has been behind by ", session_timeout_.milliseconds(),
                        " ms or more; index ", committed_.position().index.value(),
                        " is committed");
  }
  if (heartbeat.wants_shutdown() || broker.stopping) return "it is stopping";
  if (!heartbeat.ready()) return "it has not recovered its logs yet";
  if (heartbeat.metadata_index() < registered_at) {
    return absl::StrCat("its metadata stands at index ", heartbeat.metadata_index(),
                        ", before its registration at ", registered_at);
  }
  return "";
}

Batches ControllerCore::Fence(const std::vector<Sessions::Ended>& ended, Now now) const {
  std::vector<LeadershipPlan::Fenced> brokers;
  for (const Sessions::Ended& e : ended) brokers.push_back({e.broker, e.why});
  LeadershipPlan plan(speculative_, reports_);
  plan.Fence(brokers);
  BatchBuilder builder(now.wall);
  plan.AddRecords(builder);
  // Last, since a fenced broker leads nothing.
  for (const Sessions::Ended& e : ended) {
    builder.Add(FencedRecord(*speculative_.FindBroker(e.broker), true));
  }
  return builder.Take();
}

Batches ControllerCore::Unfence(const Broker& broker, Now now) const {
  BatchBuilder builder(now.wall);
  // First, since a leader is not fenced.
  builder.Add(FencedRecord(broker, false));
  LeadershipPlan plan(speculative_, reports_);
  PlanByReports(broker, plan);
  plan.Unfence(broker.id);
  plan.AddRecords(builder);
  return builder.Take();
}

void ControllerCore::PlanByReports(const Broker& broker, LeadershipPlan& plan) const {
  plan.TakeOutDamaged(broker.id);
  for (const auto& [id, end] : reports_.EndsOn(broker.id)) {
    if (speculative_.FindPartition(id) != nullptr) plan.ElectIfLeaderless(id);
  }
}

Batches ControllerCore::ActOnReports(const Broker& broker, Now now) const {
  LeadershipPlan plan(speculative_, reports_);
  PlanByReports(broker, plan);
  BatchBuilder builder(now.wall);
  plan.AddRecords(builder);
  return builder.Take();
}

Batches ControllerCore::BeginStop(const Broker& broker, Now now) const {
  BatchBuilder builder(now.wall);
  if (broker.fenced) return {};
  if (!broker.stopping) builder.Add(StoppingRecord(broker));
  // Again with every heartbeat: what could not move before may be able to now.
  LeadershipPlan plan(speculative_, reports_);
  PlanByReports(broker, plan);
  plan.MoveAwayFrom(broker.id);
  plan.AddRecords(builder);
  return builder.Take();
}

// BeginStop had nothing to do, so whatever the broker leads cannot move. What counts is that the
// moves are committed.
bool ControllerCore::MayStop(const Broker& broker) const {
  const Broker* visible = committed_.FindBroker(broker.id);
  if (visible == nullptr || visible->epoch != broker.epoch) return false;
  if (!visible->fenced && !visible->stopping) return false;
  return committed_.PartitionsLedBy(broker.id) == speculative_.PartitionsLedBy(broker.id);
}

Batches ControllerCore::Tick(Now now) {
  if (!active_) return {};
  std::vector<Sessions::Ended> ended = sessions_.Expire(now.time);
  for (const Sessions::Ended& e : ended) {
    fenced_reasons_[e.broker] = e.why;
    lag_.Forget(e.broker);
    reports_.Forget(e.broker);
  }
  std::erase_if(ended, [this](const Sessions::Ended& e) {
    const Broker* broker = speculative_.FindBroker(e.broker);
    return broker == nullptr || broker->epoch != e.epoch || broker->fenced;
  });
  return Fence(ended, now);
}

MonotonicTime ControllerCore::NextDeadline() const {
  return active_ ? sessions_.NextDeadline() : MonotonicTime::Never();
}

// --- Partitions and topics

absl::StatusOr<Change<v1::AlterPartitionResponse>> ControllerCore::AlterPartition(
    const v1::AlterPartitionRequest& request, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::AlterPartition(speculative_, request, now);
}

absl::StatusOr<Change<v1::AllocateProducerIdsResponse>> ControllerCore::AllocateProducerIds(
    const v1::AllocateProducerIdsRequest& request, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::AllocateProducerIds(speculative_, request, now);
}

absl::StatusOr<Change<v1::CreateTopicsResponse>> ControllerCore::CreateTopics(
    const v1::CreateTopicsRequest& request, Requester requester, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::CreateTopics(speculative_, request, requester, random_, now);
}

absl::StatusOr<Change<v1::DeleteTopicsResponse>> ControllerCore::DeleteTopics(
    const v1::DeleteTopicsRequest& request, Requester requester, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::DeleteTopics(speculative_, request, requester, now);
}

absl::StatusOr<Change<v1::AlterConfigsResponse>> ControllerCore::AlterConfigs(
    const v1::AlterConfigsRequest& request, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::AlterConfigs(speculative_, reports_, request, now);
}

absl::StatusOr<Change<v1::ElectLeadersResponse>> ControllerCore::ElectLeaders(
    const v1::ElectLeadersRequest& request, Now now) {
  if (auto status = CheckActive(); !status.ok()) return status;
  return controller::ElectLeaders(speculative_, reports_, request, now);
}

}  // namespace conclave::controller
