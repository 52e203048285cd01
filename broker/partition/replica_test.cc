#include "broker/partition/replica.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_scheduler.h"

namespace conclave::broker {
namespace {

class Watcher : public ReplicaWatcher {
 public:
  void OnReplicaChanged(const PartitionId&) override { ++told; }
  int told = 0;
};

class ReplicaTest : public testing::Test {
 protected:
  std::unique_ptr<Replica> Make(uint64_t life) {
    Replica::Options options;
    options.self = BrokerId(1);
    options.life = life;
    return std::make_unique<Replica>(
        PartitionIdentity{"t", TopicId::FromRandom(1, 2), PartitionIndex(0)},
        log_testing::Open(fs_, log_testing::SmallSegments()), Offset(0), std::move(options),
        clock_);
  }

  SimScheduler scheduler_;
  SimClock clock_{scheduler_};
  FaultFileSystem fs_{1};
};

// Who watched a replica that was damaged, and replaced, knows no more than its id and the number.
TEST_F(ReplicaTest, AWatchOfAReplicaThatWasReplacedIsNobodyElses) {
  Watcher before;
  Watcher now;
  auto damaged = Make(1);
  const uint64_t old_watch = damaged->Watch(&before);
  damaged.reset();
  auto replica = Make(2);
  replica->Settle();
  const uint64_t watch = replica->Watch(&now);
  replica->Unwatch(old_watch);
  replica->StandBy();
  replica->Settle();
  EXPECT_EQ(now.told, 1);
  EXPECT_EQ(before.told, 0);
  replica->Unwatch(watch);
  replica->StandBy();
  replica->Settle();
  EXPECT_EQ(now.told, 1);
}

}  // namespace
}  // namespace conclave::broker
