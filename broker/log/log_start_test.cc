// Where a log starts: within a segment, within a batch, over restarts and crashes; and what
// retention makes of timestamps that cannot be true.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "broker/log/epoch_cache.h"
#include "broker/log/log_damage.h"
#include "broker/log/log_loader.h"
#include "broker/log/partition_log.h"
#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/error/error.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

using log_testing::AllBatches;
using log_testing::Append;
using log_testing::BatchSpec;
using log_testing::FirstSegment;
using log_testing::kDirectory;
using log_testing::kNowMs;
using log_testing::Open;
using log_testing::PathOf;
using log_testing::SmallSegments;
using log_testing::TryOpen;

const WallTime kNow = WallTime::FromUnixMillis(kNowMs);

// Thirty batches of three records: offsets 0 to 89, epochs 1 to 3, synced.
class LogStartTest : public testing::Test {
 protected:
  LogStartTest() : fs_(1), config_(SmallSegments()) {
    config_.segment_bytes = 700;
    log_ = Open(fs_, config_);
    for (int i = 0; i < 30; ++i) {
      BatchSpec spec;
      spec.records = 3;
      spec.timestamp_ms = kNowMs + i * 10;
      Append(*log_, spec, LeaderEpoch(1 + i / 10));
    }
    EXPECT_TRUE(log_->SyncNow().ok());
    EXPECT_GT(log_->segment_count(), 4u);
  }

  void Reopen(bool clean) {
    if (clean) {
      ASSERT_TRUE(log_->Close().ok());
    }
    const Offset recovery_point = clean ? log_->durable_offset() : Offset(0);
    log_.reset();
    if (!clean) fs_.Crash();
    log_ = Open(fs_, config_, recovery_point, clean);
  }
  void ExpectStart(Offset start) {
    EXPECT_EQ(log_->log_start(), start);
    EXPECT_EQ(ErrorCodeOf(log_->Read(start - 1, 1, log_->log_end()).status()),
              v1::OFFSET_OUT_OF_RANGE);
    const auto read = log_->Read(start, 1, log_->log_end());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->batches.empty(), start == log_->log_end());
    const auto found = log_->FindTimestamp(0, log_->log_end());
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->has_value(), start < log_->log_end());
    if (*found) {
      EXPECT_EQ((*found)->offset, start) << "the oldest that there is";
    }
  }

  FaultFileSystem fs_;
  LogConfig config_;
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(LogStartTest, LiesWithinASegmentAndABatchAndSurvivesRestarts) {
  // Within a batch of epoch 2.
  ASSERT_TRUE(log_->RemoveBefore(Offset(40)).ok());
  ExpectStart(Offset(40));
  EXPECT_EQ(log_->epochs().starts(),
            (std::vector<EpochStart>{{LeaderEpoch(2), Offset(39)}, {LeaderEpoch(3), Offset(60)}}));
  EXPECT_LE(FirstSegment(fs_), Offset(40));
  EXPECT_GT(FirstSegment(fs_), Offset(30)) << "whole segments below it are gone";
  const auto read = log_->Read(Offset(40), 1, log_->log_end());
  EXPECT_EQ(ParseBatchHeader(read->batches.ToString()).base_offset, Offset(39))
      << "a batch comes as a whole";
  EXPECT_EQ(log_->first_batch(), Offset(39));
  const auto batches = AllBatches(*log_);
  const auto epochs = log_->epochs().starts();
  for (const bool clean : {true, false, true}) {
    Reopen(clean);
    ExpectStart(Offset(40));
    EXPECT_EQ(AllBatches(*log_), batches);
    EXPECT_EQ(log_->epochs().starts(), epochs);
  }
}

TEST_F(LogStartTest, NeverMovesBack) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(40)).ok());
  ASSERT_TRUE(log_->RemoveBefore(Offset(10)).ok());
  ExpectStart(Offset(40));
}

