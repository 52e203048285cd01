// What a crash leaves of the Raft log: R1, R12 and R21 of the faults that a cluster must survive.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/random/random.h"
#include "raft/storage/rocksdb_log_storage.h"
#include "raft/storage/testing/faulty_disk.h"
#include "raft/storage/testing/history.h"

namespace conclave::raft {
namespace {

using conclave::raft::testing::DiskImage;
using conclave::raft::testing::FaultyDisk;
using conclave::raft::testing::History;
using conclave::raft::testing::MakeEntry;
using conclave::raft::testing::ToText;
using Loss = FaultyDisk::Loss;

constexpr char kPath[] = "/data/raft";

RecoveredState Initial() {
  RecoveredState state;
  state.hard_state.term = Term(1);
  state.entries.push_back(MakeEntry(1, 1, "founded", EntryKind::kVoters));
  return state;
}

absl::StatusOr<RecoveredState> Reopened(FaultyDisk& disk) {
  auto storage = RocksDbLogStorage::Open(kPath, disk.env());
  if (!storage.ok()) return storage.status();
  return (*storage)->Load();
}

// A disk at some moment, and the states that may be found on it: from the newest acknowledged to
// the newest begun.
struct Moment {
  std::string step;
  DiskImage image;
  size_t least = 0;
  size_t most = 0;
};

// Runs histories, and takes pictures of the disk as a crash would leave it.
class CrashTest : public ::testing::Test {
 protected:
  enum class Crash { kPowerLost, kPowerLostTorn, kKilled };

  explicit CrashTest() : history_(Initial()) {}

  static void Create(FaultyDisk& disk) {
    const absl::Status created = RocksDbLogStorage::Create(kPath, Initial(), disk.env());
    ASSERT_TRUE(created.ok()) << created;
  }

  // Of every `stride`th step from now on.
  void TakePictures(FaultyDisk& disk, std::vector<Crash> crashes, uint64_t stride = 1) {
    disk.OnStep([this, &disk, crashes, stride](const std::string& step) {
      std::lock_guard lock(mutex_);
      if (++steps_ % stride != 0) return;
      for (Crash crash : crashes) {
        Moment moment;
        moment.step = step;
        // Read before the picture is taken: what is acknowledged then is on the picture.
        moment.least = acknowledged_;
        moment.image = Picture(disk, crash);
        moment.most = begun_;
        moments_.push_back(std::move(moment));
      }
    });
  }

  absl::Status AppendDrawn(RocksDbLogStorage& storage, Random& random, size_t max_data) {
    const std::vector<Write> batch = history_.DrawBatch(random, max_data);
    history_.Apply(batch);
    ++begun_;
    absl::Status appended = storage.Append(batch);
    if (appended.ok()) acknowledged_ = begun_.load();
    return appended;
  }

  void Run(FaultyDisk& disk, Random& random, int batches, size_t max_data) {
    auto storage = RocksDbLogStorage::Open(kPath, disk.env());
    ASSERT_TRUE(storage.ok()) << storage.status();
    ASSERT_TRUE((*storage)->Load().ok());
    for (int i = 0; i < batches; ++i) {
      const absl::Status appended = AppendDrawn(**storage, random, max_data);
      ASSERT_TRUE(appended.ok()) << appended;
    }
  }

  void CheckMoment(const Moment& moment) {
    FaultyDisk disk(moment.image);
    // Twice: what the first start tidied up must not trouble the second.
    std::string first;
    for (int start = 0; start < 2; ++start) {
      const auto state = Reopened(disk);
      ASSERT_TRUE(state.ok()) << "after " << moment.step << ", start " << start << ": "
                              << state.status();
      const std::string text = ToText(*state);
      const auto& states = history_.states();
      bool found = false;
      for (size_t i = moment.least; i <= moment.most && !found; ++i) found = states[i] == text;
      ASSERT_TRUE(found) << "after " << moment.step << ", start " << start
                         << ": the state is that of no batch from " << moment.least << " to "
                         << moment.most << ":\n"
                         << text;
      if (start == 0) first = text;
      ASSERT_EQ(text, first);
    }
  }

