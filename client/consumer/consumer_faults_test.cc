// A consumer under random faults, each run from a seed: every record comes once, in order.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "client/consumer/consumer.h"
#include "client/testing/fake_cluster.h"
#include "common/record/batch_builder.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;

TopicPartition Name(int partition) { return {"t", PartitionIndex(partition)}; }

TEST(ConsumerFaultsTest, SkipsAndRepeatsNothingThroughBrokenStreams) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    FakeCluster cluster(3, seed);
    cluster.world().CreateTopic("t", 3);
    ConsumerOptions options;
    options.bootstrap = cluster.bootstrap();
    options.prefetch_bytes = 2000;
    options.partition_fetch_bytes = 300;
    int events = 0;
    options.on_event = [&](const ConsumerEvent&) { ++events; };
    Consumer consumer(options, cluster.transport(), cluster.executor(), Random(seed));
    std::vector<Consumer::Assignment> all;
    for (int p = 0; p < 3; ++p) all.push_back({Name(p), StartAt::At(Offset(0))});
    consumer.Assign(all);
    std::map<int, int64_t> next;
    int polls = 0;
    std::function<void()> poll = [&] {
      consumer.Poll(static_cast<size_t>(random.Between(1, 20)), MonotonicTime::Never(),
                    [&](Consumer::PollResult result) {
                      ASSERT_TRUE(result.ok()) << result.status();
                      ++polls;
                      for (const PartitionRecords& part : *result) {
                        int64_t& expected = next[part.partition.partition.value()];
                        for (const RecordView& record : part.records) {
                          ASSERT_EQ(record.offset.value(), expected++);
                        }
                      }
                      poll();
                    });
    };
    poll();
    for (int i = 0; i < 300; ++i) {
      const int p = static_cast<int>(random.Below(3));
      BatchBuilder builder;
      RecordView record;
      record.value = "some value that takes a little room";
      for (int64_t n = random.Between(1, 5); n > 0; --n) builder.Add(record);
      v1::ProducePartitionResult result;
      cluster.world().At("t", p).Append(*builder.Finish(), result);
      cluster.world().Wake();
      if (random.Chance(0.1)) cluster.Break(static_cast<int>(random.Between(1, 3)));
      if (random.Chance(0.1)) {
        cluster.world().MoveLeader("t", p, static_cast<int>(random.Between(1, 3)));
      }
      if (random.Chance(0.05)) cluster.world().corrupt_fetches = 1;
      if (random.Chance(0.05)) {
        if (random.Chance(0.5))
          consumer.Pause(Name(p));
        else
          consumer.Resume(Name(p));
      }
      cluster.RunFor(Duration::Milliseconds(random.Between(0, 5)));
    }
    for (int p = 0; p < 3; ++p) consumer.Resume(Name(p));
    ASSERT_TRUE(cluster.RunUntil([&] {
      for (int p = 0; p < 3; ++p) {
        if (next[p] != cluster.world().At("t", p).end().value()) return false;
      }
      return true;
    })) << "seed "
        << seed;
    EXPECT_GT(polls, 10);
  }
}

}  // namespace
}  // namespace conclave
