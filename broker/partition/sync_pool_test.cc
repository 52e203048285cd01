#include "broker/partition/sync_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/log/partition_log.h"
#include "broker/log/testing/log_testing.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/fs/posix_file_system.h"

namespace conclave::broker {
namespace {

// A disk whose syncs wait until they are let through, by the name of their log.
class GatedFileSystem : public PosixFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    auto file = PosixFileSystem::Open(path, mode);
    if (!file.ok()) return file;
    return std::make_unique<Gated>(*this, *std::move(file));
  }

  void Hold(const std::string& log) {
    const std::lock_guard lock(mutex_);
    held_.insert(log);
  }
  void Release(const std::string& log) {
    const std::lock_guard lock(mutex_);
    held_.erase(log);
    changed_.notify_all();
  }
  void Fail(const std::string& log) {
    const std::lock_guard lock(mutex_);
    failing_ = log;
  }
  void AwaitHeld(const std::string& log) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.count(log) > 0; });
  }
  // Logs whose files the disk was told to begin with, in order.
  std::vector<std::string> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  class Gated : public File {
   public:
    Gated(GatedFileSystem& fs, std::unique_ptr<File> file) : fs_(fs), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    absl::Status Append(const Buffer& bytes) override { return file_->Append(bytes); }
    absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t length) const override {
      return file_->ReadAt(offset, length);
    }
    absl::Status Truncate(uint64_t size) override { return file_->Truncate(size); }
    absl::Status Rewrite(uint64_t from) override { return file_->Rewrite(from); }
    absl::Status Sync() override { return fs_.Pass(LogOf(path()), *file_); }
    void BeginWriteback() override {
      fs_.Begun(LogOf(path()));
      file_->BeginWriteback();
    }
    absl::StatusOr<WallTime> LastWritten() const override { return file_->LastWritten(); }

   private:
    GatedFileSystem& fs_;
    const std::unique_ptr<File> file_;
  };

  static std::string LogOf(const std::string& path) {
    const std::string directory = ParentPath(path);
    return directory.substr(directory.rfind('/') + 1);
  }
  absl::Status Pass(const std::string& log, File& file) {
    {
      std::unique_lock lock(mutex_);
      waiting_.insert(log);
      changed_.notify_all();
      changed_.wait(lock, [&] { return held_.count(log) == 0; });
      waiting_.erase(log);
      if (log == failing_) return MakeError(v1::STORAGE_ERROR, "the disk is gone");
    }
    return file.Sync();
  }
  void Begun(const std::string& log) {
    const std::lock_guard lock(mutex_);
    if (begun_.empty() || begun_.back() != log) begun_.push_back(log);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> held_;
  std::set<std::string> waiting_;
  std::string failing_;
  std::vector<std::string> begun_;
};

class SyncPoolTest : public testing::Test {
 protected:
  SyncPoolTest() {
    std::string pattern = testing::TempDir() + "/sync_pool.XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }

  // Makes a log with something to sync, and asks for it.
  void Sync(const std::string& name) {
    PartitionLog& log = *logs_.emplace_back(MakeLog(name));
    log_testing::Append(log, {});
    auto sync = log.BeginSync();
    ASSERT_TRUE(sync.ok()) << sync.status();
    pool_.Run(*std::move(sync), executor_, [this, name](const LogSync&, absl::Status result) {
      const std::lock_guard lock(mutex_);
      done_.emplace_back(name, ErrorCodeOf(result));
      changed_.notify_all();
    });
  }
  std::unique_ptr<PartitionLog> MakeLog(const std::string& name) {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(fs_.CreateDirectory(path).ok());
    auto log = PartitionLog::Open(fs_, path, {});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  // Every thread but the one that syncs `name`, which is held, waits for Resume.
  void Occupy(const std::string& name) {
    fs_.Hold(name);
    Sync(name);
    fs_.AwaitHeld(name);
    for (int i = 0; i < kThreads - 1; ++i) {
      pool_.RunTask([this] {
        std::unique_lock lock(mutex_);
        ++occupied_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return resumed_; });
      });
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return occupied_ == kThreads - 1; });
  }
  void Resume() {
    const std::lock_guard lock(mutex_);
    resumed_ = true;
    changed_.notify_all();
  }
  using Done = std::vector<std::pair<std::string, v1::ErrorCode>>;
  Done AwaitDone(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.size() >= count; });
    return done_;
  }

  static constexpr int kThreads = 3;

  std::string directory_;
  GatedFileSystem fs_;
  std::vector<std::unique_ptr<PartitionLog>> logs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Done done_;
  int occupied_ = 0;
  bool resumed_ = false;
  SystemClock clock_;
  ThreadExecutor executor_{clock_, {}};
  // Stops first.
  SyncPool pool_{kThreads};
};

TEST_F(SyncPoolTest, SyncsAndTellsEachOnce) {
  Sync("a");
  Sync("b");
  const Done done = AwaitDone(2);
  EXPECT_EQ((std::set<Done::value_type>(done.begin(), done.end())),
            (std::set<Done::value_type>{{"a", v1::NONE}, {"b", v1::NONE}}));
}

TEST_F(SyncPoolTest, WhatComesDuringALongSyncIsABatchThatDoesNotWaitForIt) {
  Occupy("slow");
  Sync("a");
  Sync("b");
  Resume();
  EXPECT_EQ(AwaitDone(2), (Done{{"a", v1::NONE}, {"b", v1::NONE}}));
  // The disk had begun with both before either was synced.
  EXPECT_EQ(fs_.begun(), (std::vector<std::string>{"a", "b"}));
  fs_.Release("slow");
  EXPECT_EQ(AwaitDone(3).back().first, "slow");
}

TEST_F(SyncPoolTest, TheDiskBeginsWithNoMoreThanIsSyncedSoon) {
  constexpr size_t kLogs = SyncPool::kBegunTogether + 6;
  Occupy("slow");
  fs_.Hold("log-0");
  for (size_t i = 0; i < kLogs; ++i) Sync("log-" + std::to_string(i));
  Resume();
  fs_.AwaitHeld("log-0");
  EXPECT_EQ(fs_.begun().size(), SyncPool::kBegunTogether);
  fs_.Release("log-0");
  fs_.Release("slow");
  AwaitDone(kLogs + 1);
  EXPECT_EQ(fs_.begun().size(), kLogs);
}

TEST_F(SyncPoolTest, OneThatFailsIsToldAsFailedAndTheOthersAreNot) {
  Occupy("slow");
  fs_.Fail("b");
  Sync("a");
  Sync("b");
  Sync("c");
  Resume();
  EXPECT_EQ(AwaitDone(3), (Done{{"a", v1::NONE}, {"b", v1::STORAGE_ERROR}, {"c", v1::NONE}}));
  fs_.Release("slow");
  AwaitDone(4);
}

TEST_F(SyncPoolTest, TasksRunBesideSyncsAndBesideEachOther) {
  Occupy("slow");
  Resume();
  fs_.Release("slow");
  EXPECT_EQ(AwaitDone(1), (Done{{"slow", v1::NONE}}));
}

}  // namespace
}  // namespace conclave::broker
