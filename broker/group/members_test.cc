// Membership: who is in a group, what each is to hold, and when that changes (KIP-848, KIP-345).
#include <gtest/gtest.h>

#include "broker/group/coordinator_harness.h"

namespace conclave::group {
namespace {

class MembersTest : public ::testing::Test {
 protected:
  MembersTest() { harness.SetTopic("t", 6); }

  const Group& G(const std::string& group = "g") {
    return *harness.coordinator->committed().Find(group);
  }
  PartitionSet Of(const std::vector<int32_t>& partitions) {
    PartitionSet set;
    for (const int32_t p : partitions) set.insert(harness.P("t", p));
    return set;
  }

  CoordinatorHarness harness;
};

TEST_F(MembersTest, OneMemberHoldsEverything) {
  TestMember a(harness, "g");
  a.Connect();
  EXPECT_FALSE(a.id().empty());
  EXPECT_EQ(a.epoch(), 1);
  EXPECT_EQ(a.assigned(), Of({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(G().epoch, GroupEpoch(1));
  EXPECT_TRUE(G().IsStable());
  EXPECT_NE(a.reason().find(a.id() + " joined"), std::string::npos) << a.reason();
}

TEST_F(MembersTest, NothingIsToldBeforeItIsCommitted) {
  harness.hold_commits = true;
  TestMember a(harness, "g");
  a.Connect();
  a.Heartbeat();
  EXPECT_EQ(a.messages(), 0u);
  EXPECT_EQ(harness.coordinator->committed().Find("g"), nullptr);
  harness.Commit();
  a.Read();
  EXPECT_EQ(a.messages(), 1u);
  EXPECT_EQ(a.assigned().size(), 6u);
}

TEST_F(MembersTest, APartitionGoesToItsNewOwnerOnlyWhenTheOldOneGaveItUp) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  const size_t before = a.messages();
  b.Connect();
  EXPECT_TRUE(b.assigned().empty());
  EXPECT_EQ(b.epoch(), 2);
  EXPECT_FALSE(G().IsStable());
  a.Read();
  EXPECT_EQ(a.messages(), before + 1);
  EXPECT_EQ(a.assigned().size(), 3u);
  EXPECT_EQ(a.epoch(), 2);
  // Alive, and owning still what it has not given up.
  a.SayOwned();
  b.Heartbeat();
  EXPECT_TRUE(b.assigned().empty());
  a.Obey();
  b.Read();
  EXPECT_EQ(b.assigned().size(), 3u);
  EXPECT_EQ(b.epoch(), 3);
  b.Obey();
  EXPECT_TRUE(G().IsStable());
  for (const PartitionId& partition : b.owned()) EXPECT_FALSE(a.owned().contains(partition));
}

// R35's other half: what nobody asked back goes on.
TEST_F(MembersTest, AddingAMemberPausesNoUnaffectedPartition) {
  TestMember a(harness, "g"), b(harness, "g"), c(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Read();
  b.Obey();
  const int32_t epoch_of_b = b.epoch();
  const PartitionSet held_by_a = a.assigned();
  // Of another topic: nothing of the two moves.
  harness.SetTopic("other", 1);
  c.topics = {"other"};
  const size_t messages = a.messages();
  c.Connect();
  EXPECT_EQ(c.assigned().size(), 1u);
  a.Read();
  EXPECT_EQ(a.messages(), messages);
  EXPECT_EQ(a.assigned(), held_by_a);
  b.Read();
  EXPECT_EQ(b.epoch(), epoch_of_b);
  // A commit goes on also for what stays with a member that loses something else.
  TestMember d(harness, "g");
  const int32_t epoch_before = a.epoch();
  d.Connect();
  const auto* member = harness.coordinator->committed().FindMember("g", a.id());
  ASSERT_EQ(member->Revoked().size(), 1u);
  const PartitionId kept = *member->Assigned().begin();
  const PartitionId asked_back = *member->Revoked().begin();
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", a.id(), epoch_before, kept, 5)), v1::NONE);
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", a.id(), epoch_before, asked_back, 6)),
            v1::NONE);
  a.Obey();
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", a.id(), a.epoch(), asked_back, 7)),
            v1::STALE_MEMBER_EPOCH);
}

// An answer that was under way when more was asked for is no answer to that.
TEST_F(MembersTest, AnOldMessageGivesNothingUp) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  // It is told of six partitions, and before it has read that, three are asked back.
  v1::MemberMessage old;
  old.set_member_epoch(1);
  old.mutable_owned();
  b.Connect();
  harness.Say(a.stream(), old);
  b.Read();
  EXPECT_TRUE(b.assigned().empty());
  EXPECT_EQ(harness.coordinator->committed().FindMember("g", a.id())->Revoked().size(), 3u);
  a.Obey();
  b.Read();
  EXPECT_EQ(b.assigned().size(), 3u);
}

TEST_F(MembersTest, EpochsRiseWithMembershipSubscriptionAndPartitionCount) {
  TestMember a(harness, "g");
  a.Connect();
  EXPECT_EQ(G().epoch, GroupEpoch(1));
  a.Heartbeat();
  EXPECT_EQ(G().epoch, GroupEpoch(1));
  harness.SetTopic("t", 7);
  a.Read();
  EXPECT_EQ(G().epoch, GroupEpoch(2));
  EXPECT_EQ(a.assigned().size(), 7u);
  EXPECT_NE(a.reason().find("t"), std::string::npos);
  harness.SetTopic("unrelated", 3);
  EXPECT_EQ(G().epoch, GroupEpoch(2));
  a.Subscribe({"t", "unrelated"});
  EXPECT_EQ(G().epoch, GroupEpoch(3));
  EXPECT_EQ(a.assigned().size(), 10u);
  a.Obey();
  a.Leave();
  EXPECT_EQ(G().epoch, GroupEpoch(4));
  EXPECT_TRUE(G().members.empty());
  EXPECT_TRUE(G().empty_since.has_value());
}

TEST_F(MembersTest, ATopicThatComesLaterIsAssignedThen) {
  TestMember a(harness, "g");
  a.topics = {"later"};
  a.Connect();
  EXPECT_TRUE(a.assigned().empty());
  EXPECT_EQ(a.epoch(), 1);
  harness.SetTopic("later", 2);
  a.Read();
  EXPECT_EQ(a.assigned().size(), 2u);
}

TEST_F(MembersTest, ATopicMadeAnewIsAnother) {
  TestMember a(harness, "g");
  a.Connect();
  a.Obey();
  harness.DeleteTopic("t");
  a.Obey();
  EXPECT_TRUE(a.owned().empty());
  const TopicId again = harness.SetTopic("t", 2, 2);
  a.Read();
  EXPECT_EQ(a.assigned(), (PartitionSet{{again, PartitionIndex(0)}, {again, PartitionIndex(1)}}));
}

TEST_F(MembersTest, TheAssignorThatMostAskForIsTaken) {
  TestMember a(harness, "g", "a"), b(harness, "g", "b"), c(harness, "g", "c");
  a.assignor = b.assignor = "range";
  c.assignor = "sticky";
  for (TestMember* member : {&a, &b, &c}) member->Connect();
  for (int round = 0; round < 3; ++round) {
    for (TestMember* member : {&a, &b, &c}) member->Obey();
  }
  EXPECT_EQ(a.owned(), Of({0, 1}));
  EXPECT_EQ(b.owned(), Of({2, 3}));
  EXPECT_EQ(c.owned(), Of({4, 5}));
}

TEST_F(MembersTest, WhoLeavesIsToldSoAndItsPartitionsGoOn) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Obey();
  a.Leave();
  EXPECT_EQ(harness.EndOf(a.stream()), v1::NONE);
  EXPECT_EQ(a.reason(), "it left");
  b.Read();
  EXPECT_EQ(b.assigned().size(), 6u);
  EXPECT_NE(b.reason().find(a.id() + " is out: it left"), std::string::npos) << b.reason();
}

TEST_F(MembersTest, ASilentMembersSessionEndsWithAReason) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Obey();
  for (int second = 0; second < 9; ++second) {
    harness.Wait(Duration::Seconds(1));
    b.Heartbeat();
  }
  EXPECT_FALSE(a.is_ended());
  harness.Wait(Duration::Seconds(1));
  EXPECT_EQ(harness.EndOf(a.stream()), v1::UNKNOWN_MEMBER_ID);
  b.Read();
  EXPECT_EQ(b.assigned().size(), 6u);
  EXPECT_NE(b.reason().find("nothing was heard from it for its session timeout of 10000 ms"),
            std::string::npos)
      << b.reason();
  // The zombie is refused, and told why (R33).
  EXPECT_EQ(a.Commit(harness.P("t", 0), 100), v1::UNKNOWN_MEMBER_ID);
  TestMember zombie = a;
  zombie.Connect();
  EXPECT_EQ(harness.EndOf(zombie.stream()), v1::UNKNOWN_MEMBER_ID);
  EXPECT_NE(harness.ended[zombie.stream()].message().find("session timeout"), std::string::npos);
}

