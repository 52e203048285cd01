#include "broker/partition/free_space.h"

#include <gtest/gtest.h>

#include <string>

#include "common/error/error.h"
#include "common/fs/sim_file_system.h"

namespace conclave::broker {
namespace {

TEST(FreeSpaceTest, R28RecordsAreRefusedByNameUntilThereIsRoomAgain) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("data").ok());
  fs.SetCapacity(1'000);
  FreeSpace space(fs, "data", 100);
  space.Look();
  EXPECT_TRUE(space.Check().ok());
  {
    auto file = *fs.Open("data/f", FileSystem::OpenMode::kCreate);
    ASSERT_TRUE(file->Append(Buffer(std::string(901, 'x'))).ok());
  }
  EXPECT_TRUE(space.Check().ok()) << "as at the last look";
  space.Look();
  EXPECT_EQ(ErrorCodeOf(space.Check()), v1::OUT_OF_RESOURCES);
  EXPECT_NE(space.Check().message().find("data has 99 bytes"), std::string::npos);
  EXPECT_NE(space.Check().message().find("log.dir.free.bytes.min"), std::string::npos);
  ASSERT_TRUE(fs.RemoveFile("data/f").ok());
  space.Look();
  EXPECT_TRUE(space.Check().ok());
}

// A fast writer goes through the reserve within a second.
TEST(FreeSpaceTest, R28WhatIsWrittenBetweenLooksIsSeenBeforeTheReserveIsGone) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("data").ok());
  fs.SetCapacity(10'000);
  FreeSpace space(fs, "data", 800);
  space.Look();
  auto file = *fs.Open("data/f", FileSystem::OpenMode::kCreate);
  while (space.Check().ok()) {
    space.Take(30);
    ASSERT_TRUE(file->Append(Buffer(std::string(30, 'x'))).ok());
  }
  EXPECT_LT(*fs.FreeBytes("data"), 800u);
  EXPECT_GE(*fs.FreeBytes("data"), 800u - 100 - 2 * 30);
}

}  // namespace
}  // namespace conclave::broker
