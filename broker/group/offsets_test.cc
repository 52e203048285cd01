// Committed offsets, and what a change of coordinator does to everything that is under way.
#include <gtest/gtest.h>

#include "broker/group/coordinator_harness.h"

namespace conclave::group {
namespace {

class OffsetsTest : public ::testing::Test {
 protected:
  OffsetsTest() { harness.SetTopic("t", 4); }

  v1::ErrorCode CommitAlone(int32_t partition, int64_t offset, const std::string& note = "") {
    return harness.CommitResult(
        harness.Commit("g", "", -1, harness.P("t", partition), offset, note));
  }
  std::optional<int64_t> Read(int32_t partition) {
    return harness.Fetched(harness.Fetch("g", {harness.P("t", partition)}));
  }
  v1::ErrorCode StatusOf(RequestId request) {
    const Reply* reply = harness.ReplyTo(request);
    EXPECT_NE(reply, nullptr) << "not answered";
    return reply == nullptr ? v1::NONE : ErrorCodeOf(reply->status);
  }

  CoordinatorHarness harness;
};

TEST_F(OffsetsTest, WhatIsCommittedIsRead) {
  EXPECT_EQ(Read(0), std::nullopt);
  EXPECT_EQ(CommitAlone(0, 17, "note"), v1::NONE);
  const RequestId all = harness.Fetch("g");
  const auto& response = std::get<v1::FetchOffsetsResponse>(harness.ReplyTo(all)->response);
  ASSERT_EQ(response.offsets_size(), 1);
  EXPECT_EQ(response.offsets(0).topic(), "t");
  EXPECT_EQ(response.offsets(0).topic_id(), harness.P("t", 0).topic.ToBytes());
  EXPECT_EQ(response.offsets(0).offset(), 17);
  EXPECT_EQ(response.offsets(0).leader_epoch(), 4);
  EXPECT_EQ(response.offsets(0).metadata(), "note");
  EXPECT_EQ(CommitAlone(0, 3), v1::NONE);
  EXPECT_EQ(Read(0), 3);
  EXPECT_EQ(Read(1), std::nullopt);
}

TEST_F(OffsetsTest, ACommitIsAnsweredAndReadOnlyWhenItIsCommitted) {
  EXPECT_EQ(CommitAlone(0, 1), v1::NONE);
  harness.hold_commits = true;
  const RequestId commit = harness.Commit("g", "", -1, harness.P("t", 0), 2);
  EXPECT_EQ(harness.ReplyTo(commit), nullptr);
  EXPECT_EQ(Read(0), 1);
  harness.Commit();
  EXPECT_EQ(harness.CommitResult(commit), v1::NONE);
  EXPECT_EQ(Read(0), 2);
}

TEST_F(OffsetsTest, AReadIsAnsweredAfterARoundThatBeganAfterIt) {
  EXPECT_EQ(CommitAlone(0, 1), v1::NONE);
  harness.hold_rounds = true;
  const RequestId first = harness.Fetch("g", {harness.P("t", 0)});
  const RequestId second = harness.Fetch("g", {harness.P("t", 0)});
  EXPECT_EQ(harness.ReplyTo(first), nullptr);
  harness.Confirm();
  EXPECT_EQ(harness.Fetched(first), 1);
  // It came when that round was under way.
  EXPECT_EQ(harness.ReplyTo(second), nullptr);
  harness.Confirm();
  EXPECT_EQ(harness.Fetched(second), 1);
  const RequestId third = harness.Fetch("g", {harness.P("t", 0)});
  harness.coordinator->LeadershipNotConfirmed(
      ReadRound(3), MakeError(v1::COORDINATOR_NOT_AVAILABLE, "the ISR does not answer"));
  harness.Run();
  EXPECT_EQ(StatusOf(third), v1::COORDINATOR_NOT_AVAILABLE);
}

TEST_F(OffsetsTest, WhatMakesNoSenseIsRefusedByName) {
  const PartitionId good = harness.P("t", 0);
  const auto result = [&](const PartitionId& partition, int64_t offset, const std::string& note) {
    return harness.CommitResult(harness.Commit("g", "", -1, partition, offset, note));
  };
  EXPECT_EQ(result(harness.P("t", 4), 1, ""), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(result(harness.P("t", -1), 1, ""), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(result({TopicId::FromRandom(5, 5), PartitionIndex(0)}, 1, ""), v1::UNKNOWN_TOPIC_ID);
  EXPECT_EQ(result(good, -1, ""), v1::INVALID_REQUEST);
  EXPECT_EQ(result(good, 1, std::string(4097, 'n')), v1::OFFSET_METADATA_TOO_LARGE);
  EXPECT_EQ(result(good, 1, std::string(4096, 'n')), v1::NONE);
  EXPECT_EQ(harness.CommitResult(harness.Commit("", "", -1, good, 1)), v1::INVALID_GROUP_ID);
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", "", 0, good, 1)), v1::INVALID_REQUEST);
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", "m", 1, good, 1)), v1::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(Read(0), 1);
}

TEST_F(OffsetsTest, OneBadOffsetSpoilsNoOther) {
  v1::CommitOffsetsRequest commit;
  commit.set_group("g");
  commit.set_member_epoch(-1);
  for (const int32_t partition : {0, 9, 1}) {
    auto& offset = *commit.add_offsets();
    offset.set_topic("t");
    offset.set_partition(partition);
    offset.set_offset(5);
  }
  const RequestId request = harness.NewRequest();
  harness.coordinator->CommitOffsets(request, commit, harness.now);
  harness.Run();
  const auto& response = std::get<v1::CommitOffsetsResponse>(harness.ReplyTo(request)->response);
  EXPECT_EQ(response.offsets(0).error().code(), v1::NONE);
  EXPECT_EQ(response.offsets(1).error().code(), v1::UNKNOWN_TOPIC_OR_PARTITION);
  EXPECT_EQ(response.offsets(2).error().code(), v1::NONE);
  EXPECT_EQ(Read(0), 5);
  EXPECT_EQ(Read(1), 5);
}

// R33.
TEST_F(OffsetsTest, R33_AZombiesCommitChangesNothing) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  EXPECT_EQ(CommitAlone(0, 1), v1::NON_EMPTY_GROUP);
  EXPECT_EQ(a.Commit(harness.P("t", 0), 100), v1::NONE);
  // Stopped for longer than its session, while another takes over and goes on.
  harness.Wait(Duration::Seconds(10));
  b.Connect();
  b.Obey();
  EXPECT_EQ(b.Commit(harness.P("t", 0), 200), v1::NONE);
  EXPECT_EQ(a.Commit(harness.P("t", 0), 100), v1::UNKNOWN_MEMBER_ID);
  EXPECT_EQ(Read(0), 200);
}

TEST_F(OffsetsTest, AMemberCommitsForWhatItHoldsAlone) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Obey();
  for (const PartitionId& partition : a.owned()) {
    EXPECT_EQ(a.Commit(partition, 7), v1::NONE);
    EXPECT_EQ(b.Commit(partition, 3), v1::STALE_MEMBER_EPOCH);
  }
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", a.id(), a.epoch() + 1, *a.owned().begin(), 9)),
            v1::FENCED_MEMBER_EPOCH);
}

// --- Expiry and deletion

TEST_F(OffsetsTest, OffsetsExpireAfterTheGroupEmptiedNotAfterTheCommit) {
  TestMember a(harness, "g");
  a.session_timeout_ms = 30 * 60 * 1000;
  a.Connect();
  a.Obey();
  EXPECT_EQ(a.Commit(harness.P("t", 0), 42), v1::NONE);
  for (int step = 0; step < 24 * 9 * 4; ++step) {
    harness.Wait(Duration::Seconds(15 * 60));
    a.Heartbeat();
  }
  EXPECT_EQ(Read(0), 42);
  a.Leave();
  harness.Wait(Duration::Seconds(7 * 24 * 3600 - 60));
  EXPECT_EQ(Read(0), 42);
  harness.Wait(Duration::Seconds(120));
  EXPECT_EQ(Read(0), std::nullopt);
  EXPECT_EQ(harness.coordinator->committed().Find("g"), nullptr);
  EXPECT_NE(harness.notes.back().find("forgot it with 1 committed offsets"), std::string::npos);
  // And the log says so, too.
  harness.FailOver();
  EXPECT_EQ(Read(0), std::nullopt);
}

TEST_F(OffsetsTest, AGroupUsedWithoutMembersIsNotForgotten) {
  for (int day = 0; day < 20; ++day) {
    EXPECT_EQ(CommitAlone(0, day), v1::NONE);
    harness.Wait(Duration::Seconds(24 * 3600));
  }
  EXPECT_EQ(Read(0), 19);
}

TEST_F(OffsetsTest, OffsetsOfDeletedTopicsAreDropped) {
  EXPECT_EQ(CommitAlone(0, 42), v1::NONE);
  harness.SetTopic("u", 1);
  EXPECT_EQ(harness.CommitResult(harness.Commit("g", "", -1, harness.P("u", 0), 8)), v1::NONE);
  const PartitionId old = harness.P("t", 0);
  harness.DeleteTopic("t");
  EXPECT_EQ(harness.Fetched(harness.Fetch("g", {old})), std::nullopt);
  harness.SetTopic("t", 4, 2);
  EXPECT_EQ(Read(0), std::nullopt);
  EXPECT_EQ(harness.Fetched(harness.Fetch("g", {harness.P("u", 0)})), 8);
}

TEST_F(OffsetsTest, ATopicDeletedBetweenTwoCoordinatorsIsDroppedByTheNext) {
  EXPECT_EQ(CommitAlone(0, 42), v1::NONE);
  const PartitionId old = harness.P("t", 0);
  harness.coordinator->Resign({});
  harness.DeleteTopic("t");
  harness.StartCoordinator();
  EXPECT_EQ(harness.coordinator->committed().Find("g")->offsets.count(old), 0u);
  // What is only not known is kept.
  EXPECT_EQ(harness.coordinator->committed().groups().size(), 1u);
}

// --- Coordinators that load, fail and go

TEST_F(OffsetsTest, R34_ALoadingCoordinatorNeverAnswersFromIgnorance) {
  EXPECT_EQ(CommitAlone(0, 42), v1::NONE);
  harness.hold_commits = true;
  harness.FailOver();
  EXPECT_FALSE(harness.coordinator->IsServing());
  EXPECT_EQ(StatusOf(harness.Fetch("g", {harness.P("t", 0)})), v1::COORDINATOR_LOAD_IN_PROGRESS);
  EXPECT_EQ(CommitAlone(0, 43), v1::COORDINATOR_LOAD_IN_PROGRESS);
  TestMember a(harness, "g");
  a.Connect();
  EXPECT_EQ(harness.EndOf(a.stream()), v1::COORDINATOR_LOAD_IN_PROGRESS);
  // Not before the high watermark has reached where its epoch begins.
  harness.Commit(harness.log().size() - 1);
  EXPECT_FALSE(harness.coordinator->IsServing());
  harness.Commit();
  EXPECT_TRUE(harness.coordinator->IsServing());
  EXPECT_EQ(Read(0), 42);
}

TEST_F(OffsetsTest, ACoordinatorThatCannotLoadTellsWhy) {
  GroupCoordinator coordinator(CoordinatorConfig(), Random(1));
  EXPECT_FALSE(GroupCoordinator::IsKnownKey(""));
  EXPECT_FALSE(GroupCoordinator::IsKnownKey("junk"));
  EXPECT_FALSE(coordinator.Replay("junk", std::nullopt).ok());
  coordinator.LoadFailed(MakeError(v1::UNSUPPORTED_VERSION, "at offset 7"));
  v1::FetchOffsetsRequest request;
  request.set_group("g");
  coordinator.FetchOffsets(RequestId(1), request, harness.now);
  const std::vector<Action> actions = coordinator.TakeActions();
  ASSERT_EQ(actions.size(), 1u);
  const auto& reply = std::get<Reply>(actions[0]);
  EXPECT_EQ(ErrorCodeOf(reply.status), v1::UNSUPPORTED_VERSION);
  EXPECT_EQ(reply.status.message(), "at offset 7");
}

TEST_F(OffsetsTest, ADeposedCoordinatorAnswersEverythingThatWaits) {
  TestMember a(harness, "g");
  a.Connect();
  a.Obey();
  harness.hold_commits = true;
  harness.hold_rounds = true;
  const RequestId commit = harness.Commit("g", a.id(), a.epoch(), harness.P("t", 0), 7);
  const RequestId read = harness.Fetch("g", {harness.P("t", 0)});
  TestMember b(harness, "g");
  b.Connect();
  v1::NodeHint hint;
  hint.set_node_id(3);
  harness.coordinator->Resign(hint);
  harness.Run();
  EXPECT_EQ(StatusOf(commit), v1::LEADER_CHANGED_AFTER_APPEND);
  EXPECT_EQ(StatusOf(read), v1::NOT_COORDINATOR);
  EXPECT_EQ(ErrorFromStatus(harness.ReplyTo(read)->status).hint().node_id(), 3);
  EXPECT_EQ(harness.EndOf(a.stream()), v1::NOT_COORDINATOR);
  EXPECT_EQ(harness.EndOf(b.stream()), v1::NOT_COORDINATOR);
  EXPECT_EQ(StatusOf(harness.Fetch("g")), v1::NOT_COORDINATOR);
  EXPECT_EQ(CommitAlone(0, 8), v1::NOT_COORDINATOR);
  // Nothing more is asked of the log.
  const size_t batches = harness.log().size();
  harness.Wait(Duration::Seconds(100));
  EXPECT_EQ(harness.log().size(), batches);
}

TEST_F(OffsetsTest, ANewCoordinatorGivesEachMemberAFullSession) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  a.Obey();
  b.Obey();
  harness.Wait(Duration::Seconds(9));
  harness.FailOver();
  harness.Wait(Duration::Seconds(9));
  a.Connect();
  EXPECT_EQ(a.assigned(), a.owned());
  EXPECT_EQ(harness.coordinator->committed().Find("g")->members.size(), 2u);
  harness.Wait(Duration::Seconds(1));
  EXPECT_EQ(harness.coordinator->committed().Find("g")->members.size(), 1u);
  a.Read();
  EXPECT_EQ(a.assigned().size(), 4u);
}

