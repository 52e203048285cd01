#include "common/metadata/image.h"

#include <gtest/gtest.h>

#include "common/error/error.h"
#include "common/metadata/testing.h"
#include "common/random/random.h"

namespace conclave {
namespace {

using metadata_testing::BatchOf;
using metadata_testing::PartitionOn;
using metadata_testing::TopicNumber;

const ClusterId kCluster = ClusterId::FromRandom(7, 7);

MetadataPosition At(uint64_t index, uint64_t term = 1) { return {LogIndex(index), Term(term)}; }

BatchOf Unregister(int broker, int64_t epoch) {
  BatchOf batch;
  v1::UnregisterBrokerRecord& record = *batch.Add().mutable_unregister_broker();
  record.set_broker_id(broker);
  record.set_broker_epoch(epoch);
  return batch;
}

// Brokers 1 to 3, unfenced, under epochs 2; topic "t" with two partitions.
class ImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Apply(BatchOf().Cluster(kCluster));
    Apply(BatchOf().Register(1).Register(2).Register(3));
    Apply(BatchOf().Fenced(1, 2, false).Fenced(2, 2, false).Fenced(3, 2, false));
    Apply(BatchOf()
              .Topic(topic_, "t")
              .TopicConfig(topic_, "retention.ms", "1000")
              .Whole(topic_, 0, PartitionOn({1, 2, 3}))
              .Whole(topic_, 1, PartitionOn({2, 3, 1})));
  }

  void Apply(const BatchOf& batch) {
    const absl::Status status = image_.Apply(Next(), batch.batch());
    ASSERT_TRUE(status.ok()) << status;
  }

  // The code of the refusal; nothing changed.
  v1::ErrorCode Refuse(const BatchOf& batch) {
    const MetadataImage before = image_;
    MetadataDelta delta;
    const absl::Status status = image_.Apply(Next(), batch.batch(), &delta);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(image_ == before);
    EXPECT_EQ(image_.partition_count(), before.partition_count());
    for (int broker = -1; broker <= 9; ++broker) {
      EXPECT_EQ(image_.PartitionsOn(BrokerId(broker)), before.PartitionsOn(BrokerId(broker)));
      EXPECT_EQ(image_.PartitionsLedBy(BrokerId(broker)), before.PartitionsLedBy(BrokerId(broker)));
    }
    EXPECT_TRUE(delta.empty());
    return ErrorCodeOf(status);
  }

  MetadataPosition Next() const { return At(image_.position().index.value() + 1); }
  Partition P(int index) const { return *image_.FindPartition({topic_, PartitionIndex(index)}); }

  const TopicId topic_ = TopicNumber(1);
  MetadataImage image_;
};

TEST_F(ImageTest, HoldsWhatTheRecordsSay) {
  EXPECT_EQ(image_.cluster_id(), kCluster);
  EXPECT_EQ(image_.position(), At(4));
  ASSERT_NE(image_.FindBroker(BrokerId(1)), nullptr);
  EXPECT_EQ(image_.FindBroker(BrokerId(1))->epoch, BrokerEpoch(2));
  EXPECT_FALSE(image_.FindBroker(BrokerId(1))->fenced);
  ASSERT_NE(image_.FindTopic("t"), nullptr);
  EXPECT_EQ(image_.FindTopic("t"), image_.FindTopic(topic_));
  EXPECT_EQ(image_.FindTopic("t")->configs.at("retention.ms"), "1000");
  EXPECT_EQ(image_.partition_count(), 2u);
  EXPECT_EQ(image_.PartitionsOn(BrokerId(1)).size(), 2u);
  EXPECT_EQ(image_.PartitionsLedBy(BrokerId(2)).size(), 1u);
  EXPECT_TRUE(image_.PartitionsLedBy(kNoBroker).empty());
  EXPECT_EQ(image_.FindPartition({topic_, PartitionIndex(-1)}), nullptr);
  EXPECT_EQ(image_.FindPartition({topic_, PartitionIndex(2)}), nullptr);
}

TEST_F(ImageTest, RoundTripsThroughProto) {
  Apply(BatchOf().ProducerIds(1000));
  const auto back = MetadataImage::FromProto(image_.ToProto(), image_.position());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == image_);
  EXPECT_EQ(back->ToProto().SerializeAsString(), image_.ToProto().SerializeAsString());
  EXPECT_EQ(back->PartitionsLedBy(BrokerId(1)), image_.PartitionsLedBy(BrokerId(1)));
}

TEST_F(ImageTest, ADeletedTopicsIdIsNotGivenAgain) {
  Apply(BatchOf().RemoveTopic(topic_));
  EXPECT_TRUE(image_.deleted_topics().Contains(topic_));
  EXPECT_EQ((Refuse(BatchOf().Topic(topic_, "t").Whole(topic_, 0, PartitionOn({1})))),
            v1::CORRUPT_MESSAGE);
  const auto back = MetadataImage::FromProto(image_.ToProto(), image_.position());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == image_);
  EXPECT_TRUE(back->deleted_topics().Contains(topic_));
}

