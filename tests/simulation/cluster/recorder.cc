#include "tests/simulation/cluster/recorder.h"

#include <optional>

#include "broker/partition/replica.h"
#include "broker/partition/replica_set.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"
#include "tests/history/check.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

history::KeyIndex Recorder::KeyOf(const std::string& topic, int partition) {
  const auto [known, added] = keys_.try_emplace({topic, partition}, history::KeyIndex::kNone);
  if (added) {
    const PartitionId id = cluster_.IdOf(topic, partition);
    known->second = history_.KeyOf(id.topic.ToString(), partition);
  }
  return known->second;
}

void Recorder::Polled(std::string_view process, const PartitionRecords& records,
                      history::Time invoke, std::string_view group) {
  auto poll = Seen<history::Poll>(process, invoke);
  poll.key = KeyOf(records.partition.topic, records.partition.partition.value());
  if (!group.empty()) poll.group = NameOf(group);
  poll.records.reserve(records.records.size());
  for (const RecordView& record : records.records) {
    poll.records.push_back({record.offset.value(), std::string(record.value.value_or("null"))});
  }
  Add(std::move(poll));
}

void Recorder::ReadCommitted(std::string_view process, std::string_view group,
                             history::KeyIndex key, int64_t offset, history::Time invoke) {
  auto read = Seen<history::CommittedRead>(process, invoke);
  read.group = NameOf(group);
  read.key = key;
  read.offset = offset;
  Add(std::move(read));
}

std::string Recorder::LifeOf(int node) {
  return ControlPlane::NameOf(node) + "#" + std::to_string(cluster_.plane().StartsOf(node));
}

void Recorder::Observe(int node, const MetadataImage& image, const std::string& topic) {
  const Topic* found = image.FindTopic(std::string_view(topic));
  if (found == nullptr) return;
  for (size_t i = 0; i < found->partitions.size(); ++i) {
    const Partition& partition = found->partitions[i];
    const Known now{cluster_.plane().StartsOf(node), partition.leader_epoch, partition.leader};
    Known& known = known_[{node, static_cast<int>(i)}];
    if (known.life == now.life && known.epoch == now.epoch && known.leader == now.leader) continue;
    known = now;
    auto seen = Seen<history::Metadata>(LifeOf(node), Now());
    seen.key = history_.KeyOf(found->id.ToString(), static_cast<int32_t>(i));
    seen.leader = {now.epoch.value(), now.leader.value()};
    Add(std::move(seen));
  }
}

void Recorder::ObserveActive(int controller, Term term) {
  auto seen = Seen<history::Metadata>(LifeOf(controller), Now());
  seen.controller = {static_cast<int64_t>(term.value()), controller};
  Add(std::move(seen));
}

void Recorder::RecordEnd(const std::string& topic, int partitions) {
  RecordLeaders();
  for (int i = 0; i < partitions; ++i) {
    ReadToTheEnd(topic, i);
    for (int node = ControlPlane::kControllers; node < cluster_.plane().nodes(); ++node) {
      if (cluster_.plane().IsUp(node)) DumpReplica(node, topic, i);
    }
  }
}

void Recorder::RecordLeaders() {
  for (const auto& [when, leader] : cluster_.leaders()) {
    const auto& [id, epoch] = when;
    auto seen = Seen<history::Metadata>("replicas", Now());
    seen.key = history_.KeyOf(id.topic.ToString(), id.index.value());
    seen.leader = {epoch.value(), leader.value()};
    Add(std::move(seen));
  }
}

void Recorder::ReadToTheEnd(const std::string& topic, int partition) {
  auto read = Seen<history::FinalRead>("final read", Now());
  read.key = KeyOf(topic, partition);
  const auto values = cluster_.ReadAll(topic, partition);
  read.log_start = static_cast<int64_t>(values.size());
  for (size_t offset = 0; offset < values.size(); ++offset) {
    if (!values[offset]) continue;
    if (read.records.empty()) read.log_start = static_cast<int64_t>(offset);
    read.records.push_back({static_cast<int64_t>(offset), *values[offset]});
  }
  Add(std::move(read));
}

void Recorder::DumpReplica(int node, const std::string& topic, int partition) {
  broker::Replica* replica =
      cluster_.plane().BrokerAt(node).replicas().Find(cluster_.IdOf(topic, partition));
  if (replica == nullptr) return;
  const history::KeyIndex key = KeyOf(topic, partition);
  const PartitionLog& log = replica->log();
  const Offset high_watermark = replica->high_watermark();
  auto seen = Seen<history::Metadata>(LifeOf(node), Now());
  seen.key = key;
  seen.log = {log.log_start().value(), high_watermark.value(), log.log_end().value()};
  Add(std::move(seen));
  auto dump = Seen<history::Dump>(LifeOf(node), Now());
  dump.key = key;
  dump.log_start = log.log_start().value();
  dump.high_watermark = high_watermark.value();
  // A follower may have heard of an older mark than others.
  for (Offset at = log.log_start(); at < log.log_end();) {
    const auto read = replica->log().Read(at, size_t{1} << 20, log.log_end());
    if (!read.ok()) return cluster_.Break(LifeOf(node) + ": " + Describe(read.status()));
    if (read->batches.empty()) break;
    const auto run = CheckBatchRun(read->batches);
    if (!run.ok()) return cluster_.Break(LifeOf(node) + ": " + Describe(run.status()));
    for (const PlacedBatch& placed : *run) {
      dump.rows.push_back({placed.header.base_offset.value(), placed.header.leader_epoch.value(),
                           placed.header.crc});
    }
    at = read->next_offset;
  }
  Add(std::move(dump));
}

std::string Recorder::Check() {
  const history::CheckReport report = history::Check(history_);
  if (report.clean()) return "";
  std::string broken = "the history of the clients is none of a log: ";
  int last = 0;
  for (const history::Violation& violation : report.violations) {
    const std::string text = "rule " + std::to_string(violation.rule) + ": " + violation.message;
    cluster_.plane().Say(text);
    if (violation.rule == last) continue;
    broken += (last == 0 ? "" : "; ") + text;
    last = violation.rule;
  }
  return broken;
}

}  // namespace conclave::cluster_sim
