// Members come, go, crash and freeze while streams break and the coordinator moves: no record is
// skipped, no offset is committed of a record that nobody was given, and in the end all is
// consumed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/integration/group_consumer_testing.h"

namespace conclave {
namespace {

constexpr int kPartitions = 5;
using Member = GroupWorld::Member;

class GroupRandomTest : public testing::TestWithParam<int> {};

TEST_P(GroupRandomTest, NothingIsSkipped) {
  const auto seed = static_cast<uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  GroupWorld world(seed);
  Random random(seed * 977);
  world.CreateTopic(kPartitions);
  world.service().config.stream_grace = Duration::Milliseconds(random.Chance(0.5) ? 200 : 20);
  world.service().MoveTo(1);
  GroupConsumerOptions options = world.Options();
  options.session_timeout = Duration::Seconds(2);
  options.auto_commit_interval = Duration::Milliseconds(700);
  std::vector<Member*> alive;
  int64_t appended[kPartitions] = {};
  const auto check = [&] {
    if (world.service().broker() == 0) return;
    for (int p = 0; p < kPartitions; ++p) {
      const int64_t committed = world.Committed(p).value_or(0);
      for (int64_t offset = 0; offset < committed; ++offset) {
        ASSERT_TRUE(world.handed[p].contains(offset))
            << p << " committed " << committed << " and nobody was given " << offset;
      }
    }
  };
  for (int step = 0; step < 150; ++step) {
    Member* someone = alive.empty() ? nullptr : alive[random.Below(alive.size())];
    const uint64_t what = random.Below(100);
    if (what < 15 && alive.size() < 4) {
      alive.push_back(&world.Join(options));
      alive.back()->PollOn(static_cast<size_t>(random.Between(1, 20)));
    } else if (what < 22 && someone != nullptr) {
      world.Kill(*someone);
      std::erase(alive, someone);
    } else if (what < 29 && someone != nullptr && !someone->executor->paused()) {
      someone->stop = true;
      someone->consumer->Close([](const absl::Status&) {});
      std::erase(alive, someone);
    } else if (what < 40) {
      world.service().MoveTo(static_cast<int>(random.Between(1, 3)));
    } else if (what < 50) {
      world.cluster.Break(static_cast<int>(random.Between(1, 3)));
    } else if (what < 55 && someone != nullptr) {
      someone->executor->Pause();
    } else if (what < 62) {
      for (Member* member : alive) member->executor->Resume();
    } else if (what < 70 && someone != nullptr && !someone->executor->paused()) {
      someone->consumer->Commit([](const absl::Status&) {});
    } else {
      const int partition = static_cast<int>(random.Below(kPartitions));
      const int count = static_cast<int>(random.Between(1, 30));
      world.Append(count, partition);
      appended[partition] += count;
    }
    world.cluster.RunFor(Duration::Milliseconds(random.Between(0, 1500)));
    check();
  }
  for (Member* member : alive) member->executor->Resume();
  if (alive.empty()) {
    alive.push_back(&world.Join(options));
    alive.back()->PollOn();
  }
  const bool all = world.Until(
      [&] {
        for (int p = 0; p < kPartitions; ++p) {
          if (world.Committed(p).value_or(0) != appended[p]) return false;
        }
        return true;
      },
      Duration::Seconds(120));
  check();
  for (int p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(world.Committed(p).value_or(0), appended[p]) << p;
    EXPECT_EQ(static_cast<int64_t>(world.handed[p].size()), appended[p]) << p;
  }
  EXPECT_TRUE(all);
  for (const auto& member : world.members) EXPECT_TRUE(member->failures.empty() || member->stop);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupRandomTest, testing::Range(1, 101));

}  // namespace
}  // namespace conclave