TEST_F(MembersTest, AMembersOwnSessionTimeoutCounts) {
  TestMember a(harness, "g");
  a.session_timeout_ms = 30'000;
  a.Connect();
  harness.Wait(Duration::Seconds(29));
  EXPECT_FALSE(a.is_ended());
  harness.Wait(Duration::Seconds(1));
  EXPECT_TRUE(a.is_ended());
}

TEST_F(MembersTest, ABrokenStreamEndsTheSessionAfterAGrace) {
  TestMember a(harness, "g");
  a.Connect();
  a.Obey();
  a.Break();
  harness.Wait(Duration::Milliseconds(199));
  EXPECT_EQ(G().members.size(), 1u);
  // Back in time.
  a.Connect();
  EXPECT_EQ(a.epoch(), 1);
  EXPECT_EQ(a.assigned().size(), 6u);
  harness.Wait(Duration::Seconds(1));
  EXPECT_EQ(G().members.size(), 1u);
  a.Break();
  harness.Wait(Duration::Milliseconds(200));
  EXPECT_TRUE(G().members.empty());
  EXPECT_NE(G().reason.find("its stream broke and was not back within 200 ms"), std::string::npos);
}

TEST_F(MembersTest, AMemberThatKeepsWhatIsAskedBackIsPutOut) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  for (int second = 0; second < 59; ++second) {
    harness.Wait(Duration::Seconds(1));
    a.Heartbeat();
    b.Heartbeat();
  }
  EXPECT_FALSE(a.is_ended());
  harness.Wait(Duration::Seconds(1));
  EXPECT_EQ(harness.EndOf(a.stream()), v1::UNKNOWN_MEMBER_ID);
  b.Read();
  EXPECT_EQ(b.assigned().size(), 6u);
  EXPECT_NE(b.reason().find("rebalance timeout of 60000 ms"), std::string::npos) << b.reason();
}

