#include "controller/core/replica_reports.h"

#include <string>
#include <utility>

#include "common/text/utf8.h"

namespace conclave::controller {
namespace {

// Of a description that a broker gives.
constexpr size_t kMaxWhat = 500;

// Whole characters of it: what is none is no text to protobuf, which would write it and not read it
// again.
std::string Shortened(std::string what) {
  if (what.size() > kMaxWhat) what.resize(kMaxWhat);
  while (!IsValidUtf8(what)) what.pop_back();
  return what;
}

// nullopt: of no topic.
template <class Report>
std::optional<PartitionId> IdOf(const Report& report) {
  const auto topic = TopicId::FromBytes(report.topic_id());
  if (!topic) return std::nullopt;
  return PartitionId{*topic, PartitionIndex(report.partition())};
}

}  // namespace

bool ReplicaReports::Heard(BrokerId broker, const v1::BrokerHeartbeat& heartbeat) {
  Said said;
  for (const v1::DamagedReplica& damaged : heartbeat.damaged()) {
    if (const auto id = IdOf(damaged)) {
      said.damages[*id] = {Shortened(damaged.what()), damaged.open()};
    }
  }
  for (const v1::ReplicaEnd& end : heartbeat.replica_ends()) {
    if (const auto id = IdOf(end)) {
      said.ends[*id] = {LeaderEpoch(end.last_epoch()), Offset(end.log_end_offset())};
    }
  }
  if (said.damages.empty() && said.ends.empty()) {
    return brokers_.erase(broker) > 0;
  }
  brokers_[broker] = std::move(said);
  return true;
}

const ReplicaReports::Damages& ReplicaReports::DamagedOn(BrokerId broker) const {
  static const Damages kNone;
  const auto found = brokers_.find(broker);
  return found == brokers_.end() ? kNone : found->second.damages;
}

const ReplicaReports::Ends& ReplicaReports::EndsOn(BrokerId broker) const {
  static const Ends kNone;
  const auto found = brokers_.find(broker);
  return found == brokers_.end() ? kNone : found->second.ends;
}

bool ReplicaReports::IsDamaged(BrokerId broker, const PartitionId& id) const {
  return DamagedOn(broker).contains(id);
}

std::optional<ReplicaEnd> ReplicaReports::EndOf(BrokerId broker, const PartitionId& id) const {
  const Ends& ends = EndsOn(broker);
  const auto end = ends.find(id);
  if (end == ends.end()) return std::nullopt;
  return end->second;
}

}  // namespace conclave::controller
