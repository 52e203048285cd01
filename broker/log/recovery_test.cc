#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "broker/log/derived_state.h"
#include "broker/log/known_damage.h"
#include "broker/log/log_damage.h"
#include "broker/log/log_loader.h"
#include "broker/log/partition_log.h"
#include "broker/log/segment.h"
#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/error/error.h"
#include "common/fs/sim_file_system.h"
#include "common/random/random.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"

namespace conclave {
namespace {

using log_testing::AllBatches;
using log_testing::Append;
using log_testing::BatchSpec;
using log_testing::kDirectory;
using log_testing::Open;
using log_testing::PathOf;
using log_testing::SmallSegments;
using log_testing::TryOpen;

// A log of many batches, closed or not, and what is in it.
struct Filled {
  explicit Filled(uint64_t seed, const LogConfig& config = SmallSegments(), int batches = 100)
      : fs(seed), config(config) {
    Random random(seed);
    auto log = Open(fs, config);
    for (int i = 0; i < batches; ++i) {
      BatchSpec spec;
      spec.records = 1 + static_cast<int>(random.Below(4));
      spec.value_bytes = random.Below(100);
      spec.timestamp_ms += random.Between(-50, 50) + i * 10;
      spec.salt = static_cast<uint64_t>(i);
      Append(*log, spec, LeaderEpoch(1 + i / 25));
    }
    EXPECT_TRUE(log->Close().ok());
    contents = AllBatches(*log);
    epochs = log->epochs().starts();
    end = log->log_end();
    for (const std::string& batch : contents) {
      starts.push_back(ParseBatchHeader(batch).base_offset);
    }
  }

  std::string NewestLog() const {
    std::string newest;
    for (const std::string& path : fs.Paths()) {
      if (path.ends_with(".log")) newest = path;
    }
    return newest;
  }

  FaultFileSystem fs;
  LogConfig config;
  std::vector<std::string> contents;
  std::vector<Offset> starts;
  std::vector<EpochStart> epochs;
  Offset end;
};

TEST(RecoveryTest, ACleanStopIsBelieved) {
  Filled filled(1);
  auto log = Open(filled.fs, filled.config, filled.end, /*clean_stop=*/true);
  EXPECT_EQ(log->log_end(), filled.end);
  EXPECT_EQ(log->durable_offset(), filled.end);
  EXPECT_GT(log->segment_count(), 3u);
  EXPECT_EQ(AllBatches(*log), filled.contents);
  EXPECT_EQ(log->epochs().starts(), filled.epochs);
  EXPECT_FALSE(log->NeedsSync());
}

TEST(RecoveryTest, R25WithoutACleanStopEverythingIsScannedAndSyncedBeforeItCounts) {
  Filled filled(2);
  const Offset recovery_point = filled.starts[10];
  auto log = Open(filled.fs, filled.config, recovery_point);
  EXPECT_EQ(log->log_end(), filled.end);
  EXPECT_EQ(log->durable_offset(), recovery_point);
  EXPECT_TRUE(log->NeedsSync());
  ASSERT_TRUE(log->SyncNow().ok());
  EXPECT_EQ(log->durable_offset(), filled.end);
  EXPECT_EQ(AllBatches(*log), filled.contents);
}

// A sync fails, the process ends, and the next one runs on the same kernel, which shows what it
// could not write as if it had. What the next one syncs has to outlive a loss of power.
TEST(RecoveryTest, R12WhatAFailedSyncLostIsWrittenAgainByTheNextProcess) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    SimFileSystem fs;
    Random random(seed);
    uint64_t salt = 0;
    const auto append = [&](PartitionLog& log, int batches) {
      for (int i = 0; i < batches; ++i) {
        BatchSpec spec;
        spec.value_bytes = random.Below(300);
        spec.salt = ++salt;
        Append(log, spec);
      }
    };
    auto log = Open(fs, SmallSegments());
    append(*log, 1 + static_cast<int>(random.Below(20)));
    ASSERT_TRUE(log->SyncNow().ok());
    const Offset recovery_point = random.Chance(0.5) ? log->durable_offset() : Offset(0);
    append(*log, 1 + static_cast<int>(random.Below(20)));
    // One of the files of several segments.
    fs.FailSync(1 + static_cast<int>(random.Below(3)));
    bool failed = !log->SyncNow().ok();
    while (!failed) {
      append(*log, 1);
      failed = !log->SyncNow().ok();
    }
    log.reset();
    fs.KillProcess();

