#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "broker/log/log_damage.h"
#include "broker/log/partition_log.h"
#include "broker/log/producer_state.h"
#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/random/random.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

using log_testing::AllBatches;
using log_testing::BatchSpec;
using log_testing::HeaderOf;
using log_testing::kNowMs;
using log_testing::MakeBatch;

// Runs a log until the disk dies, and knows what must be there afterwards.
class DoomedLog {
 public:
  DoomedLog(uint64_t seed, uint64_t disk_seed) : random_(seed), fs_(disk_seed) {
    config_.segment_bytes = 1200;
    config_.index_interval_bytes = 150;
  }

  FaultFileSystem& fs() { return fs_; }

  // False once the disk is dead.
  bool Work(int steps) {
    if (!log_ && !Open(/*clean=*/false)) return false;
    for (int i = 0; i < steps; ++i) {
      if (!Step()) return false;
    }
    return true;
  }

  void CrashAndCheck() {
    log_.reset();
    fs_.Crash();
    const auto opened = log_testing::TryOpen(fs_, config_, recovery_point_, /*clean_stop=*/false);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = std::move(const_cast<std::unique_ptr<PartitionLog>&>(*opened));
    const std::vector<std::string> batches = AllBatches(*log_);
    std::map<Offset, std::string> found;
    const std::string* before = nullptr;
    for (const std::string& batch : batches) {
      const auto written = predecessors_.find(batch);
      ASSERT_TRUE(written != predecessors_.end()) << "a batch that nobody appended";
      const Offset base = ParseBatchHeader(batch).base_offset;
      if (before != nullptr) {
        ASSERT_EQ(written->second, *before) << "two histories meet at " << base;
      }
      before = &batch;
      found[base] = batch;
    }
    for (const auto& [base, batch] : entries_) {
      if (ParseBatchHeader(batch).next_offset() > durable_) break;
      if (base < log_->log_start()) continue;
      ASSERT_EQ(found[base], batch) << "durable up to " << durable_ << ", lost " << base;
    }
    EXPECT_LE(log_->log_start(), start_max_);
    CheckDerived(batches);
    CheckMissed();
    entries_ = std::map<Offset, std::string>(found.begin(), found.end());
    durable_ = log_->durable_offset();
    epoch_ = std::max(epoch_, log_->last_epoch()) + 1;
  }

 private:
  // Whatever the crash interrupted: should somebody remove the first segment now, it is missed.
  void CheckMissed() {
    // Now and then: it syncs names that another crash might take.
    if (log_->segment_count() < 2 || random_.Chance(0.5)) return;
    const std::string path = log_testing::PathOf(log_testing::FirstSegment(fs_), ".log");
    const std::string aside = path + ".aside";
    ASSERT_TRUE(fs_.Rename(path, aside).ok());
    const auto failed = log_testing::TryOpen(fs_, config_, recovery_point_, /*clean_stop=*/false);
    const auto damage = DamageOf(failed.status());
    ASSERT_TRUE(damage.has_value()) << failed.status();
    EXPECT_EQ(damage->first_missing, log_->log_start());
    ASSERT_TRUE(fs_.Rename(aside, path).ok());
    ASSERT_TRUE(fs_.SyncDirectory(log_testing::kDirectory).ok());
  }

  // Epochs and producers are what the batches say.
  void CheckDerived(const std::vector<std::string>& batches) {
    EpochCache epochs;
    ProducerState producers;
    for (const std::string& batch : batches) {
      const BatchHeader header = ParseBatchHeader(batch);
      epochs.Note(header.leader_epoch, std::max(header.base_offset, log_->log_start()));
      producers.Note(header);
    }
    std::vector<EpochStart> have = log_->epochs().starts();
    // The one before the log's start is remembered.
    if (!have.empty() && have.front().start < log_->log_start()) {
      EXPECT_EQ(have.front().start, log_->log_start() - 1);
      const bool goes_on =
          !epochs.starts().empty() && epochs.starts().front().epoch == have.front().epoch;
      if (goes_on) {
        have.front().start = log_->log_start();
      } else {
        have.erase(have.begin());
      }
    }
    EXPECT_EQ(have, epochs.starts());
    // What is remembered of others left the log at its start.
    for (const auto& [id, have] : log_->producers().producers()) {
      const auto in_log = producers.producers().find(id);
      const size_t shown =
          in_log == producers.producers().end() ? 0 : in_log->second.batches.size();
      for (size_t i = 0; i + shown < have.batches.size(); ++i) {
        EXPECT_LT(have.batches[i].last_offset, log_->log_start()) << "of producer " << id;
      }
    }
    for (const auto& [id, expected] : producers.producers()) {
      const auto have = log_->producers().producers().find(id);
      ASSERT_TRUE(have != log_->producers().producers().end()) << id;
      // Retention may leave fewer in the log than are remembered.
      const auto& batches_have = have->second.batches;
      ASSERT_GE(batches_have.size(), expected.batches.size());
      EXPECT_TRUE(
          std::equal(expected.batches.rbegin(), expected.batches.rend(), batches_have.rbegin()));
    }
  }

  bool Open(bool clean) {
    auto opened = log_testing::TryOpen(fs_, config_, recovery_point_, clean);
    if (!opened.ok()) {
      EXPECT_FALSE(DamageOf(opened.status()).has_value()) << opened.status();
      return false;
    }
    log_ = *std::move(opened);
    return true;
  }

