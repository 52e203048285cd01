#include "common/metadata/delta.h"

#include <gtest/gtest.h>

#include "common/metadata/image.h"
#include "common/metadata/testing.h"

namespace conclave {
namespace {

using metadata_testing::BatchOf;
using metadata_testing::PartitionOn;
using metadata_testing::TopicNumber;

class DeltaTest : public ::testing::Test {
 protected:
  MetadataDelta Apply(const BatchOf& batch) {
    MetadataDelta delta;
    const MetadataPosition next{image_.position().index + 1, Term(1)};
    const absl::Status status = image_.Apply(next, batch.batch(), &delta);
    EXPECT_TRUE(status.ok()) << status;
    return delta;
  }

  void SetUp() override {
    Apply(BatchOf().Cluster(ClusterId::FromRandom(1, 1)).Register(1).Register(2));
    Apply(BatchOf().Fenced(1, 1, false).Fenced(2, 1, false));
    Apply(BatchOf().Topic(t_, "t").Whole(t_, 0, PartitionOn({1, 2})));
  }

  const TopicId t_ = TopicNumber(1);
  const TopicId u_ = TopicNumber(2);
  MetadataImage image_;
};

TEST_F(DeltaTest, NamesWhatABatchChanged) {
  const MetadataDelta delta = Apply(BatchOf()
                                        .Topic(u_, "u")
                                        .Whole(u_, 0, PartitionOn({2}))
                                        .TopicConfig(t_, "k", "v")
                                        .Register(3));
  EXPECT_EQ(delta.created_topics, (std::map<TopicId, std::string>{{u_, "u"}}));
  EXPECT_EQ(delta.partitions, (std::set<PartitionId>{{u_, PartitionIndex(0)}}));
  EXPECT_EQ(delta.topic_configs, std::set<TopicId>{t_});
  EXPECT_EQ(delta.brokers, std::set<BrokerId>{BrokerId(3)});
  EXPECT_TRUE(delta.deleted_topics.empty());
}

TEST_F(DeltaTest, R37ATopicThatIsRecreatedIsAnotherTopic) {
  const MetadataDelta delta =
      Apply(BatchOf().RemoveTopic(t_).Topic(u_, "t").Whole(u_, 0, PartitionOn({1})));
  EXPECT_EQ(delta.deleted_topics, (std::map<TopicId, std::string>{{t_, "t"}}));
  EXPECT_EQ(delta.created_topics, (std::map<TopicId, std::string>{{u_, "t"}}));
  EXPECT_EQ(delta.partitions, (std::set<PartitionId>{{u_, PartitionIndex(0)}}));
}

TEST_F(DeltaTest, MergedDeltasEqualTheDifferenceOfTheImages) {
  const MetadataImage before = image_;
  Partition changed = PartitionOn({1, 2});
  changed.isr = {BrokerId(1)};
  changed.partition_epoch = PartitionEpoch(1);
  MetadataDelta merged = Apply(BatchOf().Change(t_, 0, changed));
  merged.Merge(Apply(BatchOf().Topic(u_, "u").Whole(u_, 0, PartitionOn({2}))));
  merged.Merge(Apply(BatchOf().RemoveTopic(t_).ProducerIds(5)));
  EXPECT_EQ(merged, DeltaBetween(before, image_));
  merged.Merge(Apply(BatchOf().RemoveTopic(u_)));
  EXPECT_EQ(merged, DeltaBetween(before, image_));
  EXPECT_TRUE(DeltaBetween(image_, image_).empty());
}

}  // namespace
}  // namespace conclave
