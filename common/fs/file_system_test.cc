// What every FileSystem does, held against the operating system's and the simulated one.
#include "common/fs/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/fs/sim_file_system.h"

namespace conclave {
namespace {

using Mode = FileSystem::OpenMode;

enum class Kind { kPosix, kSim };

class FileSystemTest : public ::testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() {
    if (GetParam() == Kind::kPosix) {
      fs_ = std::make_unique<PosixFileSystem>();
      std::string pattern = JoinPath(::testing::TempDir(), "file_system.XXXXXX");
      root_ = mkdtemp(pattern.data());
    } else {
      fs_ = std::make_unique<SimFileSystem>();
      root_ = "/root";
      EXPECT_TRUE(fs_->CreateDirectory(root_).ok());
    }
  }

  std::string Path(const std::string& name) const { return JoinPath(root_, name); }

  std::unique_ptr<File> Open(const std::string& name, Mode mode) {
    auto file = fs_->Open(Path(name), mode);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  void Write(const std::string& name, const std::string& bytes) {
    const auto file = Open(name, Mode::kCreate);
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->Append(Buffer(bytes)).ok());
  }
  std::string Read(const std::string& name) {
    auto bytes = ReadWholeFile(*fs_, Path(name), 1 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }
  bool Exists(const std::string& name) {
    const auto exists = fs_->Exists(Path(name));
    EXPECT_TRUE(exists.ok()) << exists.status();
    return exists.ok() && *exists;
  }

  // The error names what was tried and with which file.
  void ExpectError(const absl::Status& status, const std::string& operation,
                   const std::string& name) {
    EXPECT_EQ(ErrorCodeOf(status), v1::STORAGE_ERROR) << status;
    ExpectNames(status, operation, name);
  }
  void ExpectNotFound(const absl::Status& status, const std::string& operation,
                      const std::string& name) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    ExpectNames(status, operation, name);
  }

  std::unique_ptr<FileSystem> fs_;
  std::string root_;

 private:
  void ExpectNames(const absl::Status& status, const std::string& operation,
                   const std::string& name) {
    const std::string text(status.message());
    EXPECT_NE(text.find(operation), std::string::npos) << text;
    EXPECT_NE(text.find(Path(name)), std::string::npos) << text;
  }
};

TEST_P(FileSystemTest, OpenModes) {
  ExpectNotFound(fs_->Open(Path("a"), Mode::kReadOnly).status(), "open", "a");
  ExpectNotFound(fs_->Open(Path("a"), Mode::kExisting).status(), "open", "a");
  EXPECT_FALSE(Exists("a"));
  Open("a", Mode::kCreateNew);
  EXPECT_TRUE(Exists("a"));
  ExpectError(fs_->Open(Path("a"), Mode::kCreateNew).status(), "open", "a");
  Write("a", "bytes");
  // Not made anew.
  EXPECT_EQ(Open("a", Mode::kCreate)->size(), 5u);
  EXPECT_EQ(Open("a", Mode::kExisting)->size(), 5u);
  EXPECT_EQ(Open("a", Mode::kReadOnly)->size(), 5u);
  EXPECT_EQ(Open("a", Mode::kReadOnly)->path(), Path("a"));
}

TEST_P(FileSystemTest, DirectoriesAndMissingParentsAreNotOpened) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  for (Mode mode : {Mode::kReadOnly, Mode::kExisting, Mode::kCreate}) {
    ExpectError(fs_->Open(Path("d"), mode).status(), "open", "d");
  }
  ExpectNotFound(fs_->Open(Path("none/a"), Mode::kCreate).status(), "open", "none/a");
  Write("file", "x");
  ExpectError(fs_->Open(Path("file/a"), Mode::kCreate).status(), "open", "file/a");
}