    log = Open(fs, SmallSegments(), recovery_point);
    EXPECT_EQ(log->durable_offset(), recovery_point);
    append(*log, static_cast<int>(random.Below(3)));
    ASSERT_TRUE(log->SyncNow().ok());
    const Offset durable = log->durable_offset();
    EXPECT_EQ(durable, log->log_end());
    const std::vector<std::string> contents = AllBatches(*log);
    log.reset();
    fs.Crash(random);

    log = Open(fs, SmallSegments(), durable);
    EXPECT_EQ(AllBatches(*log), contents);
  }
}

TEST(RecoveryTest, ProgressIsToldUpToTheEnd) {
  Filled filled(3);
  PartitionLog::OpenOptions options;
  options.config = filled.config;
  uint64_t done = 0, total = 0;
  options.progress = [&](const RecoveryProgress& progress) {
    EXPECT_GE(progress.bytes_done, done);
    done = progress.bytes_done;
    total = progress.bytes_total;
  };
  ASSERT_TRUE(PartitionLog::Open(filled.fs, kDirectory, std::move(options)).ok());
  EXPECT_GT(total, 0u);
  EXPECT_EQ(done, total);
}

TEST(RecoveryTest, R21TornTailKeepsTheLongestValidPrefix) {
  Random random(21);
  LogConfig config = SmallSegments();
  config.segment_bytes = 1 << 20;
  for (int point = 0; point < 64; ++point) {
    Filled filled(100 + static_cast<uint64_t>(point), config, 200);
    uint64_t left = 0;
    filled.fs.Change(filled.NewestLog(), [&](std::string& bytes) {
      bytes.resize(bytes.size() - static_cast<size_t>(random.Between(1, 4096)));
      left = bytes.size();
    });
    std::vector<std::string> expected;
    uint64_t bytes = 0;
    for (const std::string& batch : filled.contents) {
      if (bytes + batch.size() > left) break;
      bytes += batch.size();
      expected.push_back(batch);
    }
    for (int restart = 0; restart < 3; ++restart) {
      auto log = Open(filled.fs, config);
      EXPECT_EQ(AllBatches(*log), expected) << point;
      Append(*log, {}, LeaderEpoch(50));
      expected = AllBatches(*log);
    }
  }
}

TEST(RecoveryTest, R22ZeroTailIsNoRecords) {
  Filled filled(22);
  filled.fs.Change(filled.NewestLog(), [](std::string& bytes) { bytes.append(1 << 20, '\0'); });
  for (const bool clean : {true, false}) {
    auto log = Open(filled.fs, filled.config, filled.end, clean);
    EXPECT_EQ(log->log_end(), filled.end);
    EXPECT_EQ(AllBatches(*log), filled.contents);
    EXPECT_EQ(log->recovered_bytes_cut(), clean ? 1u << 20 : 0u);
  }
}

TEST(RecoveryTest, R22WhatFollowsTheLastBatchOfAClosedSegmentIsNoDamage) {
  Filled filled(24);
  filled.fs.Change(PathOf(Offset(0), ".log"), [](std::string& bytes) { bytes.append("xyz"); });
  // As for a file that was cut, and that a loss of power brought back.
  for (const char* suffix : {".index", ".timeindex"}) {
    filled.fs.Change(PathOf(Offset(0), suffix), [](std::string& bytes) { bytes.clear(); });
  }
  for (const uint64_t cut : {3u, 0u}) {
    auto log = Open(filled.fs, filled.config, filled.end);
    EXPECT_EQ(log->recovered_bytes_cut(), cut);
    EXPECT_EQ(AllBatches(*log), filled.contents);
    filled.fs.Crash();
  }
}

TEST(RecoveryTest, R22ABatchWithCrcZeroIsReadable) {
  FaultFileSystem fs(23);
  auto log = Open(fs, SmallSegments());
  Append(*log, {});
  const Buffer crafted = log_testing::WithCrc(log_testing::MakeBatch({}), 0);
  const auto header = CheckBatch(crafted);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->crc, 0u);
  ASSERT_TRUE(log->AppendAsLeader(crafted, *header, LeaderEpoch(1), WallTime()).ok());
  Append(*log, {});
  const auto contents = AllBatches(*log);
  log = Open(fs, SmallSegments());
  EXPECT_EQ(log->log_end(), Offset(3));
  EXPECT_EQ(AllBatches(*log), contents);
}

