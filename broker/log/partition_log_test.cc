#include "broker/log/partition_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "broker/log/clean_stop.h"
#include "broker/log/offset_checkpoint.h"
#include "broker/log/partition_file.h"
#include "broker/log/segment.h"
#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/error/error.h"
#include "common/fs/posix_file_system.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

using log_testing::AllBatches;
using log_testing::Append;
using log_testing::BatchSpec;
using log_testing::HeaderOf;
using log_testing::kNowMs;
using log_testing::MakeBatch;
using log_testing::Open;
using log_testing::SmallSegments;

const WallTime kNow = WallTime::FromUnixMillis(kNowMs);

BatchSpec Produced(int64_t producer, int32_t sequence, int records = 1, int16_t epoch = 0) {
  BatchSpec spec;
  spec.producer_id = producer;
  spec.producer_epoch = epoch;
  spec.sequence = sequence;
  spec.records = records;
  return spec;
}

Classification::Kind Kind(const PartitionLog& log, const BatchSpec& spec) {
  return log.Classify(HeaderOf(MakeBatch(spec))).kind;
}

TEST(PartitionLogTest, R31FiveInFlightResentGiveTheirFirstOffsetsOnce) {
  FaultFileSystem fs(1);
  auto log = Open(fs, SmallSegments());
  std::vector<AppendResult> first;
  for (int i = 0; i < 6; ++i) first.push_back(Append(*log, Produced(7, 2 * i, 2)));
  const Offset end = log->log_end();
  for (int i = 1; i < 6; ++i) {
    const AppendResult again = Append(*log, Produced(7, 2 * i, 2));
    EXPECT_TRUE(again.duplicate);
    EXPECT_EQ(again.base_offset, first[static_cast<size_t>(i)].base_offset);
    EXPECT_EQ(again.next_offset, first[static_cast<size_t>(i)].next_offset);
  }
  EXPECT_EQ(log->log_end(), end);
  // Older than five, or of another size: no exact repeat.
  EXPECT_EQ(Kind(*log, Produced(7, 0, 2)), Classification::Kind::kOutOfOrder);
  EXPECT_EQ(Kind(*log, Produced(7, 10, 1)), Classification::Kind::kOutOfOrder);
}

TEST(PartitionLogTest, R31Classification) {
  FaultFileSystem fs(2);
  auto log = Open(fs, SmallSegments());
  using K = Classification::Kind;
  EXPECT_EQ(Kind(*log, BatchSpec()), K::kNew);
  EXPECT_EQ(Kind(*log, Produced(7, 1)), K::kUnknownProducer);
  Append(*log, Produced(7, 0, 3, 1));
  EXPECT_EQ(Kind(*log, Produced(7, 3, 1, 1)), K::kNew);
  EXPECT_EQ(Kind(*log, Produced(7, 4, 1, 1)), K::kOutOfOrder) << "a gap";
  EXPECT_EQ(Kind(*log, Produced(7, 3, 1, 0)), K::kFenced);
  EXPECT_EQ(Kind(*log, Produced(7, 0, 1, 2)), K::kNew) << "a new epoch";
  EXPECT_EQ(Kind(*log, Produced(7, 3, 1, 2)), K::kOutOfOrder) << "a new epoch starts at 0";
  const auto code = [&](const BatchSpec& spec) {
    const Buffer batch = MakeBatch(spec);
    return ErrorCodeOf(log->AppendAsLeader(batch, HeaderOf(batch), LeaderEpoch(1), kNow).status());
  };
  EXPECT_EQ(code(Produced(8, 1)), v1::UNKNOWN_PRODUCER_ID);
  EXPECT_EQ(code(Produced(7, 9, 1, 1)), v1::OUT_OF_ORDER_SEQUENCE_NUMBER);
  EXPECT_EQ(code(Produced(7, 3, 1, 0)), v1::INVALID_PRODUCER_EPOCH);
}

