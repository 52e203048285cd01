#include "client/metadata/metadata_cache.h"

#include <gtest/gtest.h>

#include <memory>

#include "client/testing/fake_cluster.h"
#include "common/error/error.h"

namespace conclave {
namespace {

using client_testing::FakeCluster;

class MetadataCacheTest : public testing::Test {
 protected:
  void Make(std::vector<std::string> bootstrap = {}) {
    if (bootstrap.empty()) bootstrap = cluster_.bootstrap();
    cache_ = std::make_unique<MetadataCache>(
        MetadataCache::Options{.bootstrap = std::move(bootstrap)}, cluster_.transport(),
        cluster_.executor(), Random(7), [this] { ++changes_; });
  }
  // The leader and its epoch; -1 for none.
  std::pair<int, int> Leader(const std::string& topic, int partition) {
    const auto leader = cache_->LeaderOf({topic, PartitionIndex(partition)});
    return leader ? std::pair(leader->broker.value(), leader->epoch.value()) : std::pair(-1, -1);
  }
  bool Known(const std::string& topic) {
    return cluster_.RunUntil([&] { return cache_->Find(topic) != nullptr; });
  }

  FakeCluster cluster_;
  std::unique_ptr<MetadataCache> cache_;
  int changes_ = 0;
};

TEST_F(MetadataCacheTest, LearnsTopicsAndTheirLeaders) {
  cluster_.world().CreateTopic("t", 3);
  Make();
  EXPECT_EQ(cache_->Find("t"), nullptr);
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  EXPECT_EQ(cache_->Find("t")->partitions.size(), 3u);
  EXPECT_EQ(Leader("t", 1), std::pair(2, 0));
  EXPECT_EQ(cache_->LeaderOf({"t", PartitionIndex(1)})->endpoint, "broker-2:7400");
  EXPECT_EQ(Leader("t", 3), std::pair(-1, -1));
}

TEST_F(MetadataCacheTest, TellsSinceWhenATopicIsUnknown) {
  Make();
  cache_->Watch("nothing");
  ASSERT_TRUE(Known("nothing"));
  EXPECT_EQ(ErrorCodeOf(cache_->Find("nothing")->status), v1::UNKNOWN_TOPIC_OR_PARTITION);
  const auto since = cache_->Find("nothing")->unknown_since;
  ASSERT_TRUE(since);
  cluster_.RunFor(Duration::Seconds(1));
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(cache_->Find("nothing")->unknown_since, since);
  cluster_.world().CreateTopic("nothing", 1);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_TRUE(cache_->Find("nothing")->status.ok());
  EXPECT_FALSE(cache_->Find("nothing")->unknown_since);
}

TEST_F(MetadataCacheTest, AsksAnotherBrokerWhenOneIsGone) {
  cluster_.world().CreateTopic("t", 1);
  Make({"nobody:1", "broker-2:7400"});
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  EXPECT_EQ(cache_->endpoint(), "broker-2:7400");
  // Those learnt of are asked when the bootstrap broker goes.
  cluster_.Stop(2);
  cluster_.world().MoveLeader("t", 0, 3);
  cache_->Refresh();
  EXPECT_TRUE(cluster_.RunUntil([&] { return Leader("t", 0) == std::pair(3, 1); }));
}

TEST_F(MetadataCacheTest, RefreshesTogetherAndWithPauses) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  cluster_.RunFor(Duration::Seconds(1));
  const uint64_t before = cache_->asked();
  for (int i = 0; i < 100; ++i) cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(cache_->asked(), before + 1);
  // One that is refused over and over asks at most every so often.
  const MonotonicTime end = cluster_.clock().Now() + Duration::Seconds(2);
  while (cluster_.clock().Now() < end) {
    cache_->Refresh();
    cluster_.RunFor(Duration::Milliseconds(1));
  }
  EXPECT_LE(cache_->asked(), before + 1 + 16);
  EXPECT_GE(cache_->asked(), before + 1 + 8);
}

TEST_F(MetadataCacheTest, RefreshesUnaskedAfterFiveMinutes) {
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  cluster_.RunFor(Duration::Seconds(299));
  EXPECT_EQ(cache_->asked(), 1u);
  cluster_.RunFor(Duration::Seconds(2));
  EXPECT_EQ(cache_->asked(), 2u);
}

TEST_F(MetadataCacheTest, IgnoresAnswersOlderThanWhatItKnows) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().metadata_index = 50;
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  cluster_.world().metadata_index = 49;
  cluster_.world().At("t", 0).leader = BrokerId(3);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(3));
  EXPECT_EQ(ErrorCodeOf(cache_->last_failure()), v1::METADATA_BEHIND);
  EXPECT_EQ(Leader("t", 0), std::pair(1, 0));
  EXPECT_EQ(cache_->metadata_index(), 50u);
}

TEST_F(MetadataCacheTest, RefusesAnotherCluster) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  cluster_.world().cluster_id = std::string(16, 'x');
  cluster_.world().MoveLeader("t", 0, 2);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(3));
  EXPECT_EQ(ErrorCodeOf(cache_->last_failure()), v1::INCONSISTENT_CLUSTER_ID);
  EXPECT_EQ(Leader("t", 0), std::pair(1, 0));
}

TEST_F(MetadataCacheTest, FollowsAHintOfANewerEpochAlone) {
  cluster_.world().CreateTopic("t", 1);
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  v1::NodeHint hint;
  hint.set_node_id(9);
  hint.set_endpoint("broker-9:7400");
  hint.set_epoch(0);
  const TopicPartition partition{"t", PartitionIndex(0)};
  EXPECT_FALSE(cache_->Learn(partition, hint));
  hint.set_epoch(2);
  const int before = changes_;
  EXPECT_TRUE(cache_->Learn(partition, hint));
  EXPECT_EQ(changes_, before + 1);
  EXPECT_EQ(Leader("t", 0), std::pair(9, 2));
  EXPECT_EQ(cache_->LeaderOf(partition)->endpoint, "broker-9:7400");
  EXPECT_FALSE(cache_->Learn(partition, hint));
  // An answer made before the leader moved does not take it back.
  cluster_.world().MoveLeader("t", 0, 2);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(cache_->Find("t")->partitions[0].leader, BrokerId(9));
  cluster_.world().MoveLeader("t", 0, 2);
  cluster_.world().MoveLeader("t", 0, 3);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_EQ(Leader("t", 0), std::pair(3, 3));
}

TEST_F(MetadataCacheTest, R37_ATopicMadeAnewBeginsItsEpochsAnew) {
  cluster_.world().CreateTopic("t", 1);
  cluster_.world().MoveLeader("t", 0, 2);
  Make();
  cache_->Watch("t");
  ASSERT_TRUE(Known("t"));
  const TopicId before = cache_->Find("t")->id;
  EXPECT_EQ(Leader("t", 0), std::pair(2, 1));
  cluster_.world().CreateTopic("t", 1);
  cache_->Refresh();
  cluster_.RunFor(Duration::Seconds(1));
  EXPECT_NE(cache_->Find("t")->id, before);
  EXPECT_EQ(Leader("t", 0), std::pair(1, 0));
}

}  // namespace
}  // namespace conclave