  void CheckMoments() {
    for (const Moment& moment : moments_) {
      CheckMoment(moment);
      if (HasFatalFailure()) return;
    }
  }

  const std::vector<Moment>& moments() const { return moments_; }
  History& history() { return history_; }

 private:
  DiskImage Picture(FaultyDisk& disk, Crash crash) {
    switch (crash) {
      case Crash::kPowerLost:
        return disk.AfterPowerLoss(Loss::kEverythingUnsynced, picture_random_);
      case Crash::kPowerLostTorn:
        return disk.AfterPowerLoss(Loss::kTorn, picture_random_);
      case Crash::kKilled:
        return disk.Contents();
    }
    return {};
  }

  History history_;
  std::atomic<size_t> begun_ = 0;
  std::atomic<size_t> acknowledged_ = 0;
  std::mutex mutex_;
  uint64_t steps_ = 0;
  Random picture_random_{99};
  std::vector<Moment> moments_;
};

TEST_F(CrashTest, R1_PowerLossAtEveryStepLeavesTheStateOfABatch) {
  FaultyDisk disk;
  Create(disk);
  TakePictures(disk, {Crash::kPowerLost, Crash::kPowerLostTorn, Crash::kPowerLostTorn});
  Random random(1);
  Run(disk, random, 60, 60);
  // And of a second process, which begins with tidying up.
  Run(disk, random, 30, 60);
  EXPECT_GT(moments().size(), 600u);
  CheckMoments();
}

TEST_F(CrashTest, R1_TheSameWithBatchesOverManyBlocksOfTheLog) {
  FaultyDisk disk;
  Create(disk);
  TakePictures(disk, {Crash::kPowerLost, Crash::kPowerLostTorn, Crash::kPowerLostTorn});
  Random random(2);
  Run(disk, random, 50, 80'000);
  CheckMoments();
}

TEST_F(CrashTest, R1_TheSameWhileTheLogMovesToTables) {
  FaultyDisk disk;
  Create(disk);
  TakePictures(disk, {Crash::kPowerLost, Crash::kPowerLostTorn}, 13);
  Random random(3);
  Run(disk, random, 110, 1 << 20);
  bool tables = false;
  for (const auto& [path, bytes] : disk.Contents()) {
    tables = tables || path.find(".sst") != std::string::npos;
  }
  EXPECT_TRUE(tables) << "too little was written to show anything";
  CheckMoments();
}

TEST_F(CrashTest, R1_PowerLossWhileRecovering) {
  FaultyDisk first;
  Create(first);
  Random random(4);
  Run(first, random, 40, 200);
  Random picture_random(5);
  FaultyDisk disk(first.AfterPowerLoss(Loss::kTorn, picture_random));
  TakePictures(disk, {Crash::kPowerLost, Crash::kPowerLostTorn, Crash::kPowerLostTorn});
  for (int start = 0; start < 3; ++start) ASSERT_TRUE(Reopened(disk).ok());
  EXPECT_GT(moments().size(), 30u);
  CheckMoments();
}

TEST_F(CrashTest, ACrashWhileMakingItLeavesAWholeLogOrNoneAndItCanBeMadeAgain) {
  FaultyDisk disk;
  TakePictures(disk,
               {Crash::kPowerLost, Crash::kPowerLostTorn, Crash::kPowerLostTorn, Crash::kKilled});
  Create(disk);
  int whole = 0;
  for (const Moment& moment : moments()) {
    FaultyDisk after(moment.image);
    const bool there = std::any_of(moment.image.begin(), moment.image.end(), [](const auto& file) {
      return file.first.rfind(std::string(kPath) + "/", 0) == 0;
    });
    const auto state = Reopened(after);
    EXPECT_EQ(state.ok(), there) << "after " << moment.step << ": " << state.status();
    if (state.ok()) {
      ++whole;
      EXPECT_EQ(ToText(*state), ToText(Initial())) << "after " << moment.step;
    }
    const absl::Status again = RocksDbLogStorage::Create(kPath, Initial(), after.env());
    ASSERT_TRUE(again.ok()) << "after " << moment.step << ": " << again;
    const auto remade = Reopened(after);
    ASSERT_TRUE(remade.ok()) << "after " << moment.step << ": " << remade.status();
    EXPECT_EQ(ToText(*remade), ToText(Initial())) << "after " << moment.step;
    for (const auto& [path, bytes] : after.Contents()) {
      EXPECT_EQ(path.find(RocksDbLogStorage::kSideSuffix), std::string::npos) << path;
    }
  }
  EXPECT_GT(moments().size(), 40u);
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, static_cast<int>(moments().size()));
  FaultyDisk after(disk.AfterPowerLoss(Loss::kEverythingUnsynced, *std::make_unique<Random>(1)));
  EXPECT_TRUE(Reopened(after).ok()) << "Create returned before all was durable";
}

TEST_F(CrashTest, R12_AfterAFailedSyncNothingIsEverAcknowledged) {
  for (int nth = 1; nth <= 12; ++nth) {
    for (bool retriable : {false, true}) {
      FaultyDisk disk;
      Create(disk);
      History history(Initial());
      Random random(static_cast<uint64_t>(nth));
      auto storage = RocksDbLogStorage::Open(kPath, disk.env());
      ASSERT_TRUE(storage.ok());
      ASSERT_TRUE((*storage)->Load().ok());
      disk.FailSync(nth, retriable);
      size_t acknowledged = 0;
      bool failed = false;
      for (int batch = 0; batch < 30; ++batch) {
        const std::vector<Write> writes = history.DrawBatch(random, 60);
        const absl::Status appended = (*storage)->Append(writes);
        if (failed) {
          EXPECT_EQ(ErrorCodeOf(appended), v1::STORAGE_ERROR) << "after sync " << nth << " failed";
          continue;
        }
        history.Apply(writes);
        if (appended.ok()) {
          ++acknowledged;
        } else {
          failed = true;
          EXPECT_EQ(ErrorCodeOf(appended), v1::STORAGE_ERROR);
          EXPECT_NE(std::string(appended.message()).find(kPath), std::string::npos) << appended;
        }
      }
      EXPECT_TRUE(failed);
      for (Loss loss : {Loss::kEverythingUnsynced, Loss::kTorn}) {
        FaultyDisk after(disk.AfterPowerLoss(loss, random));
        const auto state = Reopened(after);
        ASSERT_TRUE(state.ok()) << state.status();
        const std::string text = ToText(*state);
        // The batch whose sync failed may be there or not.
        EXPECT_TRUE(text == history.states()[acknowledged] ||
                    text == history.states()[acknowledged + 1])
            << "sync " << nth << ": " << text;
      }
    }
  }
}

// The next process, on the same kernel, reads what the disk does not have. What it goes by, and
// what it acknowledges, has to outlive a loss of power: RocksDB writes anew what it finds in its
// log.
TEST_F(CrashTest, R12_WhatTheProcessAfterAFailedSyncReadsIsDurable) {
  for (int nth = 1; nth <= 12; ++nth) {
    for (int batches_after : {0, 5}) {
      SCOPED_TRACE(::testing::Message() << "sync " << nth << ", then " << batches_after);
      FaultyDisk disk;
      Create(disk);
      Random random(static_cast<uint64_t>(nth));
      History before(Initial());
      auto storage = RocksDbLogStorage::Open(kPath, disk.env());
      ASSERT_TRUE(storage.ok());
      ASSERT_TRUE((*storage)->Load().ok());
      disk.FailSync(nth, /*retriable=*/false);
      absl::Status appended;
      for (int batch = 0; batch < 30 && appended.ok(); ++batch) {
        const std::vector<Write> writes = before.DrawBatch(random, 60);
        before.Apply(writes);
        appended = (*storage)->Append(writes);
      }
      ASSERT_FALSE(appended.ok());
      storage->reset();

      storage = RocksDbLogStorage::Open(kPath, disk.env());
      ASSERT_TRUE(storage.ok()) << storage.status();
      const auto loaded = (*storage)->Load();
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      History after(*loaded);
      for (int batch = 0; batch < batches_after; ++batch) {
        const std::vector<Write> writes = after.DrawBatch(random, 60);
        after.Apply(writes);
        ASSERT_TRUE((*storage)->Append(writes).ok());
      }
      for (Loss loss : {Loss::kEverythingUnsynced, Loss::kTorn}) {
        FaultyDisk left(disk.AfterPowerLoss(loss, random));
        const auto state = Reopened(left);
        ASSERT_TRUE(state.ok()) << state.status();
        EXPECT_EQ(ToText(*state), after.states().back());
      }
    }
  }
}

// A sync that fails in the background, of a table being made, is as final.
TEST_F(CrashTest, R12_AFailedFlushIsFinalToo) {
  for (bool retriable : {false, true}) {
    FaultyDisk disk;
    Create(disk);
    auto storage = RocksDbLogStorage::Open(kPath, disk.env());
    ASSERT_TRUE(storage.ok());
    ASSERT_TRUE((*storage)->Load().ok());
    std::atomic<bool> table_begun = false;
    disk.OnStep([&](const std::string& step) {
      if (step.find(".sst") == std::string::npos || table_begun.exchange(true)) return;
      disk.FailSync(1, retriable);
    });
    bool failed = false;
    uint64_t index = 2;
    for (int batch = 0; batch < 400 && !failed; ++batch, ++index) {
      Write write;
      write.entries.push_back(MakeEntry(index, 1, std::string(256 << 10, 'x')));
      failed = !(*storage)->Append({write}).ok();
    }
    EXPECT_TRUE(failed);
    for (int again = 0; again < 3; ++again) {
      Write write;
      write.entries.push_back(MakeEntry(index, 1, "x"));
      EXPECT_EQ(ErrorCodeOf((*storage)->Append({write})), v1::STORAGE_ERROR);
    }
    // The one that failed may have reached the disk before the error showed.
    FaultyDisk after(disk.Contents());
    const auto state = Reopened(after);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_GE(state->entries.size(), index - 2);
  }
}

TEST_F(CrashTest, R21_AfterEachOfTwoHundredKillsItStartsAgain) {
  Random random(6);
  DiskImage image;
  {
    FaultyDisk disk;
    Create(disk);
    image = disk.Contents();
  }
  std::string expected = ToText(Initial());
  for (int kill = 0; kill < 200; ++kill) {
    FaultyDisk disk(image);
    auto storage = RocksDbLogStorage::Open(kPath, disk.env());
    ASSERT_TRUE(storage.ok()) << "kill " << kill << ": " << storage.status();
    const auto state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << "kill " << kill << ": " << state.status();
    // The batch under way when the process was killed may be there or not.
    const auto& states = history().states();
    const std::string text = ToText(*state);
    ASSERT_TRUE(kill == 0 ? text == expected
                          : text == states[states.size() - 1] || text == states[states.size() - 2])
        << "kill " << kill << ": " << text;
    history() = History(*state);
    // Killed after a random number of writes and syncs.
    int steps_left = static_cast<int>(1 + random.Below(12));
    bool killed = false;
    disk.OnStep([&](const std::string&) {
      if (killed || --steps_left > 0) return;
      killed = true;
      image = disk.Contents();
    });
    while (!killed) {
      ASSERT_TRUE(AppendDrawn(**storage, random, 300).ok());
    }
  }
}

}  // namespace
}  // namespace conclave::raft
