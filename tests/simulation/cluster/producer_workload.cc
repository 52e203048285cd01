#include "tests/simulation/cluster/producer_workload.h"

#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {

namespace {

// Values tell who sent them.
constexpr uint64_t kValuesOfOne = 1'000'000'000;

}  // namespace

ProducerWorkload::ProducerWorkload(Cluster& cluster, const Random& random, std::string topic,
                                   int partitions, int number)
    : cluster_(cluster),
      random_(random.Fork("values")),
      topic_(std::move(topic)),
      partitions_(partitions),
      number_(static_cast<uint64_t>(number)),
      host_(cluster.scheduler(), cluster.plane().network(), "producer-" + std::to_string(number)) {
  ProducerOptions options;
  options.bootstrap = cluster.plane().BrokerEndpoints();
  options.delivery_timeout =
      Duration::Seconds(random_.Chance(0.3) ? 5 : 60);  // The short one runs out in most faults.
  options.request_timeout = Duration::Seconds(random_.Chance(0.3) ? 2 : 10);
  options.compression = random_.Chance(0.5) ? Compression::kLz4 : Compression::kNone;
  producer_ = std::make_unique<Producer>(options, host_.transport(), host_.executor(),
                                         random.Fork("producer"));
}

ProducerWorkload::~ProducerWorkload() { host_.executor().Stop(); }

void ProducerWorkload::Pause(Duration how_long) {
  host_.executor().Pause();
  cluster_.scheduler().After(how_long, [this] { host_.executor().Resume(); });
}

void ProducerWorkload::Start(Duration mean_pause) {
  mean_pause_ = mean_pause;
  running_ = true;
  Next();
}

void ProducerWorkload::Next() {
  const Duration pause = Duration::Nanoseconds(random_.Between(0, 2 * mean_pause_.nanoseconds()));
  host_.executor().PostAfter(pause, [this] {
    if (!running_) return;
    const int64_t burst = random_.Chance(0.1) ? random_.Between(2, 20) : 1;
    for (int64_t i = 0; i < burst; ++i) SendOne();
    Next();
  });
}

void ProducerWorkload::SendOne() {
  const uint64_t value = number_ * kValuesOfOne + ++last_value_;
  ProducerRecord record;
  record.topic = topic_;
  record.partition =
      PartitionIndex(static_cast<int32_t>(random_.Below(static_cast<uint64_t>(partitions_))));
  record.value = std::to_string(value);
  ++open_;
  ++counters_.sent;
  const absl::Status taken =
      producer_->Send(std::move(record), [this, value](const Delivery& delivery) {
        --open_;
        if (delivery.status.ok()) {
          ++counters_.acknowledged;
          const int partition = delivery.partition.partition.value();
          acknowledged_[value] = {partition, delivery.offset};
          cluster_.Acknowledged(topic_, partition, delivery.offset);
        } else if (delivery.outcome_unknown()) {
          ++counters_.unknown;
        } else {
          ++counters_.refused;
          refused_[value] = Describe(delivery.status);
        }
      });
  if (taken.ok()) return;
  --open_;
  ++counters_.refused;
  refused_[value] = Describe(taken);
}

void ProducerWorkload::CheckFinal() {
  std::vector<size_t> removed;
  for (int i = 0; i < partitions_; ++i)
    removed.push_back(CheckPartition(i, cluster_.ReadAll(topic_, i)));
  for (const auto& [value, where] : acknowledged_) {
    if (seen_.count(value) > 0) continue;
    if (where.offset.value() <
        static_cast<int64_t>(removed[static_cast<size_t>(where.partition)])) {
      continue;
    }
    return cluster_.Break("lost: value " + std::to_string(value) + ", acknowledged at " +
                          ToString(where.offset) + " of partition " +
                          std::to_string(where.partition));
  }
}

size_t ProducerWorkload::CheckPartition(int partition,
                                        const std::vector<std::optional<std::string>>& values) {
  uint64_t last = 0;
  size_t removed = 0;
  for (size_t offset = 0; offset < values.size(); ++offset) {
    if (!values[offset]) {
      ++removed;
      continue;
    }
    const uint64_t value = std::stoull(*values[offset]);
    if (value / kValuesOfOne != number_) continue;  // Another's.
    const std::string what = "value " + *values[offset] + " at " + std::to_string(offset) +
                             " of partition " + std::to_string(partition);
    if (++seen_[value] > 1) cluster_.Break("twice: " + what);
    if (value < last) {
      cluster_.Break("out of order: " + what + ", after " + std::to_string(last));
    }
    last = value;
    const auto refused = refused_.find(value);
    if (refused != refused_.end()) {
      cluster_.Break("refused and there: " + what + ": " + refused->second);
    }
    const auto acknowledged = acknowledged_.find(value);
    if (acknowledged != acknowledged_.end() &&
        (acknowledged->second.partition != partition ||
         acknowledged->second.offset != Offset(static_cast<int64_t>(offset)))) {
      cluster_.Break("moved: " + what + ", acknowledged at " +
                     ToString(acknowledged->second.offset));
    }
  }
  return removed;
}

}  // namespace conclave::cluster_sim