TEST_F(MembersTest, GivingUpInTimeStopsTheClock) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  harness.Wait(Duration::Seconds(5));
  a.Obey();
  for (int second = 0; second < 70; ++second) {
    harness.Wait(Duration::Seconds(1));
    a.Heartbeat();
    b.Heartbeat();
  }
  EXPECT_FALSE(a.is_ended());
}

// --- Static members

TEST_F(MembersTest, AStaticMembersSessionNeverEndsEarly) {
  TestMember a(harness, "g", "", "instance-1");
  a.Connect();
  a.Obey();
  a.Break();
  harness.Wait(Duration::Seconds(9));
  EXPECT_EQ(G().members.size(), 1u);
  harness.Wait(Duration::Seconds(1));
  EXPECT_TRUE(G().members.empty());
}

TEST_F(MembersTest, AnInstanceComesBackToWhatItHeld) {
  TestMember a(harness, "g", "", "instance-1"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Obey();
  const PartitionSet held = a.owned();
  const std::string old_id = a.id();
  const int32_t old_epoch = a.epoch();
  a.Leave(-2);
  EXPECT_EQ(harness.EndOf(a.stream()), v1::NONE);
  EXPECT_EQ(G().members.size(), 2u);
  TestMember again(harness, "g", "", "instance-1");
  again.Connect();
  EXPECT_NE(again.id(), old_id);
  EXPECT_EQ(again.assigned(), held);
  EXPECT_EQ(G().members.size(), 2u);
  b.Read();
  EXPECT_EQ(b.assigned().size(), 3u);
  // Its earlier life is out.
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", old_id, old_epoch, *held.begin(), 1)),
            v1::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(again.Commit(*held.begin(), 2), v1::NONE);
}

TEST_F(MembersTest, AnInstanceInUseIsRefused) {
  TestMember a(harness, "g", "", "instance-1");
  a.Connect();
  TestMember twin(harness, "g", "", "instance-1");
  twin.Connect();
  EXPECT_EQ(harness.EndOf(twin.stream()), v1::UNRELEASED_INSTANCE_ID);
  EXPECT_FALSE(a.is_ended());
  a.Break();
  twin.Connect();
  EXPECT_EQ(twin.assigned().size(), 6u);
}

// --- Coming back, and who may not

TEST_F(MembersTest, AStreamTakesTheOtherOnesPlace) {
  TestMember a(harness, "g");
  a.Connect();
  a.Obey();
  const StreamId first = a.stream();
  a.Connect();
  EXPECT_EQ(harness.EndOf(first), v1::FENCED_MEMBER_EPOCH);
  harness.Break(first);
  harness.Wait(Duration::Seconds(1));
  EXPECT_EQ(G().members.size(), 1u);
}

TEST_F(MembersTest, JoiningAnewUnderOnesIdFencesTheEarlierLife) {
  TestMember a(harness, "g", "chosen");
  a.Connect();
  a.Obey();
  EXPECT_EQ(a.Commit(harness.P("t", 0), 10), v1::NONE);
  TestMember again(harness, "g", "chosen");
  again.Connect();
  EXPECT_EQ(again.epoch(), 2);
  EXPECT_EQ(again.assigned().size(), 6u);
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", "chosen", 1, harness.P("t", 0), 5)),
            v1::STALE_MEMBER_EPOCH);
  EXPECT_EQ(again.Commit(harness.P("t", 0), 11), v1::NONE);
}