  bool Append() {
    BatchSpec spec;
    spec.records = 1 + static_cast<int>(random_.Below(3));
    // Often of one size, so that new batches may fit where old ones were.
    spec.value_bytes = random_.Chance(0.7) ? 60 : random_.Below(200);
    spec.salt = ++salt_;
    spec.producer_id = static_cast<int64_t>(random_.Below(3));
    const auto known = log_->producers().producers().find(ProducerId(spec.producer_id));
    if (known != log_->producers().producers().end()) {
      spec.producer_epoch = known->second.batches.back().epoch.value();
      spec.sequence = SequenceAfter(known->second.batches.back().last_sequence, 1);
    } else {
      // As a producer does that is told it is unknown; what its old epoch said may be back later.
      spec.producer_epoch = ++new_epochs_;
    }
    const Buffer batch = MakeBatch(spec);
    const Offset base = log_->log_end();
    const std::string stored = PatchBatch(batch, base, epoch_).ToString();
    predecessors_[stored] = entries_.empty() ? "" : entries_.rbegin()->second;
    const auto result =
        log_->AppendAsLeader(batch, HeaderOf(batch), epoch_, WallTime::FromUnixMillis(kNowMs));
    if (!result.ok()) return false;
    EXPECT_FALSE(result->duplicate) << "nothing was sent twice, and it is not in the log: " << base;
    entries_[base] = stored;
    return true;
  }

  bool Truncate() {
    const Offset to = log_->log_start() + random_.Between(0, log_->log_end() - log_->log_start());
    // From the moment it begins nothing beyond is promised.
    for (auto& [base, batch] : entries_) {
      if (ParseBatchHeader(batch).next_offset() > to) {
        durable_ = std::min(durable_, base);
        break;
      }
    }
    if (!log_->TruncateTo(to).ok()) return false;
    entries_.erase(entries_.lower_bound(log_->log_end()), entries_.end());
    ++epoch_;
    return true;
  }

  bool Sync() {
    const auto sync = log_->BeginSync();
    if (!sync.ok()) return false;
    const absl::Status result = sync->Run();
    if (random_.Chance(0.1) && !Truncate()) return false;
    if (random_.Chance(0.5) && !Append()) return false;
    if (!log_->FinishSync(*sync, result).ok()) return false;
    durable_ = log_->durable_offset();
    return true;
  }

  bool StoreRecoveryPoint() {
    if (!log_->Checkpoint().ok()) return false;
    recovery_point_ = log_->durable_offset();
    return log_->RecoveryPointStored(recovery_point_).ok();
  }

  bool RemoveBefore() {
    const Offset to = log_->log_start() + random_.Between(0, log_->log_end() - log_->log_start());
    start_max_ = std::max(start_max_, to);
    return log_->RemoveBefore(to).ok();
  }

  bool Reset() {
    const Offset to = log_->log_end() + random_.Between(-3, 10);
    if (to < Offset(0)) return true;
    entries_.clear();
    durable_ = Offset(0);
    start_max_ = std::max(start_max_, to);
    return log_->ResetTo(to, {}).ok();
  }

  bool Step() {
    switch (random_.Below(20)) {
      case 0:
      case 1:
      case 2:
        return Sync();
      case 3:
        return Truncate();
      case 4:
        return StoreRecoveryPoint();
      case 5:
        return random_.Chance(0.3) ? RemoveBefore() : true;
      case 6:
        if (random_.Chance(0.7)) return true;
        if (!log_->Close().ok()) return false;
        recovery_point_ = durable_ = log_->durable_offset();
        log_.reset();
        return Open(/*clean=*/true);
      case 7:
        return random_.Chance(0.1) ? Reset() : true;
      default:
        return Append();
    }
  }

  Random random_;
  FaultFileSystem fs_;
  LogConfig config_;
  std::unique_ptr<PartitionLog> log_;
  // Every batch that was ever given to the disk, and the one that it was appended behind: what a
  // log holds after a crash is what it held at one moment, or less.
  std::map<std::string, std::string> predecessors_;
  // What the log holds; below durable_ it must survive.
  std::map<Offset, std::string> entries_;
  Offset durable_;
  Offset start_max_;
  // Stored outside, as if durable at once.
  Offset recovery_point_;
  LeaderEpoch epoch_{0};
  uint64_t salt_ = 0;
  int16_t new_epochs_ = 0;
};

TEST(CrashTest, APowerLossAtEveryOperation) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (uint64_t die_at = 0;; ++die_at) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " dies at " << die_at);
      DoomedLog run(seed, seed * 100'000 + die_at);
      run.fs().DieAfter(die_at);
      const bool survived = run.Work(120);
      run.CrashAndCheck();
      ASSERT_FALSE(::testing::Test::HasFailure());
      if (survived) break;
      // The log goes on after it, and through another loss.
      run.fs().DieAfter(die_at % 40);
      run.Work(30);
      run.CrashAndCheck();
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
  }
}

TEST(CrashTest, LossesAtRandom) {
  for (uint64_t seed = 1000; seed < 1400; ++seed) {
    SCOPED_TRACE(seed);
    DoomedLog run(seed, seed);
    Random random(seed);
    for (int life = 0; life < 8; ++life) {
      run.fs().DieAfter(random.Below(120));
      run.Work(100);
      run.CrashAndCheck();
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
  }
}

}  // namespace
}  // namespace conclave
