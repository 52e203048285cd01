#include "broker/partition/data_directory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/fs/sim_file_system.h"
#include "common/random/random.h"

namespace conclave::broker {
namespace {

const TopicId kTopic = TopicId::FromRandom(1, 2);

PartitionIdentity Identity(int32_t partition = 0, TopicId topic = kTopic) {
  return {"t", topic, PartitionIndex(partition)};
}
PartitionId Id(int32_t partition = 0) { return {kTopic, PartitionIndex(partition)}; }

class DataDirectoryTest : public testing::Test {
 protected:
  DataDirectoryTest() { EXPECT_TRUE(CreateDirectories(fs_, "data").ok()); }

  std::unique_ptr<DataDirectory> Open() {
    auto opened = DataDirectory::Open(fs_, "data");
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  absl::Status OpenFails() { return DataDirectory::Open(fs_, "data").status(); }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    const auto listed = fs_.List(path);
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const DirectoryEntry& entry : *listed) names.push_back(entry.name);
    return names;
  }

  SimFileSystem fs_;
};

TEST_F(DataDirectoryTest, WhatWasMadeIsFound) {
  {
    const auto directory = Open();
    EXPECT_EQ(directory->found().size(), 0u);
    EXPECT_FALSE(directory->clean_stop());
    EXPECT_EQ(*directory->Create(Identity(0)), "data/t-0");
    EXPECT_EQ(*directory->Create(Identity(1)), "data/t-1");
    ASSERT_TRUE(directory->WriteRecoveryPoints({{{kTopic, PartitionIndex(1)}, Offset(7)}}).ok());
    ASSERT_TRUE(directory
                    ->WriteHighWatermarks({{{kTopic, PartitionIndex(0)}, Offset(3)},
                                           {{kTopic, PartitionIndex(1)}, Offset(5)}})
                    .ok());
    ASSERT_TRUE(directory->WriteCleanStop(BrokerEpoch(9)).ok());
  }
  {
    const auto directory = Open();
    ASSERT_EQ(directory->found().size(), 2u);
    EXPECT_EQ(directory->found()[1].directory, "data/t-1");
    EXPECT_EQ(directory->found()[1].identity, Identity(1));
    EXPECT_EQ(directory->RecoveryPointOf(Id(0)), Offset(3)) << "it was durable, too";
    EXPECT_EQ(directory->RecoveryPointOf(Id(1)), Offset(7));
    EXPECT_EQ(directory->high_watermarks().at({kTopic, PartitionIndex(1)}), Offset(5));
    EXPECT_EQ(directory->clean_stop(), BrokerEpoch(9));
  }
  // R25: the marker is gone with the first look.
  EXPECT_FALSE(Open()->clean_stop());
}

TEST_F(DataDirectoryTest, WhatIsUnfinishedGoesWhateverItIs) {
  Open();
  ASSERT_TRUE(fs_.Open("data/new/file", FileSystem::OpenMode::kCreateNew).ok());
  ASSERT_TRUE(CreateDirectories(fs_, "data/new/a/b").ok());
  ASSERT_NE(Open(), nullptr);
  EXPECT_EQ(Names("data/new"), std::vector<std::string>());
}

TEST_F(DataDirectoryTest, WhatWasGivenUpIsNotTakenForALogThatGoesOnceItIsHealed) {
  const auto directory = Open();
  const std::string first = directory->GivenUpPath(Id());
  ASSERT_TRUE(CreateDirectories(fs_, first).ok());
  const std::string second = directory->GivenUpPath(Id());
  EXPECT_NE(first, second);
  ASSERT_TRUE(CreateDirectories(fs_, second).ok());
  EXPECT_EQ(Names("data/damaged").size(), 2u);
  EXPECT_TRUE(directory->ListAside(DataDirectory::Aside::kDamaged)->empty());
}

TEST_F(DataDirectoryTest, APartitionIsMadeWholeOrNotAtAll) {
  for (uint64_t step = 0;; ++step) {
    SimFileSystem fs;
    ASSERT_TRUE(CreateDirectories(fs, "data").ok());
    auto directory = DataDirectory::Open(fs, "data");
    ASSERT_TRUE(directory.ok());
    fs.StopAfter(step);
    const bool made = (*directory)->Create(Identity()).ok();
    Random random(step);
    fs.Crash(random);
    const auto again = DataDirectory::Open(fs, "data");
    ASSERT_TRUE(again.ok()) << "step " << step << ": " << again.status();
    EXPECT_LE((*again)->found().size(), 1u);
    EXPECT_EQ((*again)->found().size() == 1u || made, (*again)->found().size() == 1u)
        << "step " << step << ": made, and lost";
    if ((*again)->found().empty()) {
      EXPECT_TRUE((*again)->Create(Identity()).ok());
    }
    if (made) break;
  }
}

TEST_F(DataDirectoryTest, ADeletedTopicsPartitionIsSetAsideAndMakesRoomForItsSuccessor) {
  const auto directory = Open();
  ASSERT_TRUE(directory->Create(Identity()).ok());
  const TopicId successor = TopicId::FromRandom(3, 4);
  EXPECT_FALSE(directory->Create(Identity(0, successor)).ok());
  const auto aside = directory->SetAside("data/t-0", Id(), DataDirectory::Aside::kDeleted);
  ASSERT_TRUE(aside.ok()) << aside.status();
  EXPECT_EQ(*aside, "data/deleted/" + ToString(Id()));
  EXPECT_TRUE(directory->Create(Identity(0, successor)).ok());
  const auto deleted = directory->ListAside(DataDirectory::Aside::kDeleted);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  ASSERT_EQ(deleted->size(), 1u);
  EXPECT_EQ(deleted->front().id, Id());
  EXPECT_TRUE(directory->RemoveAside(DataDirectory::Aside::kDeleted, deleted->front().name).ok());
  EXPECT_EQ(directory->ListAside(DataDirectory::Aside::kDeleted)->size(), 0u);
  EXPECT_EQ(Names("data/t-0"), std::vector<std::string>{"partition.json"});
}

TEST_F(DataDirectoryTest, StraysWithTheSameNameAreKeptSideBySide) {
  const auto directory = Open();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(directory->Create(Identity()).ok());
    ASSERT_TRUE(directory->SetAside("data/t-0", Id(), DataDirectory::Aside::kStray).ok());
  }
  EXPECT_EQ(Names("data/stray").size(), 2u);
}

