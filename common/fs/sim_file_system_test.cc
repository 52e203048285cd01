#include "common/fs/sim_file_system.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "common/clock/clock.h"
#include "common/error/error.h"

namespace conclave {
namespace {

using Mode = FileSystem::OpenMode;

constexpr uint64_t kSeeds = 200;

Buffer Bytes(const std::string& text) { return Buffer(text); }

std::string ReadOr(SimFileSystem& fs, const std::string& path, const std::string& otherwise) {
  auto bytes = ReadWholeFile(fs, path, 1 << 20);
  if (bytes.ok()) return *bytes;
  EXPECT_TRUE(absl::IsNotFound(bytes.status())) << bytes.status();
  return otherwise;
}

std::unique_ptr<File> Opened(SimFileSystem& fs, const std::string& path,
                             Mode mode = Mode::kCreate) {
  auto file = fs.Open(path, mode);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// What `read` finds after crashes of many seeds, each after `prepare` on a disk of its own.
template <class Prepare, class Read>
std::set<std::string> Outcomes(Prepare prepare, Read read,
                               SimFileSystem::Options options = SimFileSystem::Options()) {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimFileSystem fs(options);
    prepare(fs);
    Random random(seed);
    fs.Crash(random);
    outcomes.insert(read(fs));
  }
  return outcomes;
}

using Texts = std::set<std::string>;

TEST(SimFileSystemTest, UnsyncedAppendsAreTornAtAnyByte) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        auto file = Opened(fs, "/a");
        ASSERT_TRUE(file->Append(Bytes("ab")).ok());
        ASSERT_TRUE(file->Sync().ok());
        ASSERT_TRUE(fs.SyncDirectory("/").ok());
        ASSERT_TRUE(file->Append(Bytes("cd")).ok());
        ASSERT_TRUE(file->Append(Bytes("e")).ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"ab", "abc", "abcd", "abcde"}));
}

TEST(SimFileSystemTest, ZerosMayStandWhereBytesWereLost) {
  SimFileSystem::Options options;
  options.zero_tails = 0.5;
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        auto file = Opened(fs, "/a");
        ASSERT_TRUE(fs.SyncDirectory("/").ok());
        ASSERT_TRUE(file->Append(Bytes("xy")).ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); }, options);
  const std::string zero(1, '\0');
  EXPECT_EQ(outcomes, (Texts{"", "x", "xy", zero, zero + zero, "x" + zero}));
}

TEST(SimFileSystemTest, AnUnsyncedTruncationHasHappenedOrNot) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        auto file = Opened(fs, "/a");
        ASSERT_TRUE(file->Append(Bytes("abcd")).ok());
        ASSERT_TRUE(file->Sync().ok());
        ASSERT_TRUE(fs.SyncDirectory("/").ok());
        ASSERT_TRUE(file->Truncate(3).ok());
        ASSERT_TRUE(file->Append(Bytes("x")).ok());
        ASSERT_TRUE(file->Truncate(1).ok());
        ASSERT_TRUE(file->Append(Bytes("yz")).ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"abcd", "a", "ay", "ayz"}));
}

TEST(SimFileSystemTest, NamesSurviveOnceTheirDirectoryIsSynced) {
  for (bool synced : {false, true}) {
    const auto outcomes = Outcomes(
        [&](SimFileSystem& fs) {
          auto file = Opened(fs, "/a");
          ASSERT_TRUE(file->Append(Bytes("x")).ok());
          ASSERT_TRUE(file->Sync().ok());
          if (synced) {
            ASSERT_TRUE(fs.SyncDirectory("/").ok());
          }
        },
        [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
    EXPECT_EQ(outcomes, synced ? (Texts{"x"}) : (Texts{"none", "x"}));
  }
}

TEST(SimFileSystemTest, AnUnsyncedRemovalMayComeBack) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        ASSERT_TRUE(WriteFileAtomically(fs, "/a", "bytes").ok());
        ASSERT_TRUE(fs.RemoveFile("/a").ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"bytes", "none"}));
}