// R35.
TEST_F(OffsetsTest, R35_ARebalanceGoesOnAfterAFailover) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  b.Connect();
  const int32_t epoch = a.epoch();
  harness.FailOver();
  a.Connect();
  b.Connect();
  EXPECT_GE(a.epoch(), epoch);
  a.Obey();
  b.Obey();
  EXPECT_EQ(a.owned().size(), 2u);
  EXPECT_EQ(b.owned().size(), 2u);
  EXPECT_TRUE(harness.coordinator->committed().Find("g")->IsStable());
}

TEST_F(OffsetsTest, WhatCannotBeAppendedDidNotHappen) {
  TestMember a(harness, "g");
  a.Connect();
  a.Obey();
  const GroupImage before = harness.coordinator->committed();
  harness.fail_appends = MakeError(v1::NOT_ENOUGH_REPLICAS, "too few");
  const RequestId commit = harness.Commit("g", a.id(), a.epoch(), harness.P("t", 0), 7);
  EXPECT_EQ(StatusOf(commit), v1::NOT_ENOUGH_REPLICAS);
  TestMember b(harness, "g");
  b.Connect();
  EXPECT_EQ(harness.EndOf(b.stream()), v1::NOT_ENOUGH_REPLICAS);
  // A topic grows, and that cannot be written either.
  harness.SetTopic("t", 5);
  // A silent member's session ends, and that cannot be written: it has a new session then.
  harness.Wait(Duration::Seconds(10));
  EXPECT_EQ(harness.coordinator->committed(), before);
  EXPECT_EQ(harness.coordinator->speculative(), before);
  harness.fail_appends = absl::OkStatus();
  harness.Wait(Duration::Seconds(1));
  // The growth is made up for.
  EXPECT_EQ(harness.coordinator->committed().FindMember("g", a.id())->target.size(), 5u);
  harness.Wait(Duration::Seconds(9));
  EXPECT_TRUE(harness.coordinator->committed().Find("g")->members.empty());
}

