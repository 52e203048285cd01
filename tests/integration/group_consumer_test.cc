// The client's GroupConsumer against the brokers' real coordinator, in virtual time.
#include "client/group/group_consumer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/integration/group_consumer_testing.h"

namespace conclave {
namespace {

using Kind = GroupEvent::Kind;
using Member = GroupWorld::Member;

std::vector<int64_t> Range(int64_t from, int64_t to) {
  std::vector<int64_t> all(static_cast<size_t>(to - from));
  std::iota(all.begin(), all.end(), from);
  return all;
}

class GroupConsumerTest : public testing::Test {
 protected:
  void Begin(int partitions, int records_each) {
    world_.CreateTopic(partitions);
    for (int p = 0; p < partitions; ++p) world_.Append(records_each, p);
    world_.service().MoveTo(1);
  }
  Duration now() { return world_.cluster.clock().Now() - MonotonicTime(); }

  GroupWorld world_;
};

TEST_F(GroupConsumerTest, BeginsByThePolicyAndGoesOnWhereItCommitted) {
  Begin(2, 10);
  Member& first = world_.Join();
  first.PollOn();
  ASSERT_TRUE(world_.Until([&] { return first.total() == 20; }));
  EXPECT_EQ(first.read[0], Range(0, 10));
  EXPECT_EQ(first.read[1], Range(0, 10));
  EXPECT_EQ(first.Owned(), (std::vector<int>{0, 1}));
  ASSERT_EQ(first.Count(Kind::kAssigned), 1);
  EXPECT_NE(first.events[0].reason.find("joined"), std::string::npos);
  EXPECT_TRUE(world_.Commit(first).ok());
  EXPECT_EQ(world_.Committed(0), 10);
  EXPECT_EQ(world_.Committed(1), 10);
  EXPECT_TRUE(world_.Close(first).ok());
  EXPECT_TRUE(world_.service().Find("g")->members.empty());

  world_.Append(3, 1);
  Member& second = world_.Join();
  second.PollOn();
  ASSERT_TRUE(world_.Until([&] { return second.total() == 3; }));
  world_.cluster.RunFor(Duration::Seconds(1));
  EXPECT_EQ(second.read[1], Range(10, 13));
  EXPECT_EQ(second.read.count(0), 0u);
}

TEST_F(GroupConsumerTest, OnlyWhatALaterPollOrCommitConfirmsIsCommitted) {
  Begin(1, 10);
  Member& member = world_.Join();
  while (member.total() < 4) ASSERT_TRUE(world_.PollOnce(member, 4).ok());
  // The position that the policy set is all that counts.
  world_.cluster.RunFor(Duration::Seconds(6));
  EXPECT_EQ(world_.Committed(0), 0);
  ASSERT_TRUE(world_.PollOnce(member, 3).ok());
  world_.cluster.RunFor(Duration::Seconds(6));
  EXPECT_EQ(world_.Committed(0), 4);
  EXPECT_EQ(member.total(), 7u);
  world_.Kill(member);
  Member& heir = world_.Join();
  heir.PollOn();
  ASSERT_TRUE(world_.Until([&] { return heir.total() == 6; }));
  EXPECT_EQ(heir.read[0], Range(4, 10));
}

TEST_F(GroupConsumerTest, CloseCommitsWhatCountsAndWithoutAutoCommitNothing) {
  Begin(1, 10);
  GroupConsumerOptions options = world_.Options();
  options.auto_commit = false;
  Member& manual = world_.Join(options);
  while (manual.total() < 5) ASSERT_TRUE(world_.PollOnce(manual, 5).ok());
  ASSERT_TRUE(world_.PollOnce(manual, 2).ok());
  world_.cluster.RunFor(Duration::Seconds(20));
  ASSERT_TRUE(world_.Close(manual).ok());
  EXPECT_EQ(world_.Committed(0), std::nullopt);

  Member& automatic = world_.Join();
  while (automatic.total() < 5) ASSERT_TRUE(world_.PollOnce(automatic, 5).ok());
  ASSERT_TRUE(world_.PollOnce(automatic, 2).ok());
  EXPECT_EQ(automatic.total(), 7u);
  ASSERT_TRUE(world_.Close(automatic).ok());
  EXPECT_EQ(world_.Committed(0), 5);
}

TEST_F(GroupConsumerTest, MembersShareAndNothingIsReadTwice) {
  Begin(6, 200);
  Member& first = world_.Join();
  first.PollOn(7);
  ASSERT_TRUE(world_.Until([&] { return first.total() > 100; }));
  Member& second = world_.Join();
  second.PollOn(7);
  ASSERT_TRUE(world_.Until([&] { return first.total() + second.total() >= 1200; }));
  world_.cluster.RunFor(Duration::Seconds(1));
  EXPECT_EQ(first.total() + second.total(), 1200u);
  EXPECT_EQ(first.Owned().size(), 3u);
  EXPECT_EQ(second.Owned().size(), 3u);
  for (int p = 0; p < 6; ++p) EXPECT_EQ(world_.handed[p].size(), 200u) << p;
  EXPECT_EQ(first.Count(Kind::kRevoked), 1);
  EXPECT_EQ(first.Count(Kind::kLost), 0);
  ASSERT_TRUE(world_.Close(second).ok());
  ASSERT_TRUE(world_.Until([&] { return first.Owned().size() == 6; }));
  world_.Append(1, 0);
  world_.Append(1, 5);
  ASSERT_TRUE(world_.Until([&] { return first.total() + second.total() == 1202; }));
  ASSERT_TRUE(world_.Commit(first).ok());
  ASSERT_TRUE(world_.Close(first).ok());
  for (int p = 0; p < 6; ++p) EXPECT_EQ(world_.Committed(p), p % 5 == 0 ? 201 : 200) << p;
}

TEST_F(GroupConsumerTest, RevokedPartitionsWaitForWhatIsBeingWorkedOff) {
  Begin(2, 10);
  Member& first = world_.Join();
  while (first.read[0].size() < 2 || first.read[1].size() < 2) {
    ASSERT_TRUE(world_.PollOnce(first, 4).ok());
  }
  const auto read = first.read;
  Member& second = world_.Join();
  second.PollOn();
  world_.cluster.RunFor(Duration::Seconds(20));
  EXPECT_TRUE(second.Owned().empty());
  EXPECT_EQ(first.Owned().size(), 1u);
  ASSERT_TRUE(world_.Commit(first).ok());
  ASSERT_TRUE(world_.Until([&] { return second.Owned().size() == 1; }));
  const int moved = second.Owned()[0];
  ASSERT_TRUE(
      world_.Until([&] { return second.read[moved].size() + read.at(moved).size() == 10; }));
  EXPECT_EQ(second.read[moved].front(), static_cast<int64_t>(read.at(moved).size()));
}

TEST_F(GroupConsumerTest, AUserWhoDoesNotComeBackIsWaitedForHalfTheRebalanceTimeout) {
  Begin(2, 10);
  GroupConsumerOptions options = world_.Options();
  options.rebalance_timeout = Duration::Seconds(10);
  Member& first = world_.Join(options);
  while (first.total() < 20) ASSERT_TRUE(world_.PollOnce(first).ok());
  const Duration before = now();
  Member& second = world_.Join();
  second.PollOn();
  ASSERT_TRUE(world_.Until([&] { return !second.Owned().empty(); }));
  EXPECT_GE(now() - before, Duration::Seconds(5));
  EXPECT_LT(now() - before, Duration::Seconds(6));
  EXPECT_EQ(first.Count(Kind::kLost), 0);
}

TEST_F(GroupConsumerTest, R34_ACoordinatorThatMovesCostsNeitherMembershipNorOffsets) {
  for (const bool hints : {true, false}) {
    SCOPED_TRACE(hints);
    GroupWorld world(hints ? 1 : 2);
    world.CreateTopic(3);
    for (int p = 0; p < 3; ++p) world.Append(100, p);
    world.service().hints = hints;
    world.service().MoveTo(1);
    Member& member = world.Join();
    member.PollOn(5);
    ASSERT_TRUE(world.Until([&] { return member.total() >= 50; }));
    const std::string id = member.consumer->member_id();
    ASSERT_TRUE(world.Commit(member).ok());
    for (const int broker : {2, 3, 1}) {
      world.service().MoveTo(broker);
      world.cluster.RunFor(Duration::Milliseconds(300));
      const std::optional<int64_t> committed = world.Committed(0);
      EXPECT_TRUE(world.Commit(member).ok());
      EXPECT_GE(world.Committed(0), committed);
    }
    // The broker that coordinates dies; after a while another does.
    world.service().Die();
    world.cluster.Stop(1);
    for (int p = 0; p < 3; ++p) world.cluster.world().MoveLeader("t", p, 2);
    world.cluster.RunFor(Duration::Seconds(3));
    world.service().MoveTo(3);
    for (int p = 0; p < 3; ++p) world.Append(10, p);
    ASSERT_TRUE(world.Until([&] { return member.total() == 330; }));
    ASSERT_TRUE(world.Commit(member).ok());
    EXPECT_EQ(member.total(), 330u);
    EXPECT_EQ(member.consumer->member_id(), id);
    EXPECT_EQ(member.Count(Kind::kAssigned), 1);
    EXPECT_EQ(member.Count(Kind::kLost), 0);
    for (int p = 0; p < 3; ++p) EXPECT_EQ(world.Committed(p), 110);
  }
}

TEST_F(GroupConsumerTest, ACoordinatorThatCannotTellIsNoReasonToReset) {
  Begin(1, 10);
  Member& first = world_.Join();
  first.PollOn();
  ASSERT_TRUE(world_.Until([&] { return first.total() == 10; }));
  ASSERT_TRUE(world_.Commit(first).ok());
  ASSERT_TRUE(world_.Close(first).ok());
  const v1::ErrorCode codes[] = {v1::COORDINATOR_LOAD_IN_PROGRESS, v1::COORDINATOR_NOT_AVAILABLE,
                                 v1::NOT_COORDINATOR, v1::REQUEST_TIMED_OUT,
                                 v1::UNKNOWN_SERVER_ERROR};
  size_t refusals = 0;
  world_.service().before_fetch = [&](const v1::FetchOffsetsRequest&) {
    if (refusals == std::size(codes)) return absl::OkStatus();
    return MakeError(codes[refusals++], "cannot tell at present");
  };
  Member& second = world_.Join();
  second.PollOn();
  world_.service().hold_loading = true;
  world_.service().MoveTo(2);
  world_.cluster.RunFor(Duration::Seconds(5));
  EXPECT_TRUE(second.Owned().empty());
  world_.service().hold_loading = false;
  world_.service().MoveTo(3);
  ASSERT_TRUE(world_.Until([&] { return !second.Owned().empty(); }));
  EXPECT_EQ(refusals, std::size(codes));
  EXPECT_EQ(second.Count(Kind::kTrouble), 1);
  world_.Append(2);
  ASSERT_TRUE(world_.Until([&] { return second.total() == 2; }));
  EXPECT_EQ(second.read[0], Range(10, 12));
}

TEST_F(GroupConsumerTest, R33_AZombiesCommitIsRefusedAndTheOffsetStays) {
  Begin(1, 100);
  GroupConsumerOptions options = world_.Options();
  options.session_timeout = Duration::Seconds(2);
  Member& zombie = world_.Join(options);
  while (zombie.total() < 100) ASSERT_TRUE(world_.PollOnce(zombie).ok());
  const std::string zombie_id = zombie.consumer->member_id();
  zombie.executor->Pause();
  Member& heir = world_.Join();
  heir.PollOn();
  world_.Append(100);
  ASSERT_TRUE(world_.Until([&] { return heir.total() == 200; }));
  ASSERT_TRUE(world_.Commit(heir).ok());
  ASSERT_TRUE(world_.Close(heir).ok());
  EXPECT_EQ(world_.Committed(0), 200);
  // It commits before it hears anything of what happened meanwhile.
  std::optional<absl::Status> committed;
  zombie.consumer->Commit([&](absl::Status status) { committed = std::move(status); });
  zombie.executor->Resume();
  ASSERT_TRUE(world_.Until([&] { return committed.has_value(); }));
  EXPECT_EQ(ErrorCodeOf(*committed), v1::UNKNOWN_MEMBER_ID);
  EXPECT_NE(committed->message().find("session timeout of 2000 ms"), std::string::npos)
      << *committed;
  EXPECT_EQ(world_.Committed(0), 200);
  ASSERT_TRUE(world_.Until([&] { return zombie.Count(Kind::kLost) == 1; }));
  const GroupEvent& lost = zombie.events[1];
  EXPECT_EQ(lost.kind, Kind::kLost);
  EXPECT_EQ(lost.partitions, (std::vector<TopicPartition>{{"t", PartitionIndex(0)}}));
  EXPECT_EQ(ErrorCodeOf(lost.status), v1::UNKNOWN_MEMBER_ID);
  EXPECT_NE(lost.status.message().find("session timeout of 2000 ms"), std::string::npos);
  // It is a member again, another one, and goes on where the group is.
  zombie.PollOn();
  ASSERT_TRUE(world_.Until([&] { return !zombie.Owned().empty(); }));
  EXPECT_NE(zombie.consumer->member_id(), zombie_id);
  world_.Append(1);
  ASSERT_TRUE(world_.Until([&] { return zombie.total() == 101; }));
  EXPECT_EQ(zombie.read[0].back(), 200);
}

TEST_F(GroupConsumerTest, ABrokenStreamIsNoRebalance) {
  Begin(2, 10);
  Member& member = world_.Join();
  Member& other = world_.Join();
  member.PollOn();
  other.PollOn();
  ASSERT_TRUE(
      world_.Until([&] { return member.Owned().size() == 1 && other.Owned().size() == 1; }));
  const auto epoch = world_.service().Find("g")->epoch;
  for (int i = 0; i < 5; ++i) {
    world_.cluster.Break(1);
    world_.cluster.RunFor(Duration::Seconds(2));
  }
  EXPECT_EQ(world_.service().Find("g")->epoch, epoch);
  EXPECT_EQ(member.Count(Kind::kLost) + other.Count(Kind::kLost), 0);
  EXPECT_EQ(member.Owned().size(), 1u);
}

TEST_F(GroupConsumerTest, CommitsAreRetriedUntilTheirTimeout) {
  Begin(1, 10);
  GroupConsumerOptions options = world_.Options();
  options.commit_timeout = Duration::Seconds(3);
  options.auto_commit = false;
  Member& member = world_.Join(options);
  while (member.total() < 10) ASSERT_TRUE(world_.PollOnce(member).ok());
  int refusals = 3;
  world_.service().before_commit = [&](const v1::CommitOffsetsRequest& request) {
    EXPECT_EQ(request.member_id(), member.consumer->member_id());
    EXPECT_GT(request.member_epoch(), 0);
    if (refusals-- > 0) return MakeError(v1::COORDINATOR_LOAD_IN_PROGRESS, "loading");
    return absl::OkStatus();
  };
  EXPECT_TRUE(world_.Commit(member).ok());
  EXPECT_EQ(world_.Committed(0), 10);
  EXPECT_EQ(world_.service().commits(), 4);
  // Nothing new: nobody is asked.
  EXPECT_TRUE(world_.Commit(member).ok());
  EXPECT_EQ(world_.service().commits(), 4);
  world_.Append(1);
  while (member.total() < 11) ASSERT_TRUE(world_.PollOnce(member).ok());
  refusals = 1'000'000;
  const Duration before = now();
  EXPECT_EQ(ErrorCodeOf(world_.Commit(member)), v1::COORDINATOR_LOAD_IN_PROGRESS);
  EXPECT_LE(now() - before, Duration::Seconds(3));
  EXPECT_GE(now() - before, Duration::Seconds(2));
  EXPECT_EQ(world_.Committed(0), 10);
}

TEST_F(GroupConsumerTest, AMemberThatIsNotPolledLeavesAndSaysWhy) {
  Begin(2, 10);
  GroupConsumerOptions options = world_.Options();
  options.max_poll_interval = Duration::Seconds(30);
  Member& idle = world_.Join(options);
  while (idle.total() < 20) ASSERT_TRUE(world_.PollOnce(idle).ok());
  Member& other = world_.Join();
  other.PollOn();
  world_.cluster.RunFor(Duration::Seconds(29));
  EXPECT_EQ(idle.Count(Kind::kLost), 0);
  ASSERT_TRUE(world_.Until([&] { return other.Owned().size() == 2; }, Duration::Seconds(2)));
  ASSERT_EQ(idle.Count(Kind::kLost), 1);
  EXPECT_NE(idle.events.back().status.message().find("max_poll_interval, 30000 ms"),
            std::string::npos);
  EXPECT_EQ(world_.service().Find("g")->members.size(), 1u);
  // What it had in hand cannot be committed, and its next Poll joins anew.
  EXPECT_EQ(ErrorCodeOf(world_.Commit(idle)), v1::UNKNOWN_MEMBER_ID);
  idle.PollOn();
  ASSERT_TRUE(world_.Until([&] { return idle.Owned().size() == 1; }));
  EXPECT_EQ(other.Owned().size(), 1u);
}

TEST_F(GroupConsumerTest, AStaticMemberComesBackWithoutARebalance) {
  Begin(4, 10);
  GroupConsumerOptions options = world_.Options();
  options.instance_id = "one";
  Member& before = world_.Join(options);
  Member& other = world_.Join();
  before.PollOn();
  other.PollOn();
  ASSERT_TRUE(world_.Until([&] {
    return before.Owned().size() == 2 && other.Owned().size() == 2 &&
           before.total() + other.total() >= 40;
  }));
  const std::vector<int> owned = before.Owned();
  const size_t events = other.events.size();
  // Another of the same name, meanwhile, is refused.
  Member& twin = world_.Join(options);
  EXPECT_EQ(ErrorCodeOf(world_.PollOnce(twin)), v1::UNRELEASED_INSTANCE_ID);
  ASSERT_TRUE(world_.Close(before).ok());
  world_.cluster.RunFor(Duration::Seconds(5));
  Member& after = world_.Join(options);
  after.PollOn();
  ASSERT_TRUE(world_.Until([&] { return after.Owned().size() == 2; }));
  world_.cluster.RunFor(Duration::Seconds(20));
  EXPECT_EQ(after.Owned(), owned);
  EXPECT_EQ(other.events.size(), events);
}

TEST_F(GroupConsumerTest, APositionThatThePolicySetIsCommittedToo) {
  Begin(1, 10);
  GroupConsumerOptions options = world_.Options();
  options.consumer.reset = ResetPolicy::kLatest;
  Member& first = world_.Join(options);
  first.PollOn();
  ASSERT_TRUE(world_.Until([&] { return world_.Committed(0) == 10; }));
  ASSERT_TRUE(world_.Close(first).ok());
  // What comes while nobody is there is not passed over by the next one's policy.
  world_.Append(5);
  Member& second = world_.Join(options);
  second.PollOn();
  ASSERT_TRUE(world_.Until([&] { return second.total() == 5; }));
  EXPECT_EQ(second.read[0], Range(10, 15));
}

TEST_F(GroupConsumerTest, PolicyNoneTellsTheUser) {
  Begin(1, 10);
  GroupConsumerOptions options = world_.Options();
  options.consumer.reset = ResetPolicy::kNone;
  Member& member = world_.Join(options);
  member.PollOn();
  ASSERT_TRUE(world_.Until([&] { return !member.failures.empty(); }));
  EXPECT_EQ(ErrorCodeOf(member.failures[0]), v1::OFFSET_OUT_OF_RANGE);
  EXPECT_EQ(member.total(), 0u);
}

TEST_F(GroupConsumerTest, ATopicMadeAnewBeginsAnew) {
  Begin(1, 10);
  Member& member = world_.Join();
  member.PollOn();
  ASSERT_TRUE(world_.Until([&] { return world_.Committed(0) == 10; }));
  world_.cluster.world().DeleteTopic("t");
  world_.service().TellTopics();
  ASSERT_TRUE(world_.Until([&] { return member.Owned().empty(); }));
  world_.CreateTopic(1);
  world_.Append(3);
  ASSERT_TRUE(world_.Until([&] { return member.total() == 13; }));
  EXPECT_EQ(std::vector<int64_t>(member.read[0].end() - 3, member.read[0].end()), Range(0, 3));
  ASSERT_TRUE(world_.Commit(member).ok());
  EXPECT_EQ(world_.Committed(0), 3);
}

TEST_F(GroupConsumerTest, ADeletedTopicIsAnEventAndNoErrorOfPoll) {
  Begin(1, 10);
  Member& member = world_.Join();
  member.PollOn();
  ASSERT_TRUE(world_.Until([&] { return world_.Committed(0) == 10; }));
  // The coordinator hears of it late.
  world_.cluster.world().DeleteTopic("t");
  world_.cluster.world().Wake();
  ASSERT_TRUE(world_.Until([&] { return member.Count(GroupEvent::Kind::kTrouble) > 0; }));
  EXPECT_EQ(ErrorCodeOf(member.events.back().status), v1::UNKNOWN_TOPIC_OR_PARTITION);
  world_.service().TellTopics();
  ASSERT_TRUE(world_.Until([&] { return member.Owned().empty(); }));
  EXPECT_TRUE(member.failures.empty());
  world_.CreateTopic(1);
  world_.Append(3);
  ASSERT_TRUE(world_.Until([&] { return member.total() == 13; }));
}

}  // namespace
}  // namespace conclave