TEST_P(FileSystemTest, AppendsAtTheEnd) {
  auto file = Open("a", Mode::kCreate);
  Buffer slices(std::string("one "));
  slices.Append(Slice::CopyOf("two "));
  slices.Append(Slice());
  slices.Append(Slice::CopyOf(std::string(70'000, 'x')));
  ASSERT_TRUE(file->Append(slices).ok());
  EXPECT_EQ(file->size(), 70'008u);
  ASSERT_TRUE(file->Append(Buffer()).ok());
  ASSERT_TRUE(file->Append(Buffer(std::string("\0end", 4))).ok());
  EXPECT_EQ(file->size(), 70'012u);
  ASSERT_TRUE(file->Sync().ok());
  file.reset();
  EXPECT_EQ(Read("a"), "one two " + std::string(70'000, 'x') + std::string("\0end", 4));
  // Goes on where it ended.
  Write("a", "!");
  EXPECT_EQ(Open("a", Mode::kReadOnly)->size(), 70'013u);
}

TEST_P(FileSystemTest, WhatIsOpenForReadingIsNotWritten) {
  Write("a", "bytes");
  const auto file = Open("a", Mode::kReadOnly);
  ExpectError(file->Append(Buffer(std::string("x"))), "append to", "a");
  ExpectError(file->Truncate(1), "truncate", "a");
  EXPECT_EQ(Read("a"), "bytes");
}

TEST_P(FileSystemTest, ReadsAt) {
  Write("a", "0123456789");
  const auto file = Open("a", Mode::kReadOnly);
  EXPECT_EQ(*file->ReadAt(0, 3), "012");
  EXPECT_EQ(*file->ReadAt(4, 0), "");
  EXPECT_EQ(*file->ReadAt(8, 5), "89");
  EXPECT_EQ(*file->ReadAt(10, 5), "");
  EXPECT_EQ(*file->ReadAt(1'000, 5), "");
  // What another open file appended is read.
  Write("a", "more");
  EXPECT_EQ(*file->ReadAt(8, 10), "89more");
}

TEST_P(FileSystemTest, Truncates) {
  const auto file = Open("a", Mode::kCreate);
  ASSERT_TRUE(file->Append(Buffer(std::string("0123456789"))).ok());
  ASSERT_TRUE(file->Truncate(10).ok());
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_EQ(file->size(), 4u);
  ASSERT_TRUE(file->Append(Buffer(std::string("ab"))).ok());
  EXPECT_EQ(Read("a"), "0123ab");
  ASSERT_TRUE(file->Truncate(0).ok());
  EXPECT_EQ(Read("a"), "");
}

TEST_P(FileSystemTest, RewritesWhatIsThere) {
  const auto file = Open("a", Mode::kCreate);
  std::string text;
  for (int i = 0; text.size() < 900'000; ++i) text += std::to_string(i) + " ";
  ASSERT_TRUE(file->Append(Buffer(text)).ok());
  for (const uint64_t from : {uint64_t{0}, uint64_t{4'097}, text.size() - 1, text.size()}) {
    EXPECT_TRUE(file->Rewrite(from).ok()) << from;
    EXPECT_EQ(file->size(), text.size());
    EXPECT_EQ(Read("a"), text);
  }
  ASSERT_TRUE(file->Append(Buffer(std::string("end"))).ok());
  EXPECT_EQ(Read("a"), text + "end");
  ExpectError(Open("a", Mode::kReadOnly)->Rewrite(0), "rewrite", "a");
}

TEST_P(FileSystemTest, RenameReplaces) {
  Write("a", "new");
  Write("b", "old");
  const auto open = Open("a", Mode::kExisting);
  ASSERT_TRUE(fs_->Rename(Path("a"), Path("b")).ok());
  EXPECT_FALSE(Exists("a"));
  EXPECT_EQ(Read("b"), "new");
  // A file that is open goes with its name.
  ASSERT_TRUE(open->Append(Buffer(std::string("er"))).ok());
  EXPECT_EQ(Read("b"), "newer");
  ASSERT_TRUE(fs_->Rename(Path("b"), Path("b")).ok());
  EXPECT_EQ(Read("b"), "newer");

  ExpectNotFound(fs_->Rename(Path("a"), Path("c")), "rename", "a");
  ExpectNotFound(fs_->Rename(Path("b"), Path("none/c")), "rename", "b");
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  ExpectError(fs_->Rename(Path("b"), Path("d")), "rename", "b");
  ASSERT_TRUE(fs_->Rename(Path("b"), Path("d/b")).ok());
  EXPECT_EQ(Read("d/b"), "newer");
}

TEST_P(FileSystemTest, RenamesDirectories) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  ASSERT_TRUE(fs_->CreateDirectory(Path("empty")).ok());
  Write("d/a", "bytes");
  ASSERT_TRUE(fs_->Rename(Path("d"), Path("e")).ok());
  EXPECT_FALSE(Exists("d"));
  EXPECT_EQ(Read("e/a"), "bytes");
  ExpectError(fs_->Rename(Path("empty"), Path("e")), "rename", "empty");
  ExpectError(fs_->Rename(Path("e"), Path("e/inside")), "rename", "e");
  ASSERT_TRUE(fs_->Rename(Path("e"), Path("empty")).ok());
  EXPECT_EQ(Read("empty/a"), "bytes");
}

TEST_P(FileSystemTest, Removes) {
  ExpectNotFound(fs_->RemoveFile(Path("a")), "remove", "a");
  ExpectNotFound(fs_->RemoveDirectory(Path("a")), "remove directory", "a");
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  Write("d/a", "bytes");
  ExpectError(fs_->RemoveFile(Path("d")), "remove", "d");
  ExpectError(fs_->RemoveDirectory(Path("d/a")), "remove directory", "d/a");
  ExpectError(fs_->RemoveDirectory(Path("d")), "remove directory", "d");
  const auto open = Open("d/a", Mode::kExisting);
  ASSERT_TRUE(fs_->RemoveFile(Path("d/a")).ok());
  // A file that is open lives on without a name.
  ASSERT_TRUE(open->Append(Buffer(std::string("!"))).ok());
  EXPECT_EQ(*open->ReadAt(0, 10), "bytes!");
  EXPECT_FALSE(Exists("d/a"));
  ASSERT_TRUE(fs_->RemoveDirectory(Path("d")).ok());
  EXPECT_FALSE(Exists("d"));
}

TEST_P(FileSystemTest, ListsByName) {
  EXPECT_TRUE(fs_->List(root_)->empty());
  Write("b", "12345");
  Write("a.new", "");
  Write("a", "1");
  ASSERT_TRUE(fs_->CreateDirectory(Path("c")).ok());
  Write("c/inside", "1");
  const auto entries = fs_->List(root_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  ASSERT_EQ(names, (std::vector<std::string>{"a", "a.new", "b", "c"}));
  EXPECT_EQ((*entries)[2].size, 5u);
  EXPECT_FALSE((*entries)[2].is_directory);
  EXPECT_TRUE((*entries)[3].is_directory);
  ExpectNotFound(fs_->List(Path("none")).status(), "list", "none");
  ExpectError(fs_->List(Path("a")).status(), "list", "a");
}

TEST_P(FileSystemTest, MakesDirectories) {
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  ASSERT_TRUE(fs_->CreateDirectory(Path("d")).ok());
  ASSERT_TRUE(fs_->SyncDirectory(Path("d")).ok());
  ExpectNotFound(fs_->CreateDirectory(Path("none/d")), "make directory", "none/d");
  Write("a", "");
  ExpectError(fs_->CreateDirectory(Path("a")), "make directory", "a");
  ExpectNotFound(fs_->SyncDirectory(Path("none")), "directory", "none");
  ExpectError(fs_->SyncDirectory(Path("a")), "directory", "a");
  EXPECT_FALSE(Exists("a/b"));
}

TEST_P(FileSystemTest, CreateDirectoriesMakesThoseAbove) {
  ASSERT_TRUE(CreateDirectories(*fs_, Path("x/y/z")).ok());
  ASSERT_TRUE(CreateDirectories(*fs_, Path("x/y/z")).ok());
  Write("x/y/z/a", "bytes");
  EXPECT_EQ(Read("x/y/z/a"), "bytes");
  ExpectError(CreateDirectories(*fs_, Path("x/y/z/a/b")), "make directory", "x/y/z/a/b");
}

TEST_P(FileSystemTest, LocksExclude) {
  auto lock = fs_->Lock(Path("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(Exists("lock"));
  ExpectError(fs_->Lock(Path("lock")).status(), "is locked", "lock");
  EXPECT_TRUE(fs_->Lock(Path("other")).ok());
  lock->reset();
  EXPECT_TRUE(fs_->Lock(Path("lock")).ok());
  ExpectNotFound(fs_->Lock(Path("none/lock")).status(), "open lock file", "none/lock");
}

TEST_P(FileSystemTest, WriteFileAtomicallyReplaces) {
  ASSERT_TRUE(WriteFileAtomically(*fs_, Path("a"), "first").ok());
  EXPECT_EQ(Read("a"), "first");
  // What a crash left behind does not trouble it.
  Write("a.new", "half of a");
  ASSERT_TRUE(WriteFileAtomically(*fs_, Path("a"), "second").ok());
  EXPECT_EQ(Read("a"), "second");
  EXPECT_FALSE(Exists("a.new"));
  ExpectNotFound(WriteFileAtomically(*fs_, Path("none/a"), "x"), "open", "none/a.new");
}

TEST_P(FileSystemTest, ReadWholeFileIsBounded) {
  Write("a", "12345");
  EXPECT_EQ(*ReadWholeFile(*fs_, Path("a"), 5), "12345");
  ExpectError(ReadWholeFile(*fs_, Path("a"), 4).status(), "5 bytes", "a");
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, ::testing::Values(Kind::kPosix, Kind::kSim),
                         [](const auto& info) {
                           return info.param == Kind::kPosix ? "Posix" : "Sim";
                         });

constexpr int64_t kThenMs = 1'000'000'000'250;

void SetLastWritten(const std::string& path) {
  const timespec then[] = {{1'000'000'000, 0}, {1'000'000'000, 250'000'000}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), then, 0), 0);
}

std::string PathInNewDirectory() {
  std::string pattern = JoinPath(::testing::TempDir(), "posix.XXXXXX");
  return JoinPath(mkdtemp(pattern.data()), "a");
}

TEST(PosixFileSystemTest, TellsWhenAFileWasLastWritten) {
  PosixFileSystem fs;
  const std::string path = PathInNewDirectory();
  auto file = fs.Open(path, Mode::kCreate);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(Buffer(std::string("abc"))).ok());
  ASSERT_NO_FATAL_FAILURE(SetLastWritten(path));
  EXPECT_EQ((*file)->LastWritten()->unix_millis(), kThenMs);
  ASSERT_TRUE((*file)->Rewrite(0).ok());
  EXPECT_EQ((*file)->LastWritten()->unix_millis(), kThenMs);
  ASSERT_TRUE((*file)->Append(Buffer(std::string("d"))).ok());
  EXPECT_GT((*file)->LastWritten()->unix_millis(), kThenMs);
}

TEST(PosixFileSystemTest, APipeIsNoFileAndNotWaitedFor) {
  PosixFileSystem fs;
  const std::string path = PathInNewDirectory();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  for (Mode mode : {Mode::kReadOnly, Mode::kExisting, Mode::kCreate}) {
    const auto opened = fs.Open(path, mode);
    EXPECT_EQ(ErrorCodeOf(opened.status()), v1::STORAGE_ERROR);
    EXPECT_NE(opened.status().message().find(path + ": it is no regular file"), std::string::npos);
  }
}

// Bytes of the disk that a file holds.
uint64_t HeldBy(const std::string& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(PosixFileSystemTest, SetsRoomAsideAndGivesItBack) {
  PosixFileSystem fs;
  const std::string path = PathInNewDirectory();
  auto opened = fs.Open(path, Mode::kCreate);
  ASSERT_TRUE(opened.ok());
  File& file = **opened;
  constexpr uint64_t kMiB = 1 << 20;
  ASSERT_TRUE(file.Append(Buffer(std::string(kMiB, 'a'))).ok());
  file.Reserve(4 * kMiB);
  EXPECT_GE(HeldBy(path), 5 * kMiB);
  EXPECT_EQ(file.size(), kMiB);
  ASSERT_TRUE(file.Append(Buffer(std::string("b"))).ok());
  EXPECT_EQ(*ReadWholeFile(fs, path, 8 * kMiB), std::string(kMiB, 'a') + "b");
  ASSERT_NO_FATAL_FAILURE(SetLastWritten(path));
  file.ReleaseReserved();
  EXPECT_LT(HeldBy(path), 2 * kMiB);
  EXPECT_EQ(file.LastWritten()->unix_millis(), kThenMs);
  EXPECT_EQ(*ReadWholeFile(fs, path, 8 * kMiB), std::string(kMiB, 'a') + "b");
}

TEST(PathTest, JoinsAndParents) {
  EXPECT_EQ(JoinPath("a/b", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("a/", "c"), "a/c");
  EXPECT_EQ(JoinPath("/", "c"), "/c");
  EXPECT_EQ(JoinPath("", "c"), "c");
  EXPECT_EQ(ParentPath("a/b/c"), "a/b");
  EXPECT_EQ(ParentPath("a/b/"), "a");
  EXPECT_EQ(ParentPath("c"), ".");
  EXPECT_EQ(ParentPath("/c"), "/");
  EXPECT_EQ(ParentPath("/"), "/");
}

}  // namespace
}  // namespace conclave