TEST(PartitionLogTest, R31SequencesWrap) {
  FaultFileSystem fs(3);
  auto log = Open(fs, SmallSegments());
  // As a follower, which takes what the leader has.
  BatchSpec spec = Produced(7, INT32_MAX - 1, 3);
  const Buffer batch = PatchBatch(MakeBatch(spec), Offset(0), LeaderEpoch(1));
  ASSERT_TRUE(log->AppendAsFollower(batch, *CheckBatchRun(batch), kNow).ok());
  EXPECT_EQ(Kind(*log, Produced(7, 1)), Classification::Kind::kNew);
  EXPECT_EQ(Kind(*log, Produced(7, 0)), Classification::Kind::kOutOfOrder);
  EXPECT_EQ(Kind(*log, spec), Classification::Kind::kDuplicate);
}

TEST(PartitionLogTest, R32ProducersSurviveRestartTruncationAndRetention) {
  FaultFileSystem fs(4);
  LogConfig config = SmallSegments();
  auto log = Open(fs, config);
  for (int i = 0; i < 10; ++i) Append(*log, Produced(7, i));
  for (int i = 0; i < 60; ++i) Append(*log, Produced(8, i));
  const auto producers = log->producers().producers();
  log = Open(fs, config);
  EXPECT_EQ(log->producers().producers(), producers) << "by scan";
  ASSERT_TRUE(log->TruncateTo(Offset(9)).ok());
  EXPECT_EQ(Kind(*log, Produced(7, 4)), Classification::Kind::kDuplicate) << "replayed";
  EXPECT_EQ(Kind(*log, Produced(7, 9)), Classification::Kind::kNew);
  EXPECT_EQ(Kind(*log, Produced(8, 0)), Classification::Kind::kNew);
  Append(*log, Produced(7, 9));
  for (int i = 0; i < 60; ++i) Append(*log, Produced(8, i));
  ASSERT_TRUE(log->SyncNow().ok());
  ASSERT_TRUE(log->RemoveBefore(log->log_end()).ok());
  EXPECT_EQ(log->log_start(), log->log_end());
  EXPECT_EQ(Kind(*log, Produced(7, 9)), Classification::Kind::kDuplicate);
  for (const bool clean : {false, true}) {
    if (clean) {
      ASSERT_TRUE(log->Close().ok());
    }
    const Offset recovery_point = log->durable_offset();
    log = Open(fs, config, recovery_point, clean);
    EXPECT_EQ(Kind(*log, Produced(7, 9)), Classification::Kind::kDuplicate);
    EXPECT_EQ(Kind(*log, Produced(8, 58)), Classification::Kind::kDuplicate);
  }
}

// The first cut goes below what is remembered, so the file of producers is complete up to nothing
// from then on; the second one goes below what it names.
TEST(PartitionLogTest, R32WhatWasCutOffIsNoDuplicateAfterARestart) {
  FaultFileSystem fs(41);
  const LogConfig config = SmallSegments();
  auto log = Open(fs, config);
  for (int i = 0; i < 10; ++i) Append(*log, Produced(7, i));
  ASSERT_TRUE(log->Close().ok());
  log = Open(fs, config, log->durable_offset(), /*clean_stop=*/true);
  ASSERT_TRUE(log->TruncateTo(Offset(8)).ok());
  ASSERT_TRUE(log->TruncateTo(Offset(0)).ok());
  for (int i = 0; i < 9; ++i) Append(*log, Produced(8, i));
  Append(*log, Produced(7, 0, 5));
  log = Open(fs, config);
  EXPECT_EQ(Kind(*log, Produced(7, 0, 5)), Classification::Kind::kDuplicate);
  EXPECT_EQ(Kind(*log, Produced(7, 5)), Classification::Kind::kNew) << "it is in no log any more";
}

TEST(PartitionLogTest, ManyProducersAreBounded) {
  ProducerState state(100);
  for (int i = 0; i < 1000; ++i) {
    BatchHeader header = HeaderOf(MakeBatch(Produced(i, 0)));
    header.base_offset = Offset(i);
    state.Note(header);
    EXPECT_LE(state.producers().size(), 100u);
  }
  EXPECT_EQ(state.producers().count(ProducerId(999)), 1u);
  EXPECT_EQ(state.producers().count(ProducerId(0)), 0u);
}