TEST_F(DataDirectoryTest, WhatIsNoPartitionIsNamed) {
  ASSERT_TRUE(fs_.CreateDirectory("data/photos").ok());
  const absl::Status status = OpenFails();
  EXPECT_EQ(ErrorCodeOf(status), v1::STORAGE_ERROR);
  EXPECT_NE(status.message().find("data/photos"), std::string::npos) << status;
}

TEST_F(DataDirectoryTest, APartitionUnderAnotherNameIsNamed) {
  ASSERT_TRUE(Open()->Create(Identity()).ok());
  ASSERT_TRUE(fs_.Rename("data/t-0", "data/t-1").ok());
  const absl::Status status = OpenFails();
  EXPECT_EQ(ErrorCodeOf(status), v1::STORAGE_ERROR);
  EXPECT_NE(status.message().find("data/t-1"), std::string::npos) << status;
}

TEST_F(DataDirectoryTest, DamagedCheckpointsCountAsNone) {
  {
    const auto directory = Open();
    ASSERT_TRUE(directory->Create(Identity()).ok());
    ASSERT_TRUE(directory->WriteRecoveryPoints({{{kTopic, PartitionIndex(0)}, Offset(7)}}).ok());
  }
  fs_.Rot("data/recovery-points", 5);
  const auto directory = Open();
  EXPECT_EQ(directory->RecoveryPointOf(Id()), Offset(0));
  EXPECT_EQ(directory->found().size(), 1u);
}

}  // namespace
}  // namespace conclave::broker
