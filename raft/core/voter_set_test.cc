#include "raft/core/voter_set.h"

#include <gtest/gtest.h>

namespace conclave::raft {
namespace {

ReplicaKey Key(int node, uint64_t disk) { return {NodeId(node), DirectoryId::FromRandom(disk, 1)}; }

TEST(VoterSetTest, SurvivesItsWireForm) {
  const VoterSet set = VoterSet::Of({{Key(2, 20), "b:1"}, {Key(1, 10), "a:1"}}).value();
  EXPECT_EQ(VoterSet::Parse(set.Serialize()).value(), set);
  EXPECT_EQ(set.members().front().key, Key(1, 10)) << "sorted, so alike on every node";
}

TEST(VoterSetTest, R3_TheSameNodeWithAnotherDirectoryIsNoMember) {
  const VoterSet set = VoterSet::Of({{Key(1, 10), ""}, {Key(2, 20), ""}}).value();
  EXPECT_TRUE(set.Contains(Key(1, 10)));
  EXPECT_FALSE(set.Contains(Key(1, 11)));
}

TEST(VoterSetTest, RefusesWhatNoQuorumCanBe) {
  EXPECT_FALSE(VoterSet::Of({}).ok());
  EXPECT_FALSE(VoterSet::Of({{Key(-1, 1), ""}}).ok());
  EXPECT_FALSE(VoterSet::Of({{{NodeId(1), DirectoryId()}, ""}}).ok());
  EXPECT_FALSE(VoterSet::Of({{Key(1, 1), ""}, {Key(1, 2), ""}}).ok());
  EXPECT_FALSE(VoterSet::Parse("no voter set").ok());
  EXPECT_FALSE(VoterSet::Parse("").ok());
}

}  // namespace
}  // namespace conclave::raft