TEST(PartitionLogTest, R40AtLeastOneWholeBatchHoweverLarge) {
  FaultFileSystem fs(5);
  auto log = Open(fs, LogConfig());
  BatchSpec large;
  large.value_bytes = 1 << 20;
  Append(*log, large);
  Append(*log, large);
  const auto read = log->Read(Offset(0), 1024, log->log_end());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->next_offset, Offset(1));
  EXPECT_GT(read->batches.size(), 1u << 20);
  EXPECT_TRUE(log->Read(Offset(2), 1024, log->log_end())->batches.empty());
  EXPECT_TRUE(log->Read(Offset(0), 1024, Offset(0))->batches.empty());
  EXPECT_EQ(ErrorCodeOf(log->Read(Offset(3), 1, Offset(9)).status()), v1::OFFSET_OUT_OF_RANGE);
}

TEST(PartitionLogTest, R39AnEmptyLogReadsToAnEnd) {
  FaultFileSystem fs(6);
  auto log = Open(fs, LogConfig());
  const auto read = log->Read(Offset(0), 1 << 20, log->log_end());
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->batches.empty());
  EXPECT_EQ(read->next_offset, Offset(0));
  EXPECT_EQ(log->last_epoch(), LeaderEpoch(-1));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(-1), Offset(0)}));
  EXPECT_FALSE(log->FindTimestamp(0, log->log_end())->has_value());
}

TEST(PartitionLogTest, R14R15EpochsSayWhereLogsPart) {
  FaultFileSystem fs(7);
  auto log = Open(fs, SmallSegments());
  for (int i = 0; i < 3; ++i) Append(*log, {}, LeaderEpoch(2));
  for (int i = 0; i < 4; ++i) Append(*log, {}, LeaderEpoch(5));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(1)), (EpochEnd{LeaderEpoch(-1), Offset(0)}));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(2)), (EpochEnd{LeaderEpoch(2), Offset(3)}));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(4)), (EpochEnd{LeaderEpoch(2), Offset(3)}));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(5), Offset(7)}));
  EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(9)), (EpochEnd{LeaderEpoch(5), Offset(7)}));
  ASSERT_TRUE(log->TruncateTo(Offset(3)).ok());
  EXPECT_EQ(log->last_epoch(), LeaderEpoch(2));
  const Buffer batch = MakeBatch({});
  EXPECT_EQ(ErrorCodeOf(log->AppendAsLeader(batch, HeaderOf(batch), LeaderEpoch(1), kNow).status()),
            v1::FENCED_LEADER_EPOCH);
}

TEST(PartitionLogTest, AFollowerTakesOnlyWhatFollows) {
  FaultFileSystem fs(8);
  auto log = Open(fs, SmallSegments());
  const auto append = [&](Offset base, LeaderEpoch epoch) {
    const Buffer batch = PatchBatch(MakeBatch({}), base, epoch);
    return ErrorCodeOf(log->AppendAsFollower(batch, *CheckBatchRun(batch), kNow));
  };
  EXPECT_EQ(append(Offset(1), LeaderEpoch(1)), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(append(Offset(0), LeaderEpoch(3)), v1::NONE);
  EXPECT_EQ(append(Offset(0), LeaderEpoch(3)), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(append(Offset(1), LeaderEpoch(2)), v1::CORRUPT_MESSAGE);
  EXPECT_EQ(log->log_end(), Offset(1));
}

TEST(PartitionLogTest, ASyncCoversWhatWasThereWhenItBegan) {
  FaultFileSystem fs(9);
  auto log = Open(fs, SmallSegments());
  Append(*log, {});
  auto sync = log->BeginSync();
  ASSERT_TRUE(sync.ok());
  Append(*log, {});
  ASSERT_TRUE(log->FinishSync(*sync, sync->Run()).ok());
  EXPECT_EQ(log->durable_offset(), Offset(1));
  EXPECT_TRUE(log->NeedsSync());
  ASSERT_TRUE(log->SyncNow().ok());
  EXPECT_EQ(log->durable_offset(), Offset(2));
  EXPECT_FALSE(log->NeedsSync());
}

TEST(PartitionLogTest, ASyncBegunBeforeATruncationDoesNotCountAfterIt) {
  FaultFileSystem fs(10);
  auto log = Open(fs, SmallSegments());
  for (int i = 0; i < 40; ++i) Append(*log, {});
  auto sync = log->BeginSync();
  const absl::Status result = sync->Run();
  ASSERT_TRUE(log->TruncateTo(Offset(20)).ok());
  for (int i = 0; i < 40; ++i) Append(*log, {}, LeaderEpoch(2));
  ASSERT_TRUE(log->FinishSync(*sync, result).ok());
  EXPECT_EQ(log->durable_offset(), Offset(0));
  EXPECT_TRUE(log->NeedsSync());
  ASSERT_TRUE(log->SyncNow().ok());
  EXPECT_EQ(log->durable_offset(), Offset(60));
  ASSERT_TRUE(log->TruncateTo(Offset(50)).ok());
  EXPECT_EQ(log->durable_offset(), Offset(50));
  EXPECT_TRUE(log->NeedsSync()) << "the cut is synced before the next acknowledgement";
}

TEST(PartitionLogTest, R12AFailedSyncIsTheEnd) {
  FaultFileSystem fs(11);
  auto log = Open(fs, SmallSegments());
  Append(*log, {});
  fs.FailNextSync();
  EXPECT_FALSE(log->SyncNow().ok());
  EXPECT_EQ(log->durable_offset(), Offset(0));
  EXPECT_FALSE(log->SyncNow().ok()) << "never tried again";
  const Buffer batch = MakeBatch({});
  EXPECT_EQ(ErrorCodeOf(log->AppendAsLeader(batch, HeaderOf(batch), LeaderEpoch(1), kNow).status()),
            v1::STORAGE_ERROR);
  EXPECT_TRUE(log->Read(Offset(0), 100, Offset(1)).ok()) << "reads go on";
}

TEST(PartitionLogTest, R28AFullDiskRefusesAndResumes) {
  FaultFileSystem fs(12);
  auto log = Open(fs, SmallSegments());
  Append(*log, {});
  const auto contents = AllBatches(*log);
  fs.SetDiskFull(true);
  const Buffer batch = MakeBatch({});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        ErrorCodeOf(log->AppendAsLeader(batch, HeaderOf(batch), LeaderEpoch(1), kNow).status()),
        v1::STORAGE_ERROR);
  }
  EXPECT_EQ(AllBatches(*log), contents);
  fs.SetDiskFull(false);
  EXPECT_EQ(Append(*log, {}).base_offset, Offset(1));
}

