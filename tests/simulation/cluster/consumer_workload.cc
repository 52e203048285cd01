#include "tests/simulation/cluster/consumer_workload.h"

#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {

using control_sim::ControlPlane;

ConsumerWorkload::ConsumerWorkload(Cluster& cluster, const Random& random, std::string topic,
                                   int partitions)
    : cluster_(cluster),
      topic_(std::move(topic)),
      partitions_(partitions),
      seen_(static_cast<size_t>(partitions)) {
  ConsumerOptions options;
  options.bootstrap = cluster.plane().BrokerEndpoints();
  options.reset = ResetPolicy::kNone;
  options.on_event = [this](const ConsumerEvent& event) {
    if (event.kind == ConsumerEvent::Kind::kTrouble) return;
    cluster_.Break("the consumer was told of a reset, a hole or a malformed batch: " +
                   Describe(event.status));
  };
  consumer_ = std::make_unique<Consumer>(options, cluster.transport(), cluster.executor(),
                                         random.Fork("consumer"));
}

void ConsumerWorkload::Start() {
  cluster_.executor().Post([this] {
    std::vector<Consumer::Assignment> all;
    for (int i = 0; i < partitions_; ++i) {
      all.push_back({{topic_, PartitionIndex(i)}, StartAt::At(Offset(0))});
    }
    consumer_->Assign(all);
    Poll();
  });
}

void ConsumerWorkload::Poll() {
  consumer_->Poll(100, cluster_.scheduler().now() + Duration::Seconds(1),
                  [this](Consumer::PollResult result) {
                    if (!result.ok()) {
                      return cluster_.Break("a poll failed: " + Describe(result.status()));
                    }
                    for (const PartitionRecords& records : *result) Take(records);
                    cluster_.executor().Post([this] { Poll(); });
                  });
}

void ConsumerWorkload::Take(const PartitionRecords& records) {
  std::vector<std::string>& seen = seen_[static_cast<size_t>(records.partition.partition.value())];
  for (const RecordView& record : records.records) {
    if (record.offset != Offset(static_cast<int64_t>(seen.size()))) {
      return cluster_.Break("polled offset " + ToString(record.offset) + " of partition " +
                            ToString(records.partition.partition) + " after " +
                            std::to_string(seen.size()) + " records");
    }
    seen.emplace_back(record.value.value_or("null"));
    ++polled_;
  }
}

bool ConsumerWorkload::IsAtEnd() {
  for (int i = 0; i < partitions_; ++i) {
    if (cluster_.ReadAll(topic_, i).size() > seen_[static_cast<size_t>(i)].size()) return false;
  }
  return true;
}

void ConsumerWorkload::CheckFinal() {
  for (int i = 0; i < partitions_; ++i) {
    const auto all = cluster_.ReadAll(topic_, i);
    const std::vector<std::string>& seen = seen_[static_cast<size_t>(i)];
    for (size_t offset = 0; offset < seen.size(); ++offset) {
      if (offset < all.size() && (!all[offset] || *all[offset] == seen[offset])) continue;
      return cluster_.Break("polled " + seen[offset] + " at " + std::to_string(offset) +
                            " of partition " + std::to_string(i) +
                            ", and it is not there any more");
    }
  }
}

}  // namespace conclave::cluster_sim
