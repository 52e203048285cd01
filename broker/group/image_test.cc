#include "broker/group/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "broker/group/rebalance.h"
#include "common/error/error.h"
#include "common/random/random.h"
#include "conclave/v1/group_records.pb.h"

namespace conclave::group {
namespace {

const TopicId kTopic = TopicId::FromRandom(3, 4);
PartitionId P(int32_t index) { return {kTopic, PartitionIndex(index)}; }

MemberDescription Description() {
  return {"instance",           "client", {"a", "b"}, Assignor::kRange, Duration::Seconds(60),
          Duration::Seconds(10)};
}

Member Holding() {
  Member member;
  member.epoch = GroupEpoch(7);
  member.held = {{P(0), {GroupEpoch(5), GroupEpoch(0)}}, {P(1), {GroupEpoch(6), GroupEpoch(7)}}};
  return member;
}

const StoredOffset kOffset{Offset(42), LeaderEpoch(3), "note", "a", WallTime::FromUnixMillis(99)};

std::vector<GroupRecord> Everything() {
  Group group;
  group.epoch = GroupEpoch(7);
  group.reason = "because";
  return {RecordOfGroup("g", group), RecordOfMember("g", "m", Description()),
          RecordOfTarget("g", "m", {P(0), P(2)}), RecordOfHolding("g", "m", Holding()),
          RecordOfOffset("g", P(1), kOffset)};
}

void CheckEverything(const GroupImage& image) {
  const Group* group = image.Find("g");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->epoch, GroupEpoch(7));
  EXPECT_EQ(group->reason, "because");
  EXPECT_FALSE(group->empty_since.has_value());
  ASSERT_EQ(group->members.size(), 1u);
  const Member& member = group->members.at("m");
  EXPECT_EQ(*member.description, Description());
  EXPECT_EQ(member.target, (PartitionSet{P(0), P(2)}));
  EXPECT_EQ(member.epoch, GroupEpoch(7));
  EXPECT_EQ(member.held, Holding().held);
  EXPECT_EQ(member.Assigned(), (PartitionSet{P(0)}));
  EXPECT_EQ(member.Revoked(), (PartitionSet{P(1)}));
  EXPECT_EQ(group->offsets.at(P(1)), kOffset);
}

TEST(GroupImageTest, ReplaysWhatTheRecordsSayInAnyOrder) {
  std::vector<GroupRecord> records = Everything();
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    GroupImage image;
    for (const size_t i : order) image.Apply(records[i]);
    image.Settle();
    CheckEverything(image);
    // Again: each says all there is to say.
    for (const size_t i : order) image.Apply(records[i]);
    CheckEverything(image);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(GroupImageTest, WhatEndsLeavesNothing) {
  GroupImage image;
  for (const GroupRecord& record : Everything()) image.Apply(record);
  image.Apply(EndOfMember("g", "m"));
  image.Apply(EndOfTarget("g", "m"));
  image.Apply(EndOfHolding("g", "m"));
  EXPECT_TRUE(image.Find("g")->members.empty());
  image.Apply(EndOfOffset("g", P(1)));
  image.Apply(EndOfGroup("g"));
  EXPECT_EQ(image, GroupImage());
  // Also of what was never there.
  image.Apply(EndOfOffset("h", P(1)));
  image.Apply(EndOfMember("h", "m"));
  EXPECT_EQ(image, GroupImage());
}

TEST(GroupImageTest, RemainsOfAMemberAreForgottenAfterLoading) {
  GroupImage image;
  image.Apply(RecordOfTarget("g", "m", {P(0)}));
  image.Apply(RecordOfHolding("g", "m", Holding()));
  image.Settle();
  EXPECT_EQ(image, GroupImage());
}

TEST(GroupImageTest, RefusesWhatItDoesNotKnow) {
  GroupImage image;
  const GroupRecord good = Everything()[1];
  v1::GroupRecordValue newer;
  newer.ParseFromString(*good.value);
  newer.set_version(2);
  EXPECT_EQ(ErrorCodeOf(image.Apply(good.key, newer.SerializeAsString())), v1::UNSUPPORTED_VERSION);
  EXPECT_EQ(ErrorCodeOf(image.Apply("", *good.value)), v1::UNSUPPORTED_VERSION);
  EXPECT_EQ(ErrorCodeOf(image.Apply("\xff\xff", *good.value)), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(ErrorCodeOf(image.Apply(good.key, "\xff\xff")), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(ErrorCodeOf(image.Apply(good.key, *Everything()[0].value)), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(ErrorCodeOf(image.Apply(good.key, "")), v1::CORRUPT_MESSAGE);
}

TEST(GroupImageTest, SurvivesAnyBytes) {
  Random random(5);
  const std::vector<GroupRecord> records = Everything();
  for (int i = 0; i < 20'000; ++i) {
    GroupRecord record = records[random.Below(records.size())];
    std::string& bytes = random.Chance(0.5) ? record.key : *record.value;
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    GroupImage image;
    static_cast<void>(image.Apply(record.key, *record.value));
    image.Settle();
  }
}

TEST(GroupImageTest, EqualKeysHaveEqualBytes) {
  EXPECT_EQ(RecordOfMember("g", "m", Description()).key, EndOfMember("g", "m").key);
  EXPECT_EQ(RecordOfOffset("g", P(1), kOffset).key, EndOfOffset("g", P(1)).key);
  EXPECT_NE(EndOfMember("g", "m").key, EndOfTarget("g", "m").key);
  EXPECT_NE(EndOfTarget("g", "m").key, EndOfHolding("g", "m").key);
  EXPECT_NE(EndOfOffset("g", P(1)).key, EndOfOffset("g", P(2)).key);
}

}  // namespace
}  // namespace conclave::group