TEST_F(MembersTest, WrongEpochsAreFenced) {
  TestMember a(harness, "g", "chosen");
  a.Connect();
  a.Obey();
  v1::MemberMessage message;
  message.set_group("g");
  message.set_member_id("chosen");
  message.set_member_epoch(9);
  StreamId stream = harness.NewStream();
  harness.Say(stream, message);
  EXPECT_EQ(harness.EndOf(stream), v1::FENCED_MEMBER_EPOCH);
  EXPECT_FALSE(a.is_ended());
  // An older epoch, with what it was given under that, is a message that was lost.
  harness.SetTopic("t", 7);
  a.Break();
  a.Connect();
  EXPECT_EQ(a.assigned().size(), 7u);
  // Without, it may be anything.
  message.set_member_epoch(1);
  stream = harness.NewStream();
  harness.Say(stream, message);
  EXPECT_EQ(harness.EndOf(stream), v1::FENCED_MEMBER_EPOCH);
  // And what it cannot have been given under that epoch.
  auto& owned = *message.mutable_owned()->add_topics();
  owned.set_topic("t");
  owned.add_partitions(6);
  stream = harness.NewStream();
  harness.Say(stream, message);
  EXPECT_EQ(harness.EndOf(stream), v1::FENCED_MEMBER_EPOCH);
}

TEST_F(MembersTest, WhatMakesNoSenseIsRefusedByName) {
  const auto refusal = [&](v1::MemberMessage message) {
    const StreamId stream = harness.NewStream();
    harness.Say(stream, message);
    return harness.EndOf(stream);
  };
  v1::MemberMessage good;
  good.set_group("g");
  good.mutable_subscription()->add_topics("t");
  v1::MemberMessage bad = good;
  bad.clear_group();
  EXPECT_EQ(refusal(bad), v1::INVALID_GROUP_ID);
  bad.set_group(std::string(256, 'g'));
  EXPECT_EQ(refusal(bad), v1::INVALID_GROUP_ID);
  bad = good;
  bad.clear_subscription();
  EXPECT_EQ(refusal(bad), v1::INVALID_REQUEST);
  bad = good;
  bad.mutable_subscription()->set_assignor("fair");
  EXPECT_EQ(refusal(bad), v1::UNSUPPORTED_ASSIGNOR);
  bad = good;
  bad.mutable_subscription()->set_session_timeout_ms(5);
  EXPECT_EQ(refusal(bad), v1::INVALID_REQUEST);
  bad = good;
  bad.set_member_epoch(-3);
  EXPECT_EQ(refusal(bad), v1::INVALID_REQUEST);
  bad = good;
  bad.set_client_id(std::string(256, 'c'));
  EXPECT_EQ(refusal(bad), v1::INVALID_REQUEST);
  bad = good;
  bad.set_member_id("stranger");
  bad.set_member_epoch(3);
  EXPECT_EQ(refusal(bad), v1::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(harness.coordinator->committed().Find("g"), nullptr);

  // A stream is of one member; it may come back on another.
  TestMember a(harness, "g");
  a.Connect();
  v1::MemberMessage other;
  other.set_member_id("another");
  harness.Say(a.stream(), other);
  EXPECT_EQ(harness.EndOf(a.stream()), v1::INVALID_REQUEST);
  a.Connect();
  EXPECT_EQ(a.assigned().size(), 6u);
}

TEST(MembersBoundsTest, AGroupHasABoundedSize) {
  CoordinatorConfig config;
  config.max_members_per_group = 2;
  CoordinatorHarness harness(config);
  harness.SetTopic("t", 6);
  TestMember a(harness, "g"), b(harness, "g"), c(harness, "g");
  a.Connect();
  b.Connect();
  c.Connect();
  EXPECT_EQ(harness.EndOf(c.stream()), v1::GROUP_MAX_SIZE_REACHED);
  b.Leave();
  c.Connect();
  EXPECT_GT(c.epoch(), 0);
}

}  // namespace
}  // namespace conclave::group