TEST(RecoveryTest, R23BitRotBelowTheRecoveryPointIsNamedAndNeverCut) {
  Filled filled(24, [] {
    LogConfig config = SmallSegments();
    config.segment_bytes = 1 << 20;
    return config;
  }());
  size_t at = 0;
  for (int i = 0; i < 40; ++i) at += filled.contents[static_cast<size_t>(i)].size();
  filled.fs.Change(filled.NewestLog(), [&](std::string& bytes) {
    bytes[at + 70] = static_cast<char>(~bytes[at + 70]);
  });
  const std::string before = filled.fs.Contents(filled.NewestLog());
  const auto failed = TryOpen(filled.fs, filled.config, filled.end, false);
  const auto damage = DamageOf(failed.status());
  ASSERT_TRUE(damage.has_value()) << failed.status();
  EXPECT_EQ(damage->file, filled.NewestLog());
  EXPECT_EQ(damage->position, at);
  EXPECT_EQ(damage->first_missing, filled.starts[40]);
  EXPECT_EQ(damage->end_missing, filled.end);
  EXPECT_EQ(filled.fs.Contents(filled.NewestLog()), before) << "nothing may be cut";

  // Past the recovery point it is a torn tail; and that is how it is given up.
  auto log = Open(filled.fs, filled.config, damage->first_missing, false);
  EXPECT_EQ(log->log_end(), filled.starts[40]);
}

TEST(RecoveryTest, R23ABatchThatRotsIsNeverServed) {
  Filled filled(25);
  auto log = Open(filled.fs, filled.config, filled.end, true);
  filled.fs.Change(PathOf(Offset(0), ".log"),
                   [&](std::string& bytes) { bytes[filled.contents[0].size() + 65] ^= 1; });
  const auto first = log->Read(Offset(0), 1 << 20, log->log_end());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->batches.ToString(), filled.contents[0]) << "what comes before the damage";
  const auto second = log->Read(first->next_offset, 1 << 20, log->log_end());
  const auto damage = DamageOf(second.status());
  ASSERT_TRUE(damage.has_value()) << second.status();
  EXPECT_EQ(damage->first_missing, filled.starts[1]);
  EXPECT_EQ(damage->end_missing, filled.starts[2]);
  const auto third = log->Read(filled.starts[2], 1, log->log_end());
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->batches.ToString(), filled.contents[2]) << "nothing behind it is dropped";
}

TEST(RecoveryTest, R24IndexesDeletedOrOfRandomBytes) {
  Random random(26);
  for (const bool clean : {true, false}) {
    for (int round = 0; round < 40; ++round) {
      LogConfig config = SmallSegments();
      config.segment_bytes = round % 2 == 0 ? 2000 : 1 << 20;
      config.index_interval_bytes = 1 + static_cast<int64_t>(random.Below(400));
      Filled filled(200 + static_cast<uint64_t>(round), config);
      for (const std::string& path : filled.fs.Paths()) {
        if (!path.ends_with("index")) continue;
        if (round % 4 == 3) {
          filled.fs.Erase(path);
          continue;
        }
        filled.fs.Change(path, [&](std::string& bytes) {
          if (round % 4 == 2) bytes.resize(random.Below(bytes.size() + 1));
          const size_t from = round % 4 == 0 ? 0 : random.Below(bytes.size() + 1);
          for (size_t i = from; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.Next());
        });
      }
      auto log = Open(filled.fs, config, filled.end, clean);
      EXPECT_EQ(log->log_end(), filled.end);
      EXPECT_EQ(AllBatches(*log), filled.contents);
      for (size_t i = 0; i < filled.starts.size(); ++i) {
        const auto read = log->Read(filled.starts[i], 1, log->log_end());
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(read->batches.ToString(), filled.contents[i]);
      }
    }
  }
}