// The records are gone by then, and what takes their place is made once there is room.
TEST(PartitionLogTest, R28AResetThatFindsNoRoomIsFinishedLater) {
  for (const bool restarts : {false, true}) {
    for (int appends = 0;; ++appends) {
      FaultFileSystem fs(29);
      auto log = Open(fs, SmallSegments());
      for (int i = 0; i < 20; ++i) Append(*log, {});
      ASSERT_TRUE(log->SyncNow().ok());
      fs.SetAppendsLeft(appends);
      const absl::Status reset = log->ResetTo(Offset(50), {});
      fs.SetAppendsLeft(std::nullopt);
      if (reset.ok()) {
        EXPECT_GT(appends, 3);
        break;
      }
      EXPECT_EQ(ErrorCodeOf(reset), v1::OUT_OF_RESOURCES) << reset;
      EXPECT_TRUE(log->failure().ok());
      if (restarts) {
        log.reset();
        fs.Crash();
        log = Open(fs, SmallSegments(), Offset(20));
        // Announced or not, it is one of the two.
        if (log->log_end() == Offset(20)) {
          EXPECT_EQ(AllBatches(*log).size(), 20u);
          continue;
        }
      } else {
        ASSERT_TRUE(log->ResetTo(Offset(50), {}).ok());
      }
      EXPECT_EQ(log->log_start(), Offset(50));
      EXPECT_EQ(log->log_end(), Offset(50));
      EXPECT_EQ(Append(*log, {}).base_offset, Offset(50));
      ASSERT_TRUE(log->SyncNow().ok());
    }
  }
}

