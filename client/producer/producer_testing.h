#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCER_TESTING_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCER_TESTING_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/producer/producer.h"
#include "client/testing/fake_cluster.h"
#include "common/error/error.h"

namespace conclave::client_testing {

// A producer, three fake brokers, and what became of each record.
class ProducerTest : public testing::Test {
 protected:
  void Make() {
    options_.bootstrap = cluster_.bootstrap();
    producer_ =
        std::make_unique<Producer>(options_, cluster_.transport(), cluster_.executor(), Random(5));
  }
  static ProducerRecord Record(const std::string& value, int partition = 0) {
    ProducerRecord record;
    record.topic = "t";
    record.partition = PartitionIndex(partition);
    record.value = value;
    return record;
  }
  absl::Status Send(const std::string& value, int partition = 0) {
    return SendRecord(Record(value, partition));
  }
  absl::Status SendRecord(ProducerRecord record) {
    const std::string value = record.value.value_or("");
    return producer_->Send(record, [this, value](const Delivery& delivery) {
      order_.push_back(value);
      EXPECT_TRUE(deliveries_.emplace(value, delivery).second) << value << " told twice";
    });
  }
  // Sends one record each millisecond, so that each is a batch of its own.
  void SendSlowly(int from, int to, int partition = 0) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(Send("r" + std::to_string(i), partition).ok());
      cluster_.RunFor(Duration::Milliseconds(1));
    }
  }
  // Afterwards the partition's leader and the producer's id are known.
  void WarmUp(int partition = 0) {
    bool done = false;
    ASSERT_TRUE(
        producer_->Send(Record("warm", partition), [&](const Delivery&) { done = true; }).ok());
    ASSERT_TRUE(cluster_.RunUntil([&] { return done; }));
    cluster_.RunFor(Duration::Milliseconds(10));
  }
  bool Done(size_t count, Duration limit = Duration::Seconds(60)) {
    return cluster_.RunUntil([&] { return deliveries_.size() == count; }, limit);
  }
  v1::ErrorCode CodeOf(const std::string& value) {
    return ErrorCodeOf(deliveries_.at(value).status);
  }
  static std::vector<std::string> Numbered(int from, int to) {
    std::vector<std::string> values;
    for (int i = from; i < to; ++i) values.push_back("r" + std::to_string(i));
    return values;
  }
  // Every acknowledged record stands at the offset it was told, in its partition.
  void ExpectAcknowledgedStored() {
    for (const auto& [value, delivery] : deliveries_) {
      if (!delivery.status.ok()) continue;
      const auto values = cluster_.world().At("t", delivery.partition.partition.value()).Values();
      ASSERT_LT(static_cast<size_t>(delivery.offset.value()), values.size());
      EXPECT_EQ(values[static_cast<size_t>(delivery.offset.value())], value);
    }
  }

  FakeCluster cluster_;
  ProducerOptions options_;
  std::unique_ptr<Producer> producer_;
  std::map<std::string, Delivery> deliveries_;
  std::vector<std::string> order_;
};

}  // namespace conclave::client_testing

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCER_TESTING_H_