TEST_F(ImageTest, TheOldestOfManyDeletedTopicsAreForgotten) {
  const uint64_t many = DeletedTopics::kMaxRemembered;
  // In one batch, which is also taken back as a whole.
  BatchOf batch;
  for (uint64_t n = 10; n < 10 + many + 2; ++n) {
    batch.Topic(TopicNumber(n), "n" + std::to_string(n)).RemoveTopic(TopicNumber(n));
  }
  BatchOf broken = batch;
  Refuse(broken.RemoveTopic(TopicNumber(2)));
  Apply(batch);
  EXPECT_EQ(image_.deleted_topics().in_order().size(), many);
  EXPECT_FALSE(image_.deleted_topics().Contains(TopicNumber(11)));
  EXPECT_EQ(image_.deleted_topics().in_order().front(), TopicNumber(12));
  EXPECT_TRUE(image_.deleted_topics().Contains(TopicNumber(12)));
  EXPECT_EQ(image_.deleted_topics().in_order().back(), TopicNumber(11 + many));
  // Undone with the oldest back in its place.
  Refuse(BatchOf().RemoveTopic(topic_).RemoveTopic(topic_));
  Apply(BatchOf().Topic(TopicNumber(11), "again"));
  EXPECT_NE(image_.FindTopic(TopicNumber(11)), nullptr);
}

TEST_F(ImageTest, ANewIncarnationIsFencedUnderItsIndex) {
  Partition p0 = P(0);
  p0.leader = BrokerId(2);
  p0.isr = {BrokerId(2), BrokerId(3)};
  p0.leader_epoch = LeaderEpoch(1);
  p0.partition_epoch = PartitionEpoch(1);
  Apply(BatchOf().Change(topic_, 0, p0).Register(1, 2));
  EXPECT_TRUE(image_.FindBroker(BrokerId(1))->fenced);
  EXPECT_EQ(image_.FindBroker(BrokerId(1))->epoch, BrokerEpoch(5));
}

TEST_F(ImageTest, RefusesAFencedLeader) {
  EXPECT_EQ((Refuse(BatchOf().Fenced(1, 2, true))), v1::CORRUPT_MESSAGE);
  Refuse(BatchOf().Register(1, 2));
}

TEST_F(ImageTest, RefusesAsAWholeWhatFailsAtItsEnd) {
  const TopicId other = TopicNumber(2);
  Refuse(BatchOf()
             .Topic(other, "u")
             .TopicConfig(other, "k", "v")
             .Whole(other, 0, PartitionOn({1}))
             .RemoveTopic(topic_)
             .ProducerIds(5)
             .Register(4)
             .TopicConfig(TopicNumber(9), "k", "v"));
}

TEST_F(ImageTest, RefusesWhatContradictsIt) {
  Partition p = P(0);
  Refuse(BatchOf().Change(topic_, 0, p));  // Epochs do not rise.
  p.partition_epoch = PartitionEpoch(1);
  Refuse(BatchOf().Change(TopicNumber(5), 0, p));
  Refuse(BatchOf().Change(topic_, 2, p));
  Refuse(BatchOf().Whole(topic_, 3, p));
  Partition bad = p;
  bad.leader = BrokerId(2);  // Within one leader epoch.
  Refuse(BatchOf().Change(topic_, 0, bad));
  bad.leader_epoch = LeaderEpoch(1);
  bad.isr = {BrokerId(1)};  // Leader not in it.
  Refuse(BatchOf().Change(topic_, 0, bad));
  bad.isr = {BrokerId(2), BrokerId(4)};  // Not a replica.
  Refuse(BatchOf().Change(topic_, 0, bad));
  bad.isr = {BrokerId(2), BrokerId(2)};
  Refuse(BatchOf().Change(topic_, 0, bad));
  bad.isr = {};
  bad.leader = kNoBroker;
  Refuse(BatchOf().Change(topic_, 0, bad));  // Empty, and no note.
  bad.note = "broker 1 lost its directory";
  Apply(BatchOf().Change(topic_, 0, bad));
}

