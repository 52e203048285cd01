#include "tools/storage/format.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "raft/storage/format.h"
#include "raft/storage/rocksdb_log_storage.h"

namespace conclave::tools {
namespace {

class FormatTest : public ::testing::Test {
 protected:
  FormatTest() {
    std::string pattern = JoinPath(::testing::TempDir(), "format.XXXXXX");
    base_ = mkdtemp(pattern.data());
    request_.directory = JoinPath(base_, "deep/data");
    request_.cluster_id = ClusterId::FromRandom(1, 2);
    request_.node_id = 1;
  }

  static std::string Voters() {
    std::string text;
    for (int i = 1; i <= 3; ++i) {
      text += (i > 1 ? "," : "") + std::to_string(i) + "@127.0.0.1:730" + std::to_string(i) + "#" +
              DirectoryId::FromRandom(7, i).ToString();
    }
    return text;
  }

  PosixFileSystem fs_;
  Random random_{1};
  std::string base_;
  FormatRequest request_;
};

TEST_F(FormatTest, AVotersDirectoryIdStandsInTheText) {
  request_.role = NodeRole::kController;
  request_.initial_voters = Voters();
  const auto identity = FormatStorage(fs_, request_, random_);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->directory_id, DirectoryId::FromRandom(7, 1));
  EXPECT_EQ(*OpenIdentity(fs_, request_.directory, NodeRole::kController, 1), *identity);

  auto log = raft::RocksDbLogStorage::Open(JoinPath(request_.directory, kRaftDirectoryName));
  ASSERT_TRUE(log.ok()) << log.status();
  const auto state = (*log)->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->entries.size(), 1u);
  EXPECT_EQ(*raft::VoterSet::Parse(*state->entries[0].data),
            *raft::ParseInitialVoters(request_.initial_voters));
}

TEST_F(FormatTest, AControllerWithoutVotersHasAnEmptyLog) {
  request_.role = NodeRole::kController;
  ASSERT_TRUE(FormatStorage(fs_, request_, random_).ok());
  auto log = raft::RocksDbLogStorage::Open(JoinPath(request_.directory, kRaftDirectoryName));
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE((*log)->Load()->entries.empty());
}

TEST_F(FormatTest, R42_AFormattedDirectoryIsRefusedAndNamed) {
  const auto first = FormatStorage(fs_, request_, random_);
  ASSERT_TRUE(first.ok()) << first.status();
  request_.node_id = 2;
  const auto second = FormatStorage(fs_, request_, random_);
  EXPECT_NE(second.status().message().find("belongs to broker 1"), std::string::npos);
  EXPECT_EQ(*ReadIdentity(fs_, request_.directory), *first);
}

TEST_F(FormatTest, R42_ADirectoryWithAnythingElseIsRefused) {
  ASSERT_TRUE(CreateDirectories(fs_, JoinPath(request_.directory, "precious")).ok());
  const auto made = FormatStorage(fs_, request_, random_);
  EXPECT_NE(made.status().message().find("precious"), std::string::npos);
  EXPECT_FALSE(*fs_.Exists(JoinPath(request_.directory, kIdentityFileName)));
}

TEST_F(FormatTest, WhatWasInterruptedIsTakenUpAgain) {
  request_.role = NodeRole::kController;
  request_.initial_voters = Voters();
  const std::string log = JoinPath(request_.directory, kRaftDirectoryName);
  // Before the log had its name, and before the identity had.
  ASSERT_TRUE(CreateDirectories(fs_, log + ".new").ok());
  ASSERT_TRUE(fs_.Open(log + ".new/MANIFEST-000001", FileSystem::OpenMode::kCreateNew).ok());
  const std::string identity = JoinPath(request_.directory, kIdentityFileName);
  ASSERT_TRUE(fs_.Open(identity + ".new", FileSystem::OpenMode::kCreateNew).ok());
  ASSERT_TRUE(FormatStorage(fs_, request_, random_).ok());
  // After the log was there, and before the identity was.
  ASSERT_TRUE(fs_.RemoveFile(identity).ok());
  const auto made = FormatStorage(fs_, request_, random_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*OpenIdentity(fs_, request_.directory, NodeRole::kController, 1), *made);
  const auto entries = fs_.List(request_.directory);
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, kIdentityFileName);
  EXPECT_EQ((*entries)[1].name, kRaftDirectoryName);
}

TEST_F(FormatTest, R42_ALogInUseWhoseIdentityIsLostIsLeftAsItIs) {
  request_.role = NodeRole::kController;
  request_.initial_voters = Voters();
  ASSERT_TRUE(FormatStorage(fs_, request_, random_).ok());
  {
    auto log = raft::RocksDbLogStorage::Open(JoinPath(request_.directory, kRaftDirectoryName));
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Load().ok());
    raft::Write write;
    write.hard_state.emplace().term = Term(2);
    ASSERT_TRUE((*log)->Append({write}).ok());
  }
  ASSERT_TRUE(fs_.RemoveFile(JoinPath(request_.directory, kIdentityFileName)).ok());
  const auto again = FormatStorage(fs_, request_, random_);
  EXPECT_NE(again.status().message().find("holds other data"), std::string::npos) << again.status();
  EXPECT_FALSE(*fs_.Exists(JoinPath(request_.directory, kIdentityFileName)));
  auto log = raft::RocksDbLogStorage::Open(JoinPath(request_.directory, kRaftDirectoryName));
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->Load()->hard_state.term, Term(2));
}

TEST_F(FormatTest, WrongRequestsMakeNothing) {
  std::vector<FormatRequest> wrong(6, request_);
  wrong[0].node_id = -1;
  wrong[1].cluster_id = ClusterId();
  wrong[2].initial_voters = Voters();  // A broker.
  wrong[3].role = NodeRole::kController;
  wrong[3].initial_voters = Voters();
  wrong[3].node_id = 4;
  wrong[4].role = NodeRole::kController;
  wrong[4].initial_voters = "1@127.0.0.1:7301";
  wrong[5].directory = "";
  for (const FormatRequest& request : wrong) {
    EXPECT_EQ(ErrorCodeOf(FormatStorage(fs_, request, random_).status()), v1::INVALID_REQUEST);
    EXPECT_FALSE(*fs_.Exists(request_.directory));
  }
}

TEST(InitialVotersTest, RefusesEveryOtherText) {
  const std::string good = "1@h:1#" + DirectoryId::FromRandom(1, 1).ToString();
  EXPECT_TRUE(raft::ParseInitialVoters(good).ok());
  EXPECT_EQ(raft::InitialVotersText(*raft::ParseInitialVoters(good)), good);
  for (const std::string& bad :
       {std::string(), good + ",", "," + good, good + "," + good, good.substr(1), "x" + good,
        "-" + good, std::string("1@h#abc"), good.substr(0, good.size() - 1),
        std::string("1@h:0#") + DirectoryId::FromRandom(1, 1).ToString()}) {
    EXPECT_FALSE(raft::ParseInitialVoters(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace conclave::tools
