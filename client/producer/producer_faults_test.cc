// Producers under random faults, each run from a seed: nothing acknowledged is lost or moved,
// nothing is stored twice, nothing refused is stored, and every partition keeps the order of Send.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/producer/producer.h"
#include "client/testing/fake_cluster.h"
#include "common/error/error.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;

constexpr int kPartitions = 3;
constexpr int kRecords = 300;

struct Counts {
  int acknowledged = 0;
  int unknown = 0;
  int refused = 0;
  int epochs = 0;
};

// One producer, one topic, and a nemesis.
class FaultyRun {
 public:
  explicit FaultyRun(uint64_t seed)
      : random_(Random(seed).Fork("faults")), cluster_(3, seed), seed_(seed) {
    cluster_.world().CreateTopic("t", kPartitions);
    cluster_.world().before_append = [this](const TopicPartition&, const BatchHeader&) {
      return Refusal(
          {v1::NOT_ENOUGH_REPLICAS, v1::INVALID_TIMESTAMP, v1::MESSAGE_TOO_LARGE, v1::OVERLOADED});
    };
    cluster_.world().after_append = [this](const TopicPartition&, const BatchHeader&) {
      return Refusal({v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND, v1::REQUEST_TIMED_OUT,
                      v1::LEADER_CHANGED_AFTER_APPEND, v1::STORAGE_ERROR});
    };
    ProducerOptions options;
    options.bootstrap = cluster_.bootstrap();
    options.delivery_timeout = Duration::Milliseconds(random_.Chance(0.5) ? 400 : 30'000);
    options.request_timeout = Duration::Milliseconds(random_.Chance(0.5) ? 200 : 5'000);
    options.max_in_flight = static_cast<size_t>(random_.Between(1, 5));
    options.linger = Duration::Milliseconds(random_.Between(0, 2));
    options.batch_bytes = 200;
    producer_ = std::make_unique<Producer>(options, cluster_.transport(), cluster_.executor(),
                                           Random(seed));
  }

  void Go() {
    for (int i = 0; i < kRecords; ++i) {
      Fault();
      SendOne(i);
      cluster_.RunFor(Duration::Microseconds(random_.Between(0, 3000)));
    }
    fault_rate_ = 0;
    cluster_.world().drop_answers = 0;
    cluster_.wire().HealAll();
    for (int id = 1; id <= 3; ++id) cluster_.Break(id);
    for (int p = 0; p < kPartitions; ++p) cluster_.world().MoveLeader("t", p, 1 + p);
    ASSERT_TRUE(cluster_.RunUntil([&] { return told_ == kRecords; }, Duration::Seconds(300)))
        << "seed " << seed_ << ": " << told_ << " told";
    // Attempts whose answers were dropped end by their time-out; then it serves again.
    cluster_.RunFor(Duration::Seconds(15));
    SendOne(kRecords);
    SendOne(kRecords + 1);
    SendOne(kRecords + 2);
    ASSERT_TRUE(cluster_.RunUntil([&] { return told_ == kRecords + 3; }));
    for (int i = kRecords; i < kRecords + 3; ++i) {
      ASSERT_TRUE(outcomes_.at(i).status.ok()) << "seed " << seed_ << outcomes_.at(i).status;
    }
    Check();
  }

  const Counts& counts() const { return counts_; }

 private:
  v1::Error Refusal(const std::vector<v1::ErrorCode>& codes) {
    v1::Error error;
    if (random_.Chance(fault_rate_)) {
      error.set_code(codes[random_.Below(codes.size())]);
      error.set_message("a fault of the test");
    }
    return error;
  }

  void Fault() {
    auto& world = cluster_.world();
    const int broker = static_cast<int>(random_.Between(1, 3));
    const int partition = static_cast<int>(random_.Below(kPartitions));
    if (random_.Chance(0.03)) world.drop_answers = static_cast<int>(random_.Between(1, 6));
    if (random_.Chance(0.02)) cluster_.Break(broker);
    if (random_.Chance(0.02)) world.MoveLeader("t", partition, broker);
    if (random_.Chance(0.01)) world.TakeLeader("t", partition);
    if (random_.Chance(0.01)) {
      const std::string name = FakeCluster::NameOf(broker);
      if (random_.Chance(0.5))
        cluster_.wire().Cut(name, FakeCluster::kClient);
      else
        cluster_.wire().Cut(FakeCluster::kClient, name);
    }
    if (random_.Chance(0.03)) cluster_.wire().HealAll();
    if (random_.Chance(0.02)) fault_rate_ = 0.1;
    if (random_.Chance(0.03)) fault_rate_ = 0;
  }

  void SendOne(int i) {
    ProducerRecord record;
    record.topic = "t";
    record.partition = PartitionIndex(i % kPartitions);
    record.value = std::to_string(i);
    ASSERT_TRUE(producer_
                    ->Send(record,
                           [this, i](const Delivery& delivery) {
                             EXPECT_TRUE(outcomes_.emplace(i, delivery).second) << i;
                             ++told_;
                           })
                    .ok());
  }

  void Check() {
    for (int p = 0; p < kPartitions; ++p) {
      const auto values = cluster_.world().At("t", p).Values();
      int last = -1;
      for (size_t offset = 0; offset < values.size(); ++offset) {
        const int value = std::stoi(values[offset]);
        // Rising, so none is there twice.
        ASSERT_GT(value, last) << "seed " << seed_ << " partition " << p;
        last = value;
        const Delivery& delivery = outcomes_.at(value);
        ASSERT_TRUE(delivery.status.ok() || delivery.outcome_unknown())
            << "seed " << seed_ << ": refused and stored: " << value << delivery.status;
        if (delivery.status.ok()) {
          ASSERT_EQ(delivery.offset.value(), static_cast<int64_t>(offset)) << "seed " << seed_;
          ASSERT_EQ(delivery.partition.partition, PartitionIndex(p));
          ++counts_.acknowledged;
        }
      }
    }
    int acknowledged = 0;
    for (const auto& [value, delivery] : outcomes_) {
      acknowledged += delivery.status.ok();
      counts_.unknown += delivery.outcome_unknown();
      counts_.refused += !delivery.status.ok() && !delivery.outcome_unknown();
    }
    // Each of those stands in a log.
    ASSERT_EQ(acknowledged, counts_.acknowledged) << "seed " << seed_;
    ASSERT_EQ(producer_->buffered_bytes(), 0u);
    counts_.epochs = cluster_.world().inits;
  }

  Random random_;
  FakeCluster cluster_;
  const uint64_t seed_;
  double fault_rate_ = 0;
  std::unique_ptr<Producer> producer_;
  std::map<int, Delivery> outcomes_;
  int told_ = 0;
  Counts counts_;
};

TEST(ProducerFaultsTest, NothingIsLostDoubledOrReordered) {
  Counts total;
  constexpr int kSeeds = 320;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FaultyRun run(seed);
    run.Go();
    if (testing::Test::HasFatalFailure()) return;
    total.acknowledged += run.counts().acknowledged;
    total.unknown += run.counts().unknown;
    total.refused += run.counts().refused;
    total.epochs += run.counts().epochs;
  }
  // The faults reached every way out.
  EXPECT_GT(total.acknowledged, kSeeds * kRecords / 2);
  EXPECT_GT(total.unknown, 500);
  EXPECT_GT(total.refused, 500);
  EXPECT_GT(total.epochs, 500);
}

TEST(ProducerFaultsTest, TheSameSeedGivesTheSameHistory) {
  uint64_t hash[2];
  for (uint64_t& h : hash) {
    FakeCluster cluster(3, 9);
    cluster.world().CreateTopic("t", 5);
    ProducerOptions options;
    options.bootstrap = cluster.bootstrap();
    Producer producer(options, cluster.transport(), cluster.executor(), Random(9));
    for (int i = 0; i < 100; ++i) {
      ProducerRecord record;
      record.topic = "t";
      record.value = std::string(10'000, 'x');
      ASSERT_TRUE(producer.Send(record, nullptr).ok());
      if (i % 10 == 0) cluster.Break(1 + i / 10 % 3);
      cluster.RunFor(Duration::Milliseconds(1));
    }
    cluster.RunFor(Duration::Seconds(5));
    h = cluster.scheduler().trace_hash();
  }
  EXPECT_EQ(hash[0], hash[1]);
}

}  // namespace
}  // namespace conclave