TEST(SimFileSystemTest, ARenameIsOneStep) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        ASSERT_TRUE(WriteFileAtomically(fs, "/a", "A").ok());
        ASSERT_TRUE(WriteFileAtomically(fs, "/b", "B").ok());
        ASSERT_TRUE(fs.Rename("/a", "/b").ok());
        ASSERT_TRUE(fs.Rename("/b", "/c").ok());
      },
      [](SimFileSystem& fs) {
        return ReadOr(fs, "/a", "-") + ReadOr(fs, "/b", "-") + ReadOr(fs, "/c", "-");
      });
  // The second presupposes the first.
  EXPECT_EQ(outcomes, (Texts{"AB-", "-A-", "--A"}));
}

TEST(SimFileSystemTest, ChangesOfUnrelatedNamesSurviveInAnyCombination) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        Opened(fs, "/a");
        Opened(fs, "/b");
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "-") + "|" + ReadOr(fs, "/b", "-"); });
  EXPECT_EQ(outcomes, (Texts{"-|-", "|-", "-|", "|"}));
}

TEST(SimFileSystemTest, WhatIsInALostDirectoryIsLost) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        ASSERT_TRUE(fs.CreateDirectory("/d").ok());
        ASSERT_TRUE(WriteFileAtomically(fs, "/d/a", "x").ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/d/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"x", "none"}));
  const auto whole = Outcomes(
      [](SimFileSystem& fs) {
        ASSERT_TRUE(CreateDirectories(fs, "/d/e/f").ok());
        ASSERT_TRUE(WriteFileAtomically(fs, "/d/e/f/a", "x").ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/d/e/f/a", "none"); });
  EXPECT_EQ(whole, (Texts{"x"}));
}

TEST(SimFileSystemTest, WriteFileAtomicallyUnderACrashAtEveryStep) {
  const std::string old_bytes = "what was there before";
  const std::string new_bytes = "what is to replace it";
  for (bool anew : {false, true}) {
    bool finished = false;
    Texts seen;
    for (uint64_t stop = 0; !finished; ++stop) {
      ASSERT_LT(stop, 20u);
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        SimFileSystem fs;
        if (!anew) {
          ASSERT_TRUE(WriteFileAtomically(fs, "/a", old_bytes).ok());
        }
        fs.StopAfter(stop);
        finished = WriteFileAtomically(fs, "/a", new_bytes).ok();
        Random random(seed);
        fs.Crash(random);
        const std::string found = ReadOr(fs, "/a", "none");
        seen.insert(found);
        if (finished) {
          EXPECT_EQ(found, new_bytes);
        } else {
          EXPECT_TRUE(found == (anew ? "none" : old_bytes) || found == new_bytes)
              << "step " << stop << ", seed " << seed << ": " << found;
        }
        // Nothing that is left behind keeps it from being written again.
        EXPECT_TRUE(WriteFileAtomically(fs, "/a", "third").ok());
        EXPECT_EQ(ReadOr(fs, "/a", "none"), "third");
      }
    }
    EXPECT_EQ(seen, (Texts{anew ? "none" : old_bytes, new_bytes}));
  }
}

TEST(SimFileSystemTest, AFailedSyncIsNotMadeGoodByALaterOne) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        auto file = Opened(fs, "/a");
        ASSERT_TRUE(fs.SyncDirectory("/").ok());
        fs.FailSync(2);
        ASSERT_TRUE(file->Append(Bytes("a")).ok());
        ASSERT_TRUE(file->Sync().ok());
        ASSERT_TRUE(file->Append(Bytes("b")).ok());
        const absl::Status failed = file->Sync();
        EXPECT_EQ(ErrorCodeOf(failed), v1::STORAGE_ERROR);
        EXPECT_EQ(failed.message(), "sync /a: Input/output error");
        EXPECT_TRUE(file->Sync().ok());
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"a", "ab"}));
}