TEST(RecoveryTest, R24IndexesThatRotWhileInUse) {
  Filled filled(27);
  auto log = Open(filled.fs, filled.config, filled.end, true);
  Random random(27);
  for (const std::string& path : filled.fs.Paths()) {
    if (!path.ends_with("index")) continue;
    filled.fs.Change(path, [&](std::string& bytes) {
      for (char& byte : bytes) byte = static_cast<char>(random.Next());
    });
  }
  EXPECT_EQ(AllBatches(*log), filled.contents);
  const auto found = log->FindTimestamp(log_testing::kNowMs + 500, log->log_end());
  ASSERT_TRUE(found.ok() && *found) << found.status();
}

TEST(RecoveryTest, R26EpochCheckpointEmptyHalfOrGarbage) {
  for (int kind = 0; kind < 5; ++kind) {
    for (const bool clean : {true, false}) {
      Filled filled(28);
      const std::string path = std::string(kDirectory) + "/" + kLeaderEpochsFile;
      if (kind == 4) {
        filled.fs.Erase(path);
      } else {
        filled.fs.Change(path, [&](std::string& bytes) {
          if (kind == 0) bytes.clear();
          if (kind == 1) bytes.resize(bytes.size() / 2);
          if (kind == 2) bytes = "garbage \xff\x00\x01";
          if (kind == 3) bytes[bytes.find("[[") + 2] = '7';
        });
      }
      auto log = Open(filled.fs, filled.config, filled.end, clean);
      EXPECT_EQ(log->epochs().starts(), filled.epochs) << kind;
      EXPECT_EQ(filled.epochs.size(), 4u);
    }
  }
}

TEST(RecoveryTest, R27AMissingMiddleSegmentIsNamed) {
  for (const bool clean : {true, false}) {
    Filled filled(29);
    std::vector<Offset> bases;
    for (const std::string& path : filled.fs.Paths()) {
      if (path.ends_with(".log"))
        bases.push_back(Offset(std::stoll(path.substr(path.size() - 24, 20))));
    }
    ASSERT_GT(bases.size(), 4u);
    for (const char* suffix : {".log", ".index", ".timeindex"}) {
      filled.fs.Erase(PathOf(bases[2], suffix));
    }
    const auto failed = TryOpen(filled.fs, filled.config, filled.end, clean);
    const auto damage = DamageOf(failed.status());
    ASSERT_TRUE(damage.has_value()) << failed.status();
    EXPECT_EQ(damage->file, kDirectory);
    EXPECT_EQ(damage->first_missing, bases[2]);
    EXPECT_EQ(damage->end_missing, bases[3]);
    EXPECT_EQ(filled.fs.Contents(PathOf(bases[3], ".log")).empty(), false) << "nothing is dropped";
    auto log = Open(filled.fs, filled.config, damage->first_missing, false);
    EXPECT_EQ(log->log_end(), bases[2]);
  }
}

TEST(RecoveryTest, R27AMissingFirstSegmentIsNamed) {
  for (const bool trimmed : {false, true}) {
    for (const bool clean : {true, false}) {
      Filled filled(32);
      auto log = Open(filled.fs, filled.config, filled.end, true);
      if (trimmed) {
        ASSERT_TRUE(log->RemoveBefore(filled.starts[30]).ok());
      }
      ASSERT_TRUE(log->Close().ok());
      const Offset start = log->log_start();
      EXPECT_EQ(start > Offset(0), trimmed);
      log = Open(filled.fs, filled.config, filled.end, clean);
      EXPECT_EQ(log->log_start(), start);
      const Offset first = log_testing::FirstSegment(filled.fs);
      log.reset();
      for (const char* suffix : {".log", ".index", ".timeindex"}) {
        filled.fs.Erase(PathOf(first, suffix));
      }
      // With a recovery point below the gap, too: what was never trimmed begins at 0.
      for (const Offset recovery_point : {filled.end, Offset(0)}) {
        const auto failed = TryOpen(filled.fs, filled.config, recovery_point, clean);
        const auto damage = DamageOf(failed.status());
        ASSERT_TRUE(damage.has_value()) << failed.status();
        EXPECT_EQ(damage->file, kDirectory);
        EXPECT_EQ(damage->first_missing, start);
        EXPECT_GT(damage->end_missing, start);
        EXPECT_EQ(filled.fs.Contents(PathOf(damage->end_missing, ".log")).empty(), false);
      }
    }
  }
}