TEST_F(ImageTest, RefusesWhatHasNoForm) {
  EXPECT_EQ((Refuse(BatchOf().Topic(TopicId(), "u"))), v1::CORRUPT_MESSAGE);
  Refuse(BatchOf().Topic(TopicNumber(2), "a/b"));
  Refuse(BatchOf().Topic(TopicNumber(2), "t"));
  Refuse(BatchOf().Cluster(ClusterId::FromRandom(8, 8)));
  Refuse(BatchOf().Whole(topic_, 2, PartitionOn({})));
  Refuse(BatchOf().Whole(topic_, 2, PartitionOn({1, 1})));
  Refuse(BatchOf().Whole(topic_, 2, PartitionOn({8})));
  BatchOf unknown;
  unknown.Add();
  EXPECT_EQ((Refuse(unknown)), v1::UNSUPPORTED_VERSION);
  BatchOf short_id;
  short_id.Add().mutable_remove_topic()->set_topic_id("abc");
  Refuse(short_id);
  BatchOf no_directory;
  *no_directory.Add().mutable_register_broker() = metadata_testing::Registration(BrokerId(4));
  no_directory.Add() = no_directory.batch().records(0);  // Twice under one epoch.
  Refuse(no_directory);
}

TEST_F(ImageTest, NamesCollideByDotAndUnderscore) {
  Apply(BatchOf().Topic(TopicNumber(2), "a.b"));
  EXPECT_EQ(image_.FindTopic("a_b"), nullptr);
  EXPECT_NE(image_.FindColliding("a_b"), nullptr);
  Refuse(BatchOf().Topic(TopicNumber(3), "a_b"));
  Apply(BatchOf().RemoveTopic(TopicNumber(2)).Topic(TopicNumber(3), "a_b"));
  EXPECT_EQ(image_.FindTopic("a.b"), nullptr);
}

TEST_F(ImageTest, PositionsOnlyRise) {
  EXPECT_FALSE(image_.Apply(At(4), v1::MetadataBatch()).ok());
  EXPECT_FALSE(image_.Apply(At(5, 0), v1::MetadataBatch()).ok());
  EXPECT_TRUE(image_.Apply(At(9, 3), v1::MetadataBatch()).ok());
  EXPECT_FALSE(image_.Apply(At(10, 2), v1::MetadataBatch()).ok());
}

TEST_F(ImageTest, ABrokerThatHoldsReplicasStays) {
  Refuse(Unregister(3, 2));
  Apply(BatchOf().RemoveTopic(topic_));
  Refuse(Unregister(3, 1));  // Not under its epoch.
  Apply(Unregister(3, 2));
  EXPECT_EQ(image_.FindBroker(BrokerId(3)), nullptr);
}

TEST_F(ImageTest, FromProtoChecksWhatReplayWould) {
  v1::MetadataImageProto proto = image_.ToProto();
  proto.mutable_brokers(0)->set_fenced(true);
  EXPECT_FALSE(MetadataImage::FromProto(proto, At(4)).ok());
  proto = image_.ToProto();
  *proto.add_partitions() = proto.partitions(0);
  proto.mutable_partitions(2)->set_partition_epoch(9);
  EXPECT_FALSE(MetadataImage::FromProto(proto, At(4)).ok());
  proto = image_.ToProto();
  *proto.add_brokers() = proto.brokers(0);
  EXPECT_FALSE(MetadataImage::FromProto(proto, At(4)).ok());
  for (const std::string& id : {topic_.ToBytes(), std::string("short"), std::string(16, '\0')}) {
    proto = image_.ToProto();
    proto.add_deleted_topic_ids(id);
    EXPECT_FALSE(MetadataImage::FromProto(proto, At(4)).ok());
  }
  proto = image_.ToProto();
  proto.add_deleted_topic_ids(TopicNumber(5).ToBytes());
  EXPECT_TRUE(MetadataImage::FromProto(proto, At(4)).ok());
  proto.add_deleted_topic_ids(TopicNumber(5).ToBytes());
  EXPECT_FALSE(MetadataImage::FromProto(proto, At(4)).ok());
}

// Bytes that parse, in whatever state, are taken or refused; they never crash, and a refusal leaves
// no trace.
TEST_F(ImageTest, SurvivesAnyBytesThatParse) {
  Random random(20261129);
  BatchOf seed;
  seed.Topic(TopicNumber(4), "x").Whole(TopicNumber(4), 0, PartitionOn({1, 2}));
  seed.Change(topic_, 0, P(0)).Register(5).Fenced(1, 2, true).RemoveTopic(topic_);
  seed.TopicConfig(topic_, "k", "v").ProducerIds(77);
  const std::string bytes = seed.batch().SerializeAsString();
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = bytes;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      mutated[random.Below(mutated.size())] = static_cast<char>(random.Next());
    }
    v1::MetadataBatch batch;
    if (!batch.ParseFromString(mutated)) continue;
    MetadataImage image = image_;
    if (image.Apply(Next(), batch).ok()) {
      ++taken;
      EXPECT_TRUE(MetadataImage::FromProto(image.ToProto(), image.position()).ok());
    } else {
      ASSERT_TRUE(image == image_);
    }
  }
  EXPECT_LT(taken, 20000);
}

}  // namespace
}  // namespace conclave