TEST_F(LogStartTest, AtTheEndNothingIsLeftOnDisk) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(1000)).ok());
  ExpectStart(Offset(90));
  EXPECT_EQ(log_->segment_count(), 1u);
  EXPECT_EQ(log_->size_bytes(), 0u);
  for (const bool clean : {false, true}) {
    Reopen(clean);
    ExpectStart(Offset(90));
    EXPECT_EQ(log_->log_end(), Offset(90));
    EXPECT_EQ(log_->first_batch(), Offset(90));
  }
  EXPECT_EQ(Append(*log_, {}, LeaderEpoch(3)).base_offset, Offset(90));
}

// Replicas are compared by it when all of them stopped uncleanly: an emptied log is no older than
// one that still has its records.
TEST_F(LogStartTest, TheLastEpochIsKnownOfAnEmptiedLog) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(1000)).ok());
  for (const bool clean : {true, false, true}) {
    EXPECT_EQ(log_->last_epoch(), LeaderEpoch(3));
    EXPECT_EQ(log_->EndOfEpoch(LeaderEpoch(3)), (EpochEnd{LeaderEpoch(3), Offset(90)}));
    EXPECT_EQ(log_->EndOfEpoch(LeaderEpoch(2)).epoch, LeaderEpoch(-1));
    Reopen(clean);
  }
  Append(*log_, {}, LeaderEpoch(7));
  EXPECT_EQ(log_->EndOfEpoch(LeaderEpoch(5)), (EpochEnd{LeaderEpoch(3), Offset(90)}));
  ASSERT_TRUE(log_->TruncateTo(Offset(90)).ok());
  EXPECT_EQ(log_->last_epoch(), LeaderEpoch(3));
}

// As after an unclean election: the leader has nothing of what was removed here.
TEST_F(LogStartTest, ACutBelowTheStartEmptiesTheLog) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(40)).ok());
  ASSERT_TRUE(log_->TruncateTo(Offset(39)).ok());
  for (const bool clean : {true, false}) {
    EXPECT_EQ(log_->log_start(), Offset(0));
    EXPECT_EQ(log_->log_end(), Offset(0));
    EXPECT_EQ(log_->last_epoch(), LeaderEpoch(-1));
    Reopen(clean);
  }
}

TEST_F(LogStartTest, IsNeverBeyondWhatIsDurable) {
  for (int i = 0; i < 5; ++i) Append(*log_, {}, LeaderEpoch(3));
  ASSERT_TRUE(log_->RemoveBefore(Offset(93)).ok());
  ExpectStart(Offset(90));
  ASSERT_TRUE(log_->SyncNow().ok());
  ASSERT_TRUE(log_->RemoveBefore(Offset(93)).ok());
  ExpectStart(Offset(93));
}

TEST_F(LogStartTest, MovesWhileASyncIsUnderWayAndSegmentsGoLater) {
  Append(*log_, {}, LeaderEpoch(3));
  const auto sync = log_->BeginSync();
  ASSERT_TRUE(sync.ok());
  const size_t before = log_->segment_count();
  ASSERT_TRUE(log_->RemoveBefore(Offset(61)).ok());
  ExpectStart(Offset(61));
  EXPECT_EQ(log_->segment_count(), before);
  ASSERT_TRUE(log_->FinishSync(*sync, sync->Run()).ok());
  ASSERT_TRUE(log_->RemoveBefore(Offset(61)).ok());
  EXPECT_LT(log_->segment_count(), before);
  ExpectStart(Offset(61));
}

TEST_F(LogStartTest, ATruncationIntoTheFirstBatchLeavesAnEmptyLogThere) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(40)).ok());
  ASSERT_TRUE(log_->TruncateTo(Offset(41)).ok());
  ExpectStart(Offset(40));
  EXPECT_EQ(log_->log_end(), Offset(40));
  Reopen(/*clean=*/false);
  ExpectStart(Offset(40));
  EXPECT_EQ(log_->log_end(), Offset(40));
}

