#include "tests/simulation/cluster/data_invariants.h"

#include <algorithm>

#include "broker/log/partition_file.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

namespace {

constexpr uint64_t kSweepEvery = 4096;

}  // namespace

DataInvariants::DataInvariants(ControlPlane& plane)
    : plane_(plane), seen_(static_cast<size_t>(plane.nodes())) {
  for (int node = ControlPlane::kControllers; node < plane_.nodes(); ++node) {
    durable_.emplace(node, plane_.DiskOf(node));
  }
  plane_.SetReplicaObserver(
      [this](int node, broker::Replica& replica) { changed_.emplace_back(node, replica.id()); });
}

std::string DataInvariants::Check() {
  if (++checks_ % kSweepEvery == 0) return CheckAll();
  while (!changed_.empty()) {
    const auto [node, id] = changed_.back();
    changed_.pop_back();
    if (!plane_.IsUp(node)) continue;
    broker::Replica* replica = plane_.BrokerAt(node).replicas().Find(id);
    if (replica == nullptr) continue;
    std::string broken = CheckReplica(node, *replica);
    if (!broken.empty()) return broken;
  }
  return "";
}

std::string DataInvariants::CheckAll() {
  changed_.clear();
  for (int node = ControlPlane::kControllers; node < plane_.nodes(); ++node) {
    if (!plane_.IsUp(node)) continue;
    for (const auto& [id, replica] : plane_.BrokerAt(node).replicas().replicas()) {
      std::string broken = CheckReplica(node, *replica);
      if (!broken.empty()) return broken;
    }
  }
  return "";
}

std::string DataInvariants::CheckReplica(int node, broker::Replica& replica) {
  const std::string broken = Compare(node, replica, seen_[static_cast<size_t>(node)][replica.id()]);
  if (broken.empty()) return "";
  return ControlPlane::NameOf(node) + ", " + replica.name() + ": " + broken;
}

std::string DataInvariants::Compare(int node, broker::Replica& replica, Seen& seen) {
  const std::pair life(plane_.StartsOf(node), replica.life());
  if (seen.life != life) {
    if (seen.life.first == life.first) {
      ++counters_.replaced;
      damaged_.erase({node, replica.id()});
    } else if (replica.log().log_end() < seen.log_end) {
      ++counters_.recovered_shorter;
    }
    seen = Seen();
    seen.life = life;
    seen.verified = seen.log_start = replica.log().log_start();
    durable_.at(node).Forget(replica.log().directory());
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
  const Offset before = seen.log_end;
  const Offset end = replica.log().log_end();
  if (end < seen.log_end) {
    ++counters_.truncations;
    durable_.at(node).Forget(replica.log().directory());
  }
  seen.log_end = end;
  if (end < seen.verified) {
    return "truncated to " + ToString(end) + ", below its high watermark " +
           ToString(seen.verified);
  }
  const Offset start = replica.log().log_start();
  if (start > seen.log_start) {
    // Not one's own segments, but an end that was passed.
    if (start == end && start > before) ++counters_.begun_anew;
    ++counters_.log_starts_moved;
    durable_.at(node).Forget(replica.log().directory());
  }
  if (start < seen.log_start) return "its start went back to " + ToString(start);
  seen.log_start = start;
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

std::string DataInvariants::Verify(int node, broker::Replica& replica, Seen& seen) {
  std::map<Offset, Committed>& history = history_[replica.id()];
  // Retention may have removed, or a follower begun anew past, what was not looked at.
  seen.verified = std::max(seen.verified, replica.log().log_start());
  while (seen.verified < seen.high_watermark) {
    const auto read = replica.log().Read(seen.verified, size_t{1} << 20, seen.high_watermark);
    if (!read.ok() && damaged_.contains({node, replica.id()})) {
      seen.verified = seen.high_watermark;
      return "";
    }
    if (!read.ok()) return "cannot be read: " + Describe(read.status());
    if (read->batches.empty()) break;  // The mark is within a batch.
    const auto run = CheckBatchRun(read->batches);
    if (!run.ok()) return Describe(run.status());
    for (const PlacedBatch& placed : *run) {
      const BatchHeader& header = placed.header;
      // The log may start within a batch.
      const bool holds_start =
          header.base_offset < seen.verified && seen.verified == replica.log().log_start();
      if (header.base_offset != seen.verified && !holds_start) {
        return "a gap at " + ToString(seen.verified);
      }
      const auto known = history.find(header.base_offset);
      if (known == history.end()) {
        if (!history.empty() && history.rbegin()->second.next != header.base_offset) {
          return "committed batches do not follow each other at " + ToString(header.base_offset);
        }
        history[header.base_offset] = {header.crc, header.leader_epoch, header.next_offset()};
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
                                         Offset offset, size_t synced_copies) {
  ++counters_.acknowledged;
  const std::map<Offset, Committed>& history = history_[id];
  auto committed = history.upper_bound(offset);
  if (committed == history.begin() || (--committed)->second.next <= offset) {
    return "acknowledged at " + ToString(offset) + " and not committed anywhere";
  }
  const std::string directory = "data/" + PartitionDirectoryName(topic, id.index);
  size_t synced = 0;
  std::string holders;
  for (auto& [node, logs] : durable_) {
    if (!logs.Holds(directory, offset)) continue;
    ++synced;
    holders += " broker-" + std::to_string(node);
  }
  if (synced_copies > 0 && once_damaged_.contains(id)) --synced_copies;
  if (synced >= synced_copies) return "";
  return "acknowledged at " + ToString(offset) + " with " + std::to_string(synced) +
         " synced copies:" + holders;
}

}  // namespace conclave::cluster_sim