// Who comes to lead with it goes by where it ends.
TEST(PartitionLogTest, R28WhereALogEndsThatAFullDiskKeptFromBeingCutStaysSo) {
  for (const bool reset : {false, true}) {
    for (int appends = 0;; ++appends) {
      SCOPED_TRACE(testing::Message() << (reset ? "reset" : "cut") << " with " << appends);
      FaultFileSystem fs(42);
      auto log = Open(fs, SmallSegments());
      for (int i = 0; i < 20; ++i) Append(*log, Produced(7, i), LeaderEpoch(1 + i / 10));
      ASSERT_TRUE(log->SyncNow().ok());
      ASSERT_TRUE(log->Checkpoint().ok());
      fs.SetAppendsLeft(appends);
      const absl::Status cut = reset ? log->ResetTo(Offset(5), {}) : log->TruncateTo(Offset(5));
      const Offset end = log->log_end();
      EXPECT_EQ(log->EndOfEpoch(LeaderEpoch(9)).end, end);
      EXPECT_LE(log->durable_offset(), end);
      EXPECT_LE(log->log_start(), end);
      EXPECT_TRUE(log->Read(log->log_start(), 1 << 20, end).ok());
      fs.SetAppendsLeft(std::nullopt);
      ASSERT_TRUE(log->SyncNow().ok());
      EXPECT_EQ(log->log_end(), end);
      EXPECT_EQ(log->durable_offset(), end);
      EXPECT_EQ(Append(*log, {}, LeaderEpoch(9)).base_offset, end);
      if (cut.ok()) {
        EXPECT_GT(appends, 1);
        break;
      }
      EXPECT_EQ(ErrorCodeOf(cut), v1::OUT_OF_RESOURCES) << cut;
    }
  }
}

TEST(PartitionLogTest, WhatACheckpointSyncsIsToldByOneMoreSync) {
  FaultFileSystem fs(28);
  auto log = Open(fs, SmallSegments());
  while (log->segment_count() < 2) Append(*log, {});
  ASSERT_TRUE(log->Checkpoint().ok());
  EXPECT_EQ(log->durable_offset(), log->log_end()) << "producers are stored behind their batches";
  // Whoever acknowledges by durable_offset() looks at it when a sync ends.
  ASSERT_TRUE(log->NeedsSync());
  ASSERT_TRUE(log->SyncNow().ok());
  EXPECT_FALSE(log->NeedsSync());
}

TEST(PartitionLogTest, R29WithoutDescriptorsNothingIsLostAndItGoesOn) {
  const Buffer batch = MakeBatch({});
  // Of a new segment's log, its index, its time index.
  for (const int opens : {0, 1, 2}) {
    FaultFileSystem fs(29);
    auto log = Open(fs, SmallSegments());
    while (log->segment_count() < 2) Append(*log, {});
    fs.SetOpensLeft(opens);
    absl::Status refused;
    while (refused.ok()) {
      refused = log->AppendAsLeader(batch, HeaderOf(batch), LeaderEpoch(1), kNow).status();
    }
    EXPECT_EQ(ErrorCodeOf(refused), v1::OUT_OF_RESOURCES) << refused;
    EXPECT_EQ(log->segment_count(), 2u);
    const Offset end = log->log_end();
    const auto contents = AllBatches(*log);
    fs.SetOpensLeft(std::nullopt);
    EXPECT_EQ(AllBatches(*log), contents);
    EXPECT_EQ(Append(*log, {}).base_offset, end) << "with " << opens;
    EXPECT_EQ(log->segment_count(), 3u);
  }
}

TEST(PartitionLogTest, R29ASyncThatFoundNoDescriptorForTheDirectoryIsDoneLater) {
  FaultFileSystem fs(30);
  auto log = Open(fs, SmallSegments());
  while (log->segment_count() < 2) Append(*log, {});
  fs.SetOpensLeft(0);
  EXPECT_EQ(ErrorCodeOf(log->SyncNow()), v1::OUT_OF_RESOURCES);
  EXPECT_EQ(log->durable_offset(), Offset(0));
  EXPECT_TRUE(log->failure().ok()) << "no sync has failed";
  EXPECT_TRUE(log->NeedsSync());
  EXPECT_EQ(ErrorCodeOf(log->Close()), v1::OUT_OF_RESOURCES) << "this is no clean stop";
  fs.SetOpensLeft(std::nullopt);
  ASSERT_TRUE(log->SyncNow().ok());
  EXPECT_EQ(log->durable_offset(), log->log_end());
}