TEST_F(LogStartTest, SurvivesACrashAtEveryStep) {
  for (uint64_t steps = 0;; ++steps) {
    SCOPED_TRACE(steps);
    FaultFileSystem fs(100 + steps);
    auto log = Open(fs, config_);
    for (int i = 0; i < 40; ++i) Append(*log, {});
    ASSERT_TRUE(log->SyncNow().ok());
    fs.DieAfter(steps);
    const bool done = log->RemoveBefore(Offset(33)).ok();
    log.reset();
    fs.Crash();
    log = Open(fs, config_);
    const Offset start = log->log_start();
    EXPECT_TRUE(start == Offset(33) || (!done && start == Offset(0))) << start;
    EXPECT_EQ(log->log_end(), Offset(40));
    EXPECT_EQ(AllBatches(*log).size(), static_cast<size_t>(40 - start.value()));
    if (done) break;
  }
}

// What was durable when the log start was stored is missed, whatever the recovery point says.
TEST_F(LogStartTest, ALogThatEndsBeforeItsStartIsDamaged) {
  ASSERT_TRUE(log_->RemoveBefore(Offset(88)).ok());
  const Offset first = FirstSegment(fs_);
  log_.reset();
  fs_.Change(PathOf(first, ".log"), [](std::string& bytes) { bytes.resize(bytes.size() / 4); });
  const auto failed = TryOpen(fs_, config_, Offset(0), false);
  const auto damage = DamageOf(failed.status());
  ASSERT_TRUE(damage.has_value()) << failed.status();
  EXPECT_LT(damage->first_missing, Offset(88));
  EXPECT_GE(damage->end_missing, Offset(88));
}

// --- R30: timestamps that cannot be true

constexpr int64_t kDayMs = 24LL * 3600 * 1000;

class OddTimestampsTest : public testing::Test {
 protected:
  OddTimestampsTest() : fs_(2) {
    config_.retention_age = Duration::Milliseconds(7 * kDayMs);
    fs_.SetWallTime(kNow);
    log_ = Open(fs_, config_);
  }
  void AppendAt(int64_t timestamp_ms) {
    BatchSpec spec;
    spec.timestamp_ms = timestamp_ms;
    Append(*log_, spec);
  }
  bool RetentionAfter(int64_t ms) {
    const auto removed =
        log_->ApplyRetention(WallTime::FromUnixMillis(kNowMs + ms), log_->log_end());
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.ok() && *removed;
  }

  FaultFileSystem fs_;
  LogConfig config_;
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(OddTimestampsTest, R30TenYearsAheadDoesNotPinASegment) {
  AppendAt(kNowMs);
  AppendAt(kNowMs + 3650 * kDayMs);
  EXPECT_FALSE(RetentionAfter(7 * kDayMs)) << "not early";
  EXPECT_TRUE(RetentionAfter(7 * kDayMs + 1)) << "it was written that long ago";
  EXPECT_EQ(log_->log_start(), Offset(2));
}

TEST_F(OddTimestampsTest, R30SecondsInsteadOfMillisecondsAreNotRemovedAtOnce) {
  AppendAt(kNowMs / 1000);
  EXPECT_FALSE(RetentionAfter(0));
  EXPECT_FALSE(RetentionAfter(7 * kDayMs)) << "not early";
  EXPECT_TRUE(RetentionAfter(7 * kDayMs + 1));
}

TEST_F(OddTimestampsTest, R30OldRecordsThatArePossibleGoByTheirAge) {
  AppendAt(kNowMs - 8 * kDayMs);
  EXPECT_TRUE(RetentionAfter(0));
}

TEST_F(OddTimestampsTest, AClockThatStepsBackRemovesNothing) {
  AppendAt(kNowMs);
  config_.retention_age = Duration::Milliseconds(1000);
  log_->SetConfig(config_);
  EXPECT_FALSE(RetentionAfter(-3'600'000));
  EXPECT_FALSE(RetentionAfter(1000));
  EXPECT_TRUE(RetentionAfter(1001));
}

}  // namespace
}  // namespace conclave