// It says which records count, and nothing else does: the broker's other partitions are not to
// suffer for it.
TEST(RecoveryTest, ADamagedAnnouncementIsDamageOfTheLogAndCanBeGivenUp) {
  for (const char* file : {kLogStartFile, kTruncatedToFile, kLogResetFile}) {
    Filled filled(34);
    const std::string path = JoinPath(kDirectory, file);
    ASSERT_TRUE(WriteFileAtomically(filled.fs, path, "{").ok());
    const auto failed = TryOpen(filled.fs, filled.config, filled.end, false);
    const auto damage = DamageOf(failed.status());
    ASSERT_TRUE(damage.has_value()) << failed.status();
    EXPECT_EQ(damage->file, path);
    PartitionLog::OpenOptions options;
    options.config = filled.config;
    options.give_up_to = "/given-up";
    const auto log = PartitionLog::Open(filled.fs, kDirectory, options);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->log_end(), filled.end);
  }
}

// A start reads no closed segment: what a read came upon in the process before is looked at again.
TEST(RecoveryTest, R23DamageThatIsKnownIsLookedAtAgain) {
  for (const bool clean : {true, false}) {
    Filled filled(36);
    const std::string first = log_testing::PathOf(log_testing::FirstSegment(filled.fs), ".log");
    std::string whole;
    filled.fs.Change(first, [&](std::string& bytes) {
      whole = bytes;
      bytes[bytes.size() - 1] ^= 1;
    });
    auto log = Open(filled.fs, filled.config, filled.end, true);
    EXPECT_FALSE(log->known_damage());
    std::optional<LogDamage> damage;
    for (Offset at; !damage && at < log->log_end();) {
      const auto read = log->Read(at, 1, log->log_end());
      damage = DamageOf(read.status());
      if (read.ok()) at = read->next_offset;
    }
    ASSERT_TRUE(damage.has_value());
    ASSERT_TRUE(log->RememberDamage(damage->first_missing).ok());
    ASSERT_TRUE(log->Close().ok());
    for (int start = 0; start < 2; ++start) {
      log = Open(filled.fs, filled.config, filled.end, clean);
      ASSERT_TRUE(log->known_damage());
      EXPECT_EQ(log->known_damage()->first_missing, damage->first_missing);
      ASSERT_TRUE(log->Close().ok());
    }
    // Somebody brings the file back.
    log.reset();
    filled.fs.Change(first, [&](std::string& bytes) { bytes = whole; });
    EXPECT_FALSE(Open(filled.fs, filled.config, filled.end, clean)->known_damage());
    EXPECT_FALSE(*filled.fs.Exists(JoinPath(kDirectory, kKnownDamageFile)));
  }
}

TEST(RecoveryTest, WhatIsGivenUpIsMovedNotRemoved) {
  Filled filled(37);
  const auto bases_of = [&](const std::string& directory) {
    std::vector<Offset> bases;
    const auto entries = filled.fs.List(directory);
    for (const DirectoryEntry& entry : *entries) {
      if (const auto base = ParseSegmentName(entry.name)) bases.push_back(*base);
    }
    return bases;
  };
  const std::vector<Offset> bases = bases_of(kDirectory);
  ASSERT_GE(bases.size(), 4u);
  size_t size = 0;
  filled.fs.Change(log_testing::PathOf(bases[1], ".log"), [&](std::string& bytes) {
    size = bytes.size();
    bytes[bytes.size() - 1] ^= 1;
  });
  // Below the recovery point, and of a process that has to scan from the start.
  PartitionLog::OpenOptions options;
  options.config = filled.config;
  options.recovery_point = bases[1];
  options.give_up_to = "/given-up";
  const auto log = PartitionLog::Open(filled.fs, kDirectory, options);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_LT((*log)->log_end(), bases[2]);
  EXPECT_EQ(bases_of("/given-up"), std::vector<Offset>(bases.begin() + 2, bases.end()));
  size_t tail = 0;
  const auto given_up = filled.fs.List("/given-up");
  for (const DirectoryEntry& entry : *given_up) {
    if (entry.name.find(".from-byte-") != std::string::npos) tail = static_cast<size_t>(entry.size);
  }
  EXPECT_GT(tail, 0u);
  const auto left =
      filled.fs.Open(log_testing::PathOf(bases[1], ".log"), FileSystem::OpenMode::kReadOnly);
  EXPECT_EQ((*left)->size() + tail, size);
}

