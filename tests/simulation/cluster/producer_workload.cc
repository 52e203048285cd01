#include "tests/simulation/cluster/producer_workload.h"

#include <utility>

#include "common/error/error.h"

namespace conclave::cluster_sim {

namespace {

// Values tell who sent them.
constexpr uint64_t kValuesOfOne = 1'000'000'000;

}  // namespace

ProducerWorkload::ProducerWorkload(Cluster& cluster, const Random& random, Recorder& recorder,
                                   std::string topic, int partitions, int number)
    : cluster_(cluster),
      recorder_(recorder),
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
  auto send = recorder_.Begun<history::Send>(host_.name());
  send.key = recorder_.KeyOf(topic_, record.partition->value());
  send.value = *record.value;
  const size_t place = recorder_.Add(std::move(send));
  ++open_;
  ++counters_.sent;
  const absl::Status taken = producer_->Send(
      record, [this, place](const Delivery& delivery) { Delivered(place, delivery); });
  if (!taken.ok()) Delivered(place, {.status = taken, .partition = {}});
}

void ProducerWorkload::Delivered(size_t send, const Delivery& delivery) {
  --open_;
  history::Send& sent = recorder_.At<history::Send>(send);
  sent.complete = recorder_.Now();
  if (!delivery.status.ok()) last_failure_ = delivery.status;
  if (delivery.status.ok()) {
    ++counters_.acknowledged;
    counters_.duplicates += delivery.duplicate;
    sent.outcome = history::Outcome::kOk;
    sent.offset = delivery.offset.value();
    cluster_.Acknowledged(topic_, delivery.partition.partition.value(), delivery.offset);
  } else if (delivery.outcome_unknown()) {
    ++counters_.unknown;
  } else {
    ++counters_.refused;
    sent.outcome = history::Outcome::kFail;
  }
}

}  // namespace conclave::cluster_sim