TEST(PartitionLogTest, RetentionByTimeAndSizeNeverPassesTheHighWatermark) {
  FaultFileSystem fs(13);
  LogConfig config = SmallSegments();
  config.retention_age = Duration::Seconds(60);
  auto log = Open(fs, config);
  for (int i = 0; i < 100; ++i) Append(*log, {});
  const WallTime later = WallTime::FromUnixMillis(kNowMs + 120'000);
  EXPECT_FALSE(*log->ApplyRetention(kNow, log->log_end()));
  EXPECT_TRUE(*log->ApplyRetention(later, Offset(50)));
  EXPECT_GT(log->log_start(), Offset(0));
  EXPECT_LE(log->log_start(), Offset(50));
  EXPECT_TRUE(*log->ApplyRetention(later, log->log_end()));
  EXPECT_EQ(log->log_start(), Offset(100)) << "the newest segment goes, too";
  EXPECT_EQ(log->log_end(), Offset(100));
  config.retention_age.reset();
  config.retention_bytes = 3000;
  log->SetConfig(config);
  for (int i = 0; i < 100; ++i) Append(*log, {});
  EXPECT_TRUE(*log->ApplyRetention(kNow, log->log_end()));
  EXPECT_GE(log->size_bytes(), 3000u);
  EXPECT_LT(log->size_bytes(), 5000u);
}

TEST(PartitionLogTest, R30OldTimestampsDoNotRollASegmentABatch) {
  FaultFileSystem fs(14);
  auto log = Open(fs, LogConfig());
  BatchSpec old;
  old.timestamp_ms = kNowMs / 1000;
  for (int i = 0; i < 10; ++i) Append(*log, old);
  EXPECT_EQ(log->segment_count(), 1u);
  ASSERT_TRUE(log->RollIfAged(WallTime::FromUnixMillis(kNowMs + 8LL * 24 * 3600 * 1000)).ok());
  EXPECT_EQ(log->segment_count(), 2u);
}

// What is in an index's place is no reason to stop: it follows from the log.
TEST(PartitionLogTest, R24AnIndexThatIsALinkInACircleIsMadeAnew) {
  PosixFileSystem fs;
  PartitionLog::OpenOptions options;
  options.config = SmallSegments();
  const std::string directory = std::string(getenv("TEST_TMPDIR")) + "/circle-0";
  {
    auto log = PartitionLog::Open(fs, directory, options);
    ASSERT_TRUE(log.ok()) << log.status();
    for (int i = 0; i < 20; ++i) Append(**log, {});
    ASSERT_TRUE((*log)->Close().ok());
  }
  const std::string index = SegmentPath(directory, Offset(0), ".index");
  ASSERT_TRUE(fs.RemoveFile(index).ok());
  ASSERT_EQ(symlink(index.c_str(), index.c_str()), 0);
  auto log = PartitionLog::Open(fs, directory, options);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->log_end(), Offset(20));
}