TEST_F(OffsetsTest, AnUnknownOutcomeIsToldAndMayStillHappen) {
  EXPECT_EQ(CommitAlone(0, 1), v1::NONE);
  harness.hold_commits = true;
  const RequestId slow = harness.Commit("g", "", -1, harness.P("t", 0), 2);
  harness.Wait(Duration::Seconds(10));
  EXPECT_EQ(StatusOf(slow), v1::REQUEST_TIMED_OUT);
  const RequestId shaky = harness.Commit("g", "", -1, harness.P("t", 0), 3);
  harness.coordinator->OutcomeUnknown(
      MakeError(v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND, "the ISR shrank"));
  harness.Run();
  EXPECT_EQ(StatusOf(shaky), v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
  EXPECT_EQ(Read(0), 1);
  harness.Commit();
  EXPECT_EQ(Read(0), 3);
}

TEST_F(OffsetsTest, GroupsAreListedAndDescribed) {
  TestMember a(harness, "g"), b(harness, "g");
  a.Connect();
  a.Obey();
  EXPECT_EQ(a.Commit(harness.P("t", 0), 7), v1::NONE);
  b.Connect();
  const RequestId list = harness.NewRequest();
  harness.coordinator->ListGroups(list);
  harness.Run();
  const auto& groups = std::get<v1::ListGroupsResponse>(harness.ReplyTo(list)->response);
  ASSERT_EQ(groups.groups_size(), 1);
  EXPECT_EQ(groups.groups(0).state(), "reconciling");
  EXPECT_EQ(groups.groups(0).members(), 2);
  v1::DescribeGroupsRequest ask;
  ask.add_groups("g");
  ask.add_groups("none");
  const RequestId describe = harness.NewRequest();
  harness.coordinator->DescribeGroups(describe, ask, harness.now);
  harness.Run();
  const auto& found = std::get<v1::DescribeGroupsResponse>(harness.ReplyTo(describe)->response);
  EXPECT_EQ(found.groups(0).epoch(), 2);
  EXPECT_EQ(found.groups(0).coordinator(), 1);
  ASSERT_EQ(found.groups(0).members_size(), 2);
  int revoking = 0;
  for (const auto& member : found.groups(0).members()) {
    for (const auto& topic : member.revoking()) revoking += topic.partitions_size();
  }
  EXPECT_EQ(revoking, 2);
  EXPECT_EQ(found.groups(0).offsets(0).offset(), 7);
  EXPECT_EQ(found.groups(1).error().code(), v1::GROUP_ID_NOT_FOUND);
}

TEST(OffsetsBoundsTest, CallsThatWaitAreBounded) {
  CoordinatorConfig config;
  config.max_waiting_requests = 2;
  CoordinatorHarness harness(config);
  harness.SetTopic("t", 1);
  harness.hold_rounds = true;
  const RequestId first = harness.Fetch("g");
  harness.Fetch("g");
  const RequestId third = harness.Fetch("g");
  EXPECT_EQ(ErrorCodeOf(harness.ReplyTo(third)->status), v1::OVERLOADED);
  harness.Confirm();
  EXPECT_NE(harness.ReplyTo(first), nullptr);
}

}  // namespace
}  // namespace conclave::group
