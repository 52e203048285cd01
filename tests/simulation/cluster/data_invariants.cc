#include "tests/simulation/cluster/data_invariants.h"

#include <algorithm>

#include "broker/log/partition_file.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

namespace {

// The cluster's own topics have many partitions, in which little happens.
constexpr uint64_t kSweepEvery = 64;

}  // namespace

std::string DataInvariants::Check() {
  const bool sweep = ++checks_ % kSweepEvery == 0;
  for (int node = ControlPlane::kControllers; node < ControlPlane::kNodes; ++node) {
    if (!plane_.IsUp(node)) continue;
    for (const auto& [id, replica] : plane_.BrokerAt(node).replicas().replicas()) {
      if (!sweep && replica->name().starts_with("__")) continue;
      Seen& seen = seen_[static_cast<size_t>(node)][id];
      std::string broken = CheckReplica(node, *replica, seen);
      if (!broken.empty()) {
        return ControlPlane::NameOf(node) + ", " + replica->name() + ": " + broken;
      }
    }
  }
  return "";
}

std::string DataInvariants::CheckReplica(int node, broker::Replica& replica, Seen& seen) {
  if (seen.life != plane_.StartsOf(node)) {
    seen = Seen();
    seen.life = plane_.StartsOf(node);
  }
  if (const replication::LeaderReplica* leader = replica.leader()) {
    const auto [it, added] =
        leaders_.emplace(std::pair(replica.id(), leader->leader_epoch()), BrokerId(node));
    if (added) ++counters_.leaders;
    if (it->second != BrokerId(node)) {
      return "leads in epoch " + ToString(leader->leader_epoch()) + ", as " +
             ControlPlane::NameOf(it->second.value()) + " did";
    }
  }
  const Offset end = replica.log().log_end();
  if (end < seen.log_end) ++counters_.truncations;
  seen.log_end = end;
  if (end < seen.verified) {
    return "truncated to " + ToString(end) + ", below its high watermark " +
           ToString(seen.verified);
  }
  const Offset high_watermark = replica.high_watermark();
  if (high_watermark == seen.high_watermark) return "";
  if (high_watermark < seen.high_watermark) {
    return "high watermark fell from " + ToString(seen.high_watermark) + " to " +
           ToString(high_watermark);
  }
  if (high_watermark > end) return "high watermark beyond the log's end";
  seen.high_watermark = high_watermark;
  return Verify(node, replica, seen);
}

std::string DataInvariants::Verify(int, broker::Replica& replica, Seen& seen) {
  std::map<Offset, Committed>& history = history_[replica.id()];
  while (seen.verified < seen.high_watermark) {
    const auto read = replica.log().Read(seen.verified, size_t{1} << 20, seen.high_watermark);
    if (!read.ok()) return "cannot be read: " + Describe(read.status());
    if (read->batches.empty()) break;  // The mark is within a batch.
    const auto run = CheckBatchRun(read->batches);
    if (!run.ok()) return Describe(run.status());
    for (const PlacedBatch& placed : *run) {
      const BatchHeader& header = placed.header;
      if (header.base_offset != seen.verified) return "a gap at " + ToString(seen.verified);
      const auto known = history.find(header.base_offset);
      if (known == history.end()) {
        if (!history.empty() && history.rbegin()->second.next != header.base_offset) {
          return "committed batches do not follow each other at " + ToString(header.base_offset);
        }
        const uint64_t begin = history.empty() ? 0 : history.rbegin()->second.end_position;
        history[header.base_offset] = {header.crc, header.leader_epoch, header.next_offset(),
                                       begin + static_cast<uint64_t>(header.size_bytes())};
        ++counters_.batches_committed;
      } else if (known->second.crc != header.crc || known->second.epoch != header.leader_epoch ||
                 known->second.next != header.next_offset()) {
        return "two histories: another batch was committed at " + ToString(header.base_offset);
      } else {
        ++counters_.batches_compared;
      }
      seen.verified = header.next_offset();
    }
  }
  return "";
}

std::string DataInvariants::Acknowledged(const PartitionId& id, const std::string& topic,
                                         Offset offset, size_t min_isr) {
  ++counters_.acknowledged;
  const std::map<Offset, Committed>& history = history_[id];
  auto committed = history.upper_bound(offset);
  if (committed == history.begin() || (--committed)->second.next <= offset) {
    return "acknowledged at " + ToString(offset) + " and not committed anywhere";
  }
  const std::string file = "data/" + PartitionDirectoryName(topic, id.index) + "/" +
                           "00000000000000000000.log";
  size_t synced = 0;
  for (int node = ControlPlane::kControllers; node < ControlPlane::kNodes; ++node) {
    if (plane_.DiskOf(node).DurableSize(file) >= committed->second.end_position) ++synced;
  }
  if (synced >= min_isr) return "";
  return "acknowledged at " + ToString(offset) + " with " + std::to_string(synced) +
         " synced copies";
}

}  // namespace conclave::cluster_sim
