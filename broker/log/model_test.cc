#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/log/partition_log.h"
#include "broker/log/testing/fault_file_system.h"
#include "broker/log/testing/log_testing.h"
#include "common/random/random.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {
namespace {

using log_testing::BatchSpec;
using log_testing::HeaderOf;
using log_testing::kNowMs;
using log_testing::MakeBatch;

const WallTime kNow = WallTime::FromUnixMillis(kNowMs);

// A log as a list, beside the real one.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed), fs_(seed) {
    config_.segment_bytes = random_.Between(1024, 6000);
    config_.index_interval_bytes = random_.Between(1, 800);
    log_ = log_testing::Open(fs_, config_);
  }

  void Step() {
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return AppendLeader();
      case 4:
      case 5:
        return AppendFollower();
      case 6:
      case 7:
      case 8:
        return Read();
      case 9:
        return FindTimestamp();
      case 10:
        return EndOfEpoch();
      case 11:
        return random_.Chance(0.4) ? Truncate() : Sync();
      case 12:
        return random_.Chance(0.3) ? RemoveBefore() : Sync();
      case 13:
        return Reopen(random_.Chance(0.5));
      case 14:
        return random_.Chance(0.05) ? Reset() : Read();
      default:
        if (random_.Chance(0.3)) ++epoch_;
    }
  }

  void CheckAll() {
    ASSERT_EQ(log_->log_start(), start_);
    ASSERT_EQ(log_->log_end(), end());
    std::vector<std::string> expected;
    for (const Entry& entry : entries_) expected.push_back(entry.bytes);
    EXPECT_EQ(log_testing::AllBatches(*log_), expected);
  }

 private:
  struct Entry {
    Offset base, next;
    LeaderEpoch epoch;
    std::string bytes;
    std::vector<int64_t> timestamps;
  };

  Offset end() const { return entries_.empty() ? start_ : entries_.back().next; }

  Entry MakeEntry(Offset base) {
    BatchSpec spec;
    spec.records = 1 + static_cast<int>(random_.Below(5));
    spec.value_bytes = random_.Below(300);
    spec.timestamp_ms = kNowMs + random_.Between(-1000, 1000);
    spec.timestamp_step_ms = random_.Between(-20, 20);
    spec.salt = ++salt_;
    spec.codec = random_.Chance(0.2) ? Compression::kLz4 : Compression::kNone;
    const Buffer batch = MakeBatch(spec);
    Entry entry{base, base + spec.records, epoch_, {}, {}};
    entry.bytes = PatchBatch(batch, base, epoch_).ToString();
    for (int i = 0; i < spec.records; ++i) {
      entry.timestamps.push_back(spec.timestamp_ms + i * spec.timestamp_step_ms);
    }
    return entry;
  }

  void AppendLeader() {
    Entry entry = MakeEntry(end());
    // As the producer sent it: at offset 0 and without an epoch.
    const Buffer sent = PatchBatch(Buffer(entry.bytes), Offset(0), LeaderEpoch(-1));
    const auto result = log_->AppendAsLeader(sent, HeaderOf(sent), epoch_, kNow);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->base_offset, entry.base);
    EXPECT_EQ(result->next_offset, entry.next);
    entries_.push_back(std::move(entry));
  }

  void AppendFollower() {
    Buffer run;
    for (uint64_t i = 1 + random_.Below(12); i > 0; --i) {
      if (random_.Chance(0.1)) ++epoch_;
      entries_.push_back(MakeEntry(end()));
      run.Append(Slice::CopyOf(entries_.back().bytes));
    }
    const auto batches = CheckBatchRun(run);
    ASSERT_TRUE(batches.ok()) << batches.status();
    const absl::Status status = log_->AppendAsFollower(run, *batches, kNow);
    ASSERT_TRUE(status.ok()) << status;
  }

  Offset RandomOffset() { return start_ + random_.Between(0, end() - start_); }

  void Read() {
    const Offset from = RandomOffset();
    const Offset limit = random_.Chance(0.5) ? end() : RandomOffset();
    const size_t max_bytes = random_.Below(4000);
    std::string expected;
    Offset next = from;
    for (const Entry& entry : entries_) {
      if (entry.next <= from) continue;
      if (entry.next > limit) break;
      if (!expected.empty() && expected.size() + entry.bytes.size() > max_bytes) break;
      expected += entry.bytes;
      next = entry.next;
    }
    const auto read = log_->Read(from, max_bytes, limit);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->batches.ToString(), expected) << from << " " << limit << " " << max_bytes;
    EXPECT_EQ(read->next_offset, next);
    EXPECT_FALSE(log_->Read(start_ - 1, 1, end()).ok());
    EXPECT_FALSE(log_->Read(end() + 1, 1, end()).ok());
  }

  void FindTimestamp() {
    const int64_t wanted = kNowMs + random_.Between(-1100, 1100);
    const Offset limit = random_.Chance(0.5) ? end() : RandomOffset();
    std::optional<Offset> expected;
    for (const Entry& entry : entries_) {
      for (size_t i = 0; i < entry.timestamps.size() && !expected; ++i) {
        const Offset offset = entry.base + static_cast<int64_t>(i);
        if (offset >= start_ && offset < limit && entry.timestamps[i] >= wanted) expected = offset;
      }
    }
    const auto found = log_->FindTimestamp(wanted, limit);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->has_value(), expected.has_value()) << wanted;
    if (expected) {
      EXPECT_EQ((*found)->offset, *expected);
    }
  }

  // The naive way: by looking at every batch.
  void EndOfEpoch() {
    const LeaderEpoch asked(static_cast<int32_t>(random_.Between(-1, epoch_.value() + 1)));
    EpochEnd expected{LeaderEpoch(-1), end()};
    if (gone_ && *gone_ > asked) {
      EXPECT_EQ(log_->EndOfEpoch(asked), (EpochEnd{LeaderEpoch(-1), start_ - 1})) << asked;
      return;
    }
    if (gone_) expected.epoch = *gone_;
    for (const Entry& entry : entries_) {
      if (entry.epoch <= asked) {
        expected = {entry.epoch, end()};
      } else {
        expected.end = std::max(entry.base, start_);
        break;
      }
    }
    EXPECT_EQ(log_->EndOfEpoch(asked), expected) << asked;
  }

  void Truncate() {
    const Offset to = std::max(start_, RandomOffset() - 0);
    // Of the batch within which the log starts nothing stays.
    if (!entries_.empty() && entries_.front().base < start_ && entries_.front().next > to) {
      gone_.reset();
    }
    const auto status = log_->TruncateTo(to);
    ASSERT_TRUE(status.ok()) << status;
    while (!entries_.empty() && entries_.back().next > to) entries_.pop_back();
    EXPECT_LE(log_->durable_offset(), end());
    EXPECT_EQ(log_->log_end(), end());
  }

  void Sync() {
    ASSERT_TRUE(log_->SyncNow().ok());
    EXPECT_EQ(log_->durable_offset(), end());
    StoreRecoveryPoint();
  }

  void StoreRecoveryPoint() {
    ASSERT_TRUE(log_->Checkpoint().ok());
    recovery_point_ = log_->durable_offset();
    ASSERT_TRUE(log_->RecoveryPointStored(recovery_point_).ok());
  }

  void RemoveBefore() {
    const Offset to = RandomOffset();
    start_ = std::max(start_, std::min(to, log_->durable_offset()));
    ASSERT_TRUE(log_->RemoveBefore(to).ok());
    EXPECT_EQ(log_->log_start(), start_);
    EXPECT_LE(log_testing::FirstSegment(fs_), start_);
    while (!entries_.empty() && entries_.front().next <= start_) {
      gone_ = entries_.front().epoch;
      entries_.erase(entries_.begin());
    }
    if (!entries_.empty() && entries_.front().base < start_) gone_ = entries_.front().epoch;
  }

  void Reset() {
    start_ = Offset(random_.Between(0, 2 * end().value() + 1));
    entries_.clear();
    gone_.reset();
    ASSERT_TRUE(log_->ResetTo(start_, {}).ok());
  }

  void Reopen(bool clean) {
    if (clean) {
      ASSERT_TRUE(log_->Close().ok());
      recovery_point_ = log_->durable_offset();
    }
    const auto epochs = log_->epochs().starts();
    log_.reset();
    log_ = log_testing::Open(fs_, config_, recovery_point_, clean);
    EXPECT_EQ(log_->epochs().starts(), epochs);
    CheckAll();
  }

  Random random_;
  FaultFileSystem fs_;
  LogConfig config_;
  std::unique_ptr<PartitionLog> log_;
  Offset start_;
  // The epoch of the last record below it, if there was one.
  std::optional<LeaderEpoch> gone_;
  std::vector<Entry> entries_;
  LeaderEpoch epoch_{0};
  Offset recovery_point_;
  uint64_t salt_ = 0;
};

TEST(ModelTest, RandomOperationsAgreeWithAList) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Model model(seed);
    for (int step = 0; step < 300 && !::testing::Test::HasFailure(); ++step) model.Step();
    model.CheckAll();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace conclave
