#include "common/identity/identity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/error/error.h"
#include "common/fs/posix_file_system.h"

namespace conclave {
namespace {

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() {
    std::string pattern = JoinPath(::testing::TempDir(), "identity.XXXXXX");
    directory_ = mkdtemp(pattern.data());
    identity_ = {.role = NodeRole::kController,
                 .node_id = 2,
                 .cluster_id = ClusterId::FromRandom(1, 2),
                 .directory_id = DirectoryId::FromRandom(3, 4)};
  }

  std::string ReadFile() {
    return *ReadWholeFile(fs_, JoinPath(directory_, kIdentityFileName), 1 << 20);
  }
  void OverwriteFile(const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(fs_, JoinPath(directory_, kIdentityFileName), bytes).ok());
  }
  absl::StatusOr<Identity> Open(int32_t node_id = 2, NodeRole role = NodeRole::kController) {
    return OpenIdentity(fs_, directory_, role, node_id);
  }

  PosixFileSystem fs_;
  std::string directory_;
  Identity identity_;
};

TEST_F(IdentityTest, RoundTrips) {
  ASSERT_TRUE(WriteIdentity(fs_, directory_, identity_).ok());
  const auto read = Open();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, identity_);
}

TEST_F(IdentityTest, AnEmptyDirectoryIsToldHowToBeFormatted) {
  const auto read = Open();
  EXPECT_EQ(ErrorCodeOf(read.status()), v1::INVALID_CONFIG);
  EXPECT_NE(read.status().message().find("conclave storage format --role controller --data-dir " +
                                         directory_ + " --node-id 2"),
            std::string::npos)
      << read.status();
}

TEST_F(IdentityTest, R42_AnotherNodesDirectoryIsRefusedWithBothIds) {
  ASSERT_TRUE(WriteIdentity(fs_, directory_, identity_).ok());
  const std::string before = ReadFile();
  for (const auto& read : {Open(3), Open(2, NodeRole::kBroker)}) {
    EXPECT_EQ(ErrorCodeOf(read.status()), v1::INVALID_CONFIG);
    EXPECT_NE(read.status().message().find("controller 2"), std::string::npos);
    EXPECT_NE(read.status().message().find(directory_), std::string::npos);
  }
  EXPECT_NE(Open(3).status().message().find("controller 3"), std::string::npos);
  EXPECT_EQ(ReadFile(), before);
}

TEST_F(IdentityTest, R42_AMissingFileBesideDataIsRefused) {
  ASSERT_TRUE(fs_.CreateDirectory(JoinPath(directory_, "raft")).ok());
  const auto read = Open();
  EXPECT_EQ(ErrorCodeOf(read.status()), v1::STORAGE_ERROR);
  EXPECT_NE(read.status().message().find("missing beside data (raft)"), std::string::npos);
}

TEST_F(IdentityTest, R42_EveryCutAndEveryFlippedByteIsRefused) {
  ASSERT_TRUE(WriteIdentity(fs_, directory_, identity_).ok());
  const std::string whole = ReadFile();
  for (size_t i = 0; i < whole.size(); ++i) {
    OverwriteFile(whole.substr(0, i));
    EXPECT_FALSE(Open().ok()) << "cut at " << i;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    OverwriteFile(flipped);
    EXPECT_FALSE(Open().ok()) << "flipped at " << i;
    EXPECT_EQ(ReadFile(), flipped);
  }
}

TEST_F(IdentityTest, ADirectoryIsUsedByOneProcessAtATime) {
  auto first = LockDirectory(fs_, directory_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = LockDirectory(fs_, directory_);
  EXPECT_NE(second.status().message().find("another process"), std::string::npos);
  first->reset();
  EXPECT_TRUE(LockDirectory(fs_, directory_).ok());
}

}  // namespace
}  // namespace conclave