TEST(PartitionLogTest, RoomIsSetAsideForTheActiveSegmentAlone) {
  PosixFileSystem fs;
  PartitionLog::OpenOptions options;
  options.config = SmallSegments();
  options.config.segment_bytes = 3 << 20;
  const std::string directory = std::string(getenv("TEST_TMPDIR")) + "/room-0";
  auto log = PartitionLog::Open(fs, directory, options);
  ASSERT_TRUE(log.ok()) << log.status();
  const auto beyond_its_end = [&](Offset base) {
    struct stat info;
    EXPECT_EQ(stat(SegmentPath(directory, base, ".log").c_str(), &info), 0);
    return static_cast<int64_t>(info.st_blocks) * 512 - info.st_size;
  };
  BatchSpec large;
  large.value_bytes = 100'000;
  for (int i = 0; i < 16; ++i) Append(**log, large);
  ASSERT_EQ((*log)->segment_count(), 1u);
  EXPECT_GT(beyond_its_end(Offset(0)), 500'000);
  while ((*log)->segment_count() == 1) Append(**log, large);
  EXPECT_LT(beyond_its_end(Offset(0)), 500'000);
  const Offset second = (*log)->log_end() - 1;
  for (int i = 1; i < 16; ++i) Append(**log, large);
  EXPECT_GT(beyond_its_end(second), 500'000);
  (*log)->ReleaseReservedIfIdle();
  EXPECT_GT(beyond_its_end(second), 500'000) << "records have come since it was made";
  (*log)->ReleaseReservedIfIdle();
  EXPECT_LT(beyond_its_end(second), 500'000);
  Append(**log, large);
  EXPECT_GT(beyond_its_end(second), 500'000);
  ASSERT_TRUE((*log)->Close().ok());
  EXPECT_LT(beyond_its_end(second), 500'000);
}

TEST(PartitionLogTest, SyncsRunBesideAppendsTruncationsAndReads) {
  // Real files, so that the thread sanitizer has something to see.
  PosixFileSystem fs;
  PartitionLog::OpenOptions options;
  options.config = SmallSegments();
  const std::string directory = std::string(getenv("TEST_TMPDIR")) + "/beside-0";
  auto opened = PartitionLog::Open(fs, directory, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  PartitionLog& log = **opened;
  for (int round = 0; round < 30; ++round) {
    Append(log, {}, LeaderEpoch(round));
    auto sync = log.BeginSync();
    ASSERT_TRUE(sync.ok());
    const Offset before = log.durable_offset();
    absl::Status result;
    std::thread worker([&] { result = sync->Run(); });
    for (int i = 0; i < 20; ++i) Append(log, {}, LeaderEpoch(round));
    const bool cut = round % 3 == 0;
    if (cut) {
      ASSERT_TRUE(log.TruncateTo(log.log_end() - 5).ok());
    }
    EXPECT_TRUE(log.Read(log.log_start(), 1 << 20, log.log_end()).ok());
    worker.join();
    ASSERT_TRUE(log.FinishSync(*sync, result).ok());
    EXPECT_EQ(log.durable_offset(), cut ? before : sync->covers());
  }
  const auto contents = AllBatches(log);
  opened->reset();
  auto again = PartitionLog::Open(fs, directory, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(AllBatches(**again), contents);
}

TEST(DirectoryFilesTest, AreReadBackAndDamageIsNamed) {
  FaultFileSystem fs(16);
  const TopicId id = TopicId::FromRandom(1, 2);
  const PartitionIdentity identity{"orders", id, PartitionIndex(3)};
  EXPECT_EQ(PartitionDirectoryName("orders", PartitionIndex(3)), "orders-3");
  EXPECT_TRUE(absl::IsNotFound(ReadPartitionFile(fs, "/d").status()));
  ASSERT_TRUE(WritePartitionFile(fs, "/d", identity).ok());
  EXPECT_EQ(*ReadPartitionFile(fs, "/d"), identity);
  const OffsetCheckpoint checkpoint(fs, "/d", kRecoveryPointsFile);
  EXPECT_TRUE(checkpoint.Read()->empty());
  const OffsetCheckpoint::Offsets offsets = {{{id, PartitionIndex(3)}, Offset(42)},
                                             {{id, PartitionIndex(0)}, Offset(INT64_MAX)}};
  ASSERT_TRUE(checkpoint.Write(offsets).ok());
  EXPECT_EQ(*checkpoint.Read(), offsets);
  for (const char* name : {kPartitionFile, kRecoveryPointsFile}) {
    const std::string path = std::string("/d/") + name;
    const std::string whole = fs.Contents(path);
    for (size_t size = 0; size + 1 < whole.size(); ++size) {
      fs.Change(path, [&](std::string& bytes) { bytes = whole.substr(0, size); });
      const absl::Status status = name == std::string(kPartitionFile)
                                      ? ReadPartitionFile(fs, "/d").status()
                                      : checkpoint.Read().status();
      EXPECT_EQ(ErrorCodeOf(status), v1::STORAGE_ERROR) << size;
      EXPECT_NE(status.message().find(path), std::string::npos);
    }
  }
}

TEST(DirectoryFilesTest, R25TheCleanStopMarkerIsTakenOnce) {
  FaultFileSystem fs(17);
  EXPECT_EQ(*TakeCleanStop(fs, "/d"), std::nullopt);
  ASSERT_TRUE(WriteCleanStop(fs, "/d", BrokerEpoch(99)).ok());
  EXPECT_EQ(*TakeCleanStop(fs, "/d"), BrokerEpoch(99));
  EXPECT_EQ(*TakeCleanStop(fs, "/d"), std::nullopt);
  fs.Crash();
  EXPECT_EQ(*TakeCleanStop(fs, "/d"), std::nullopt) << "its removal is durable";
  ASSERT_TRUE(WriteCleanStop(fs, "/d", BrokerEpoch(100)).ok());
  fs.Change("/d/clean-stop", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  EXPECT_EQ(*TakeCleanStop(fs, "/d"), std::nullopt) << "a damaged one is none";
}

}  // namespace
}  // namespace conclave