TEST(RecoveryTest, R27AllSegmentsOfATrimmedLogMissing) {
  Filled filled(33);
  auto log = Open(filled.fs, filled.config, filled.end, true);
  ASSERT_TRUE(log->RemoveBefore(filled.starts[30]).ok());
  const Offset start = log->log_start();
  log.reset();
  for (const std::string& path : filled.fs.Paths()) {
    if (!path.ends_with(kLogStartFile)) filled.fs.Erase(path);
  }
  const auto failed = TryOpen(filled.fs, filled.config, Offset(0), false);
  const auto damage = DamageOf(failed.status());
  ASSERT_TRUE(damage.has_value()) << failed.status();
  EXPECT_EQ(damage->first_missing, start);
}

TEST(RecoveryTest, AResetStoresWhereTheLogStarts) {
  Filled filled(34);
  auto log = Open(filled.fs, filled.config, filled.end, true);
  for (const Offset to : {filled.end + 100, Offset(7), Offset(0)}) {
    ASSERT_TRUE(log->ResetTo(to, {}).ok());
    log = Open(filled.fs, filled.config, to);
    EXPECT_EQ(log->log_start(), to);
  }
}

// What is known of producers from before the log's start outlives a crash at any step.
TEST(RecoveryTest, R32AResetThatAPowerLossInterruptsKeepsItsProducers) {
  const ProducerState::Producers producers = {
      {ProducerId(70), {{{ProducerEpoch(2), 5, 6, Offset(90), Offset(91)}}, true}}};
  Filled filled(35);
  const Offset to = filled.end + 100;
  ASSERT_TRUE(AnnounceReset(filled.fs, kDirectory, to, producers).ok());
  for (int i = 0; i < 2; ++i) {
    auto log = Open(filled.fs, filled.config, filled.end);
    EXPECT_EQ(log->log_start(), to);
    EXPECT_EQ(log->producers().producers(), producers);
  }
  auto log = Open(filled.fs, filled.config, to);
  ASSERT_TRUE(log->ResetTo(to + 7, {}).ok());
  EXPECT_TRUE(log->producers().producers().empty());
  ASSERT_TRUE(log->ResetTo(to + 8, producers).ok());
  EXPECT_EQ(log->producers().producers(), producers);
  log = Open(filled.fs, filled.config, to);
  EXPECT_EQ(log->producers().producers(), producers);
}

TEST(RecoveryTest, R27LastSegmentOrAllOfThemMissing) {
  Filled filled(30);
  filled.fs.Erase(filled.NewestLog());
  auto failed = TryOpen(filled.fs, filled.config, filled.end, true);
  auto damage = DamageOf(failed.status());
  ASSERT_TRUE(damage.has_value()) << failed.status();
  EXPECT_EQ(damage->end_missing, filled.end);
  for (const std::string& path : filled.fs.Paths()) filled.fs.Erase(path);
  failed = TryOpen(filled.fs, filled.config, filled.end, true);
  damage = DamageOf(failed.status());
  ASSERT_TRUE(damage.has_value()) << failed.status();
  EXPECT_EQ(damage->first_missing, Offset(0));
  EXPECT_EQ(damage->end_missing, filled.end);
}

TEST(RecoveryTest, BatchesOfAnOlderEpochBehindNewerOnesAreCut) {
  // What a disk may show after a truncation and an overwrite of the same size, neither synced.
  FaultFileSystem fs(31);
  auto log = Open(fs, LogConfig());
  for (int i = 0; i < 4; ++i) Append(*log, {}, LeaderEpoch(1));
  log.reset();
  fs.Change(PathOf(Offset(0), ".log"), [](std::string& bytes) {
    const size_t second = bytes.size() / 4;
    StoreBigEndian(int32_t{5}, bytes.data() + second + kBatchLeaderEpochAt);
  });
  log = Open(fs, LogConfig());
  EXPECT_EQ(log->log_end(), Offset(2));
  EXPECT_EQ(log->last_epoch(), LeaderEpoch(5));
}

}  // namespace
}  // namespace conclave