// What a sync lost stays lost in the next process, and is durable once it has been written again.
TEST(SimFileSystemTest, ARewriteMakesGoodWhatAFailedSyncLost) {
  for (const bool all : {false, true}) {
    const auto outcomes = Outcomes(
        [all](SimFileSystem& fs) {
          auto file = Opened(fs, "/a");
          ASSERT_TRUE(fs.SyncDirectory("/").ok());
          ASSERT_TRUE(file->Append(Bytes("a")).ok());
          ASSERT_TRUE(file->Sync().ok());
          ASSERT_TRUE(file->Append(Bytes("bc")).ok());
          fs.FailSync(1);
          ASSERT_FALSE(file->Sync().ok());
          fs.KillProcess();
          file = Opened(fs, "/a");
          EXPECT_EQ(ReadOr(fs, "/a", "none"), "abc");
          ASSERT_TRUE(file->Rewrite(all ? 1 : 2).ok());
          ASSERT_TRUE(file->Append(Bytes("d")).ok());
          ASSERT_TRUE(file->Sync().ok());
        },
        [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
    EXPECT_EQ(outcomes, all ? Texts{"abcd"} : (Texts{"a", "ab", "abc", "abcd"}));
  }
}

TEST(SimFileSystemTest, AFailedSyncOfADirectoryMakesNothingDurable) {
  const auto outcomes = Outcomes(
      [](SimFileSystem& fs) {
        Opened(fs, "/a");
        fs.FailSync(1);
        EXPECT_EQ(ErrorCodeOf(fs.SyncDirectory("/")), v1::STORAGE_ERROR);
      },
      [](SimFileSystem& fs) { return ReadOr(fs, "/a", "none"); });
  EXPECT_EQ(outcomes, (Texts{"", "none"}));
}

TEST(SimFileSystemTest, AFailedAppendChangesNothing) {
  SimFileSystem fs;
  auto file = Opened(fs, "/a");
  fs.FailAppend(2);
  EXPECT_TRUE(file->Append(Bytes("a")).ok());
  EXPECT_EQ(file->Append(Bytes("b")).message(), "append to /a: Input/output error");
  EXPECT_EQ(file->size(), 1u);
  EXPECT_TRUE(file->Append(Bytes("c")).ok());
  EXPECT_EQ(ReadOr(fs, "/a", "none"), "ac");
}

TEST(SimFileSystemTest, AFullDiskTakesNothingUntilSpaceReturns) {
  SimFileSystem::Options options;
  options.capacity_bytes = 10;
  SimFileSystem fs(options);
  auto file = Opened(fs, "/a");
  ASSERT_TRUE(file->Append(Bytes("12345")).ok());
  ASSERT_TRUE(WriteFileAtomically(fs, "/b", "12345").ok());
  EXPECT_EQ(file->Append(Bytes("6")).message(), "append to /a: No space left on device");
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(fs.used_bytes(), 10u);
  ASSERT_TRUE(fs.RemoveFile("/b").ok());
  EXPECT_TRUE(file->Append(Bytes("67890")).ok());
  ASSERT_TRUE(file->Truncate(3).ok());
  EXPECT_EQ(fs.used_bytes(), 3u);
  fs.SetCapacity(3);
  EXPECT_FALSE(file->Append(Bytes("4")).ok());
}

TEST(SimFileSystemTest, RotShowsInWhatIsRead) {
  SimFileSystem fs;
  ASSERT_TRUE(WriteFileAtomically(fs, "/a", "abc").ok());
  fs.Rot("/a", 1, 0x20);
  EXPECT_EQ(ReadOr(fs, "/a", "none"), "aBc");
  Random random(1);
  fs.Crash(random);
  EXPECT_EQ(ReadOr(fs, "/a", "none"), "aBc");
}

TEST(SimFileSystemTest, WhatWasOpenIsDeadAfterwards) {
  for (bool power_lost : {false, true}) {
    SimFileSystem fs;
    ASSERT_TRUE(WriteFileAtomically(fs, "/a", "x").ok());
    auto file = Opened(fs, "/a");
    auto lock = fs.Lock("/lock");
    ASSERT_TRUE(lock.ok());
    ASSERT_TRUE(file->Append(Bytes("y")).ok());
    Random random(1);
    if (power_lost) {
      fs.Crash(random);
    } else {
      fs.KillProcess();
      EXPECT_EQ(ReadOr(fs, "/a", "none"), "xy");
    }
    EXPECT_EQ(ErrorCodeOf(file->Append(Bytes("z"))), v1::STORAGE_ERROR);
    EXPECT_EQ(ErrorCodeOf(file->Sync()), v1::STORAGE_ERROR);
    EXPECT_EQ(ErrorCodeOf(file->ReadAt(0, 1).status()), v1::STORAGE_ERROR);
    auto next = fs.Lock("/lock");
    EXPECT_TRUE(next.ok()) << next.status();
    // The dead process's lock does not let go of its successor's.
    lock->reset();
    EXPECT_FALSE(fs.Lock("/lock").ok());
  }
}

TEST(SimFileSystemTest, AStoppedMachineDoesNothing) {
  SimFileSystem fs;
  ASSERT_TRUE(WriteFileAtomically(fs, "/a", "x").ok());
  const uint64_t before = fs.operations();
  fs.StopAfter(1);
  EXPECT_TRUE(fs.CreateDirectory("/d").ok());
  EXPECT_FALSE(fs.CreateDirectory("/e").ok());
  EXPECT_FALSE(fs.Open("/a", Mode::kReadOnly).ok());
  EXPECT_FALSE(fs.Exists("/a").ok());
  EXPECT_EQ(fs.operations(), before + 1);
  fs.KillProcess();
  EXPECT_TRUE(*fs.Exists("/d"));
  EXPECT_FALSE(*fs.Exists("/e"));
}

TEST(SimFileSystemTest, TellsWhatIsSureToSurvive) {
  SimFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("/d").ok());
  auto file = Opened(fs, "/d/a");
  ASSERT_TRUE(file->Append(Bytes("abcd")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(fs.DurableSize("/d/a"), 0u);
  ASSERT_TRUE(fs.SyncDirectory("/d").ok());
  EXPECT_EQ(fs.DurableSize("/d/a"), 0u);
  ASSERT_TRUE(fs.SyncDirectory("/").ok());
  EXPECT_EQ(fs.DurableSize("/d/a"), 4u);
  ASSERT_TRUE(file->Append(Bytes("ef")).ok());
  EXPECT_EQ(fs.DurableSize("/d/a"), 4u);
  ASSERT_TRUE(file->Truncate(3).ok());
  EXPECT_EQ(fs.DurableSize("/d/a"), 3u);
  ASSERT_TRUE(fs.Rename("/d/a", "/d/b").ok());
  EXPECT_EQ(fs.DurableSize("/d/b"), 0u);
  EXPECT_EQ(fs.DurableSize("/none"), 0u);
}

TEST(SimFileSystemTest, TellsWhenAFileWasLastWritten) {
  class SetClock : public Clock {
   public:
    MonotonicTime Now() const override { return MonotonicTime(); }
    WallTime WallNow() const override { return WallTime::FromUnixMillis(ms); }
    int64_t ms = 1000;
  } clock;
  SimFileSystem::Options options;
  options.clock = &clock;
  SimFileSystem fs(options);
  auto file = Opened(fs, "/a");
  ASSERT_TRUE(file->Append(Bytes("abc")).ok());
  EXPECT_EQ(file->LastWritten()->unix_millis(), 1000);
  clock.ms = 2000;
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(file->LastWritten()->unix_millis(), 1000) << "a sync writes nothing new";
  ASSERT_TRUE(file->Truncate(1).ok());
  EXPECT_EQ(file->LastWritten()->unix_millis(), 2000);
  clock.ms = 3000;
  EXPECT_EQ(Opened(fs, "/a")->LastWritten()->unix_millis(), 2000);
}

TEST(SimFileSystemTest, TheSameSeedLosesTheSame) {
  const auto run = [](uint64_t seed) {
    SimFileSystem fs;
    Random random(seed);
    std::string trace;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 20; ++i) {
        const std::string path = "/" + std::to_string(random.Below(8));
        if (random.Chance(0.2)) {
          (void)fs.Rename(path, "/" + std::to_string(random.Below(8)));
        } else if (random.Chance(0.1)) {
          (void)fs.SyncDirectory("/");
        } else {
          auto file = Opened(fs, path);
          EXPECT_TRUE(file->Append(Bytes(path)).ok());
          if (random.Chance(0.3)) {
            EXPECT_TRUE(file->Sync().ok());
          }
        }
      }
      fs.Crash(random);
      const auto entries = fs.List("/");
      for (const DirectoryEntry& entry : *entries) {
        trace += entry.name + "=" + ReadOr(fs, "/" + entry.name, "none") + " ";
      }
      trace += "\n";
    }
    return trace;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace
}  // namespace conclave
