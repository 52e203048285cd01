#include "tests/simulation/cluster/consumer_workload.h"

#include <iterator>
#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kProcess[] = "consumer";

}  // namespace

using control_sim::ControlPlane;

ConsumerWorkload::ConsumerWorkload(Cluster& cluster, const Random& random, Recorder& recorder,
                                   std::string topic, int partitions)
    : cluster_(cluster),
      recorder_(recorder),
      topic_(std::move(topic)),
      partitions_(partitions),
      next_(static_cast<size_t>(partitions)) {
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
      auto position = recorder_.Seen<history::Position>(kProcess, recorder_.Now());
      position.key = recorder_.KeyOf(topic_, i);
      position.from = 0;
      recorder_.Add(std::move(position));
    }
    consumer_->Assign(all);
    Poll();
  });
}

void ConsumerWorkload::Poll() {
  const history::Time invoke = recorder_.Now();
  consumer_->Poll(100, cluster_.scheduler().now() + Duration::Seconds(1),
                  [this, invoke](Consumer::PollResult result) {
                    if (!result.ok()) {
                      return cluster_.Break("a poll failed: " + Describe(result.status()));
                    }
                    for (const PartitionRecords& records : *result) Take(records, invoke);
                    cluster_.executor().Post([this] { Poll(); });
                  });
}

void ConsumerWorkload::Take(const PartitionRecords& records, history::Time invoke) {
  int64_t& next = next_[static_cast<size_t>(records.partition.partition.value())];
  recorder_.Polled(kProcess, records, invoke);
  for (const RecordView& record : records.records) {
    if (record.offset != Offset(next)) {
      return cluster_.Break("polled offset " + ToString(record.offset) + " of partition " +
                            ToString(records.partition.partition) + " after " +
                            std::to_string(next) + " records");
    }
    ++next;
    ++polled_;
  }
}

bool ConsumerWorkload::IsAtEnd() {
  for (int i = 0; i < partitions_; ++i) {
    const auto end = cluster_.EndOf(topic_, i);
    if (!end || end->value() > next_[static_cast<size_t>(i)]) return false;
  }
  return true;
}

}  // namespace conclave::cluster_sim
