#include "tests/simulation/cluster/metadata_coverage.h"

#include <algorithm>

namespace conclave::cluster_sim {

void MetadataCoverage::Observe(const MetadataImage& image) {
  if (image.position().index <= newest_.index) return;
  newest_ = image.position();
  for (const auto& [id, topic] : image.topics()) {
    const auto [known, added] = partitions_.try_emplace(id, topic.partitions);
    if (added) continue;
    std::vector<Partition>& before = known->second;
    for (size_t i = 0; i < topic.partitions.size(); ++i) {
      const Partition& now = topic.partitions[i];
      if (i >= before.size()) {
        before.push_back(now);
      } else if (before[i].partition_epoch != now.partition_epoch) {
        Compare(topic, before[i], now);
        before[i] = now;
      }
    }
  }
  for (const auto& [id, broker] : image.brokers()) {
    const auto [known, added] = brokers_.try_emplace(id, broker);
    if (added || known->second == broker) continue;
    Compare(known->second, broker);
    known->second = broker;
  }
}

void MetadataCoverage::Compare(const Topic& topic, const Partition& before,
                               const Partition& after) {
  const auto left = [](const std::vector<BrokerId>& from, const Partition& now) {
    return std::any_of(from.begin(), from.end(), [&](BrokerId id) { return !now.InIsr(id); });
  };
  if (left(before.isr, after)) coverage_.Count("ISRs shrunk");
  if (left(after.isr, before)) coverage_.Count("ISRs expanded");
  if (after.leader == kNoBroker && before.leader != kNoBroker) {
    coverage_.Count("partitions without a leader");
  }
  if (after.leader_epoch == before.leader_epoch || after.leader == kNoBroker) return;
  coverage_.Count("leaders elected");
  if (topic.name == "__consumer_offsets" && after.leader != before.leader) {
    coverage_.Count("coordinators moved");
  }
}

void MetadataCoverage::Compare(const Broker& before, const Broker& after) {
  if (after.epoch != before.epoch) coverage_.Count("brokers registered again");
  if (after.fenced && !before.fenced) coverage_.Count("brokers fenced");
  if (!after.fenced && before.fenced) coverage_.Count("brokers unfenced");
  if (after.stopping && !before.stopping) coverage_.Count("controlled shutdowns");
}

}  // namespace conclave::cluster_sim
