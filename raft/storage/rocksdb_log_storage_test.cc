#include "raft/storage/rocksdb_log_storage.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <functional>
#include <string>
#include <utility>

#include "common/checksum/crc32c.h"
#include "common/error/error.h"
#include "raft/core/voter_set.h"
#include "raft/storage/entry_codec.h"
#include "raft/storage/testing/faulty_disk.h"
#include "raft/storage/testing/history.h"

namespace conclave::raft {
namespace {

using conclave::raft::testing::FaultyDisk;
using conclave::raft::testing::MakeEntry;
using conclave::raft::testing::MakeKey;
using conclave::raft::testing::ToText;

constexpr char kPath[] = "/data/raft";

RecoveredState Initial() {
  return FormatInitialVoters(
      *VoterSet::Of({{MakeKey(1), "a:1"}, {MakeKey(2), "b:1"}, {MakeKey(3), "c:1"}}));
}

Write EntriesFrom(uint64_t first, uint64_t count, uint64_t term) {
  Write write;
  for (uint64_t i = first; i < first + count; ++i) {
    write.entries.push_back(MakeEntry(i, term, "entry " + std::to_string(i)));
  }
  return write;
}

class RocksDbLogStorageTest : public ::testing::Test {
 protected:
  void Create() {
    const absl::Status created = RocksDbLogStorage::Create(kPath, Initial(), disk_.env());
    ASSERT_TRUE(created.ok()) << created;
  }
  void Open() {
    storage_.reset();
    auto storage = RocksDbLogStorage::Open(kPath, disk_.env());
    ASSERT_TRUE(storage.ok()) << storage.status();
    storage_ = *std::move(storage);
    auto state = storage_->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    state_ = *std::move(state);
  }
  void Append(std::vector<Write> writes) {
    const absl::Status appended = storage_->Append(writes);
    ASSERT_TRUE(appended.ok()) << appended;
  }

  // What opening and loading says.
  absl::Status Refusal() {
    storage_.reset();
    auto storage = RocksDbLogStorage::Open(kPath, disk_.env());
    if (!storage.ok()) return storage.status();
    return (*storage)->Load().status();
  }

  // Changes the database behind the storage's back.
  void Tamper(const std::function<void(rocksdb::DB&)>& change) {
    storage_.reset();
    rocksdb::Options options;
    options.env = disk_.env();
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(options, kPath, &raw);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    const std::unique_ptr<rocksdb::DB> db(raw);
    change(*db);
    ASSERT_TRUE(db->Close().ok());
  }

  void ExpectRefused(v1::ErrorCode code, const std::string& naming) {
    const absl::Status refusal = Refusal();
    EXPECT_EQ(ErrorCodeOf(refusal), code) << refusal;
    const std::string text(refusal.message());
    EXPECT_NE(text.find(kPath), std::string::npos) << text;
    EXPECT_NE(text.find(naming), std::string::npos) << text;
  }

  FaultyDisk disk_;
  std::unique_ptr<RocksDbLogStorage> storage_;
  RecoveredState state_;
};

TEST_F(RocksDbLogStorageTest, HoldsWhatItWasMadeWith) {
  Create();
  Open();
  EXPECT_EQ(ToText(state_), ToText(Initial()));
}

TEST_F(RocksDbLogStorageTest, AnEmptyLogIsALog) {
  ASSERT_TRUE(RocksDbLogStorage::Create(kPath, RecoveredState(), disk_.env()).ok());
  Open();
  EXPECT_EQ(ToText(state_), ToText(RecoveredState()));
  Append({EntriesFrom(1, 2, 1)});
  Open();
  EXPECT_EQ(state_.entries.size(), 2u);
}

TEST_F(RocksDbLogStorageTest, KeepsEntriesTermAndVote) {
  Create();
  Open();
  Write write = EntriesFrom(2, 3, 4);
  write.hard_state = HardState{Term(4), MakeKey(2)};
  Append({write});
  Open();
  EXPECT_EQ(state_.hard_state, (HardState{Term(4), MakeKey(2)}));
  ASSERT_EQ(state_.entries.size(), 4u);
  EXPECT_EQ(*state_.entries[3].data, "entry 4");
  EXPECT_EQ(state_.entries[3].term, Term(4));
  // A vote is taken back by a newer term without one.
  Write term;
  term.hard_state = HardState{Term(5), std::nullopt};
  Append({term});
  Open();
  EXPECT_EQ(state_.hard_state, (HardState{Term(5), std::nullopt}));
  EXPECT_EQ(state_.entries.size(), 4u);
}

TEST_F(RocksDbLogStorageTest, CutsTheLog) {
  Create();
  Open();
  Append({EntriesFrom(2, 8, 1)});
  Write cut = EntriesFrom(5, 1, 2);
  cut.truncate_from = LogIndex(5);
  Append({cut});
  Open();
  ASSERT_EQ(state_.entries.size(), 5u);
  EXPECT_EQ(state_.entries[4].term, Term(2));
  // After a restart storage still knows how far the log reaches that is to be cut.
  Write cut_again;
  cut_again.truncate_from = LogIndex(2);
  Append({cut_again, EntriesFrom(2, 1, 3)});
  Open();
  ASSERT_EQ(state_.entries.size(), 2u);
  EXPECT_EQ(state_.entries[1].term, Term(3));
}

TEST_F(RocksDbLogStorageTest, WritesOfOneBatchApplyInOrder) {
  Create();
  Open();
  Write cut;
  cut.truncate_from = LogIndex(3);
  Append({EntriesFrom(2, 4, 1), cut, EntriesFrom(3, 1, 2)});
  Open();
  ASSERT_EQ(state_.entries.size(), 3u);
  EXPECT_EQ(state_.entries[2].term, Term(2));
}

TEST_F(RocksDbLogStorageTest, IsNotMadeTwice) {
  Create();
  Open();
  Append({EntriesFrom(2, 3, 1)});
  storage_.reset();
  const absl::Status again = RocksDbLogStorage::Create(kPath, Initial(), disk_.env());
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(again.message()).find(kPath), std::string::npos) << again;
  Open();
  EXPECT_EQ(state_.entries.size(), 4u);
}

TEST_F(RocksDbLogStorageTest, MadeAgainWithTheSameStateItIsLeftAsItIs) {
  Create();
  const auto before = disk_.Contents();
  Create();
  EXPECT_EQ(disk_.Contents(), before);
  const absl::Status other = RocksDbLogStorage::Create(kPath, RecoveredState(), disk_.env());
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition) << other;
  EXPECT_EQ(disk_.Contents(), before);
}

TEST_F(RocksDbLogStorageTest, WhatIsNotThereIsNotMadeByOpening) {
  ExpectRefused(v1::STORAGE_ERROR, "opening it");
  EXPECT_TRUE(disk_.Contents().empty());
}

TEST_F(RocksDbLogStorageTest, ReadOnlySeesTheSameAndWritesNothing) {
  Create();
  Open();
  Append({EntriesFrom(2, 3, 1)});
  const std::string expected = [&] {
    RecoveredState state = Initial();
    for (const Entry& entry : EntriesFrom(2, 3, 1).entries) state.entries.push_back(entry);
    return ToText(state);
  }();
  // Beside the running node, and after it.
  for (bool running : {true, false}) {
    if (!running) storage_.reset();
    const auto before = disk_.Contents();
    {
      auto reader = RocksDbLogStorage::OpenReadOnly(kPath, disk_.env());
      ASSERT_TRUE(reader.ok()) << reader.status();
      const auto state = (*reader)->Load();
      ASSERT_TRUE(state.ok()) << state.status();
      EXPECT_EQ(ToText(*state), expected);
      const absl::Status refused = (*reader)->Append({EntriesFrom(5, 1, 1)});
      EXPECT_EQ(ErrorCodeOf(refused), v1::STORAGE_ERROR);
    }
    EXPECT_EQ(disk_.Contents(), before);
  }
}

TEST_F(RocksDbLogStorageTest, AMissingEntryIsRefused) {
  Create();
  Open();
  Append({EntriesFrom(2, 5, 1)});
  Tamper([](rocksdb::DB& db) { ASSERT_TRUE(db.Delete({}, codec::EntryKey(LogIndex(4))).ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "entry 4: it is missing");
}

TEST_F(RocksDbLogStorageTest, ALogThatDoesNotBeginAtOneIsRefused) {
  Create();
  Open();
  Append({EntriesFrom(2, 5, 1)});
  Tamper([](rocksdb::DB& db) { ASSERT_TRUE(db.Delete({}, codec::EntryKey(LogIndex(1))).ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "entry 1: it is missing");
}

TEST_F(RocksDbLogStorageTest, AnEntryUnderAnothersKeyIsRefused) {
  Create();
  Open();
  Append({EntriesFrom(2, 5, 1)});
  Tamper([](rocksdb::DB& db) {
    ASSERT_TRUE(
        db.Put({}, codec::EntryKey(LogIndex(4)), codec::EncodeEntry(MakeEntry(5, 1, ""))).ok());
  });
  ExpectRefused(v1::STORAGE_ERROR, "entry 4: it says it is entry 5");
}

TEST_F(RocksDbLogStorageTest, AForeignKeyAmongTheEntriesIsRefused) {
  Create();
  Open();
  Append({EntriesFrom(2, 2, 1)});
  Tamper([](rocksdb::DB& db) { ASSERT_TRUE(db.Put({}, "lx", "").ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "entry 4");
}

TEST_F(RocksDbLogStorageTest, ADamagedValueIsRefused) {
  Create();
  Open();
  Append({EntriesFrom(2, 5, 1)});
  std::string value = codec::EncodeEntry(MakeEntry(4, 1, "entry 4"));
  value[3] = static_cast<char>(value[3] ^ 1);
  Tamper(
      [&](rocksdb::DB& db) { ASSERT_TRUE(db.Put({}, codec::EntryKey(LogIndex(4)), value).ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "entry 4: the entry is damaged");
}

TEST_F(RocksDbLogStorageTest, ADamagedOrMissingTermIsRefused) {
  Create();
  Tamper([](rocksdb::DB& db) {
    ASSERT_TRUE(db.Put({}, std::string(codec::kHardStateKey), "xxxxxxxx").ok());
  });
  ExpectRefused(v1::STORAGE_ERROR, "term and vote");
  Tamper(
      [](rocksdb::DB& db) { ASSERT_TRUE(db.Delete({}, std::string(codec::kHardStateKey)).ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "term and vote");
}

TEST_F(RocksDbLogStorageTest, AnUnknownFormatIsRefused) {
  Create();
  std::string format = "conclave-raft-log 2";
  const uint32_t crc = Crc32c(format);
  for (int shift = 24; shift >= 0; shift -= 8) format.push_back(static_cast<char>(crc >> shift));
  Tamper([&](rocksdb::DB& db) {
    ASSERT_TRUE(db.Put({}, std::string(codec::kFormatKey), format).ok());
  });
  ExpectRefused(v1::UNSUPPORTED_VERSION, "conclave-raft-log 2");
  EXPECT_EQ(ErrorCodeOf(RocksDbLogStorage::OpenReadOnly(kPath, disk_.env()).status()),
            v1::UNSUPPORTED_VERSION);
}

TEST_F(RocksDbLogStorageTest, ADatabaseOfAnotherKindIsRefused) {
  Create();
  Tamper([](rocksdb::DB& db) { ASSERT_TRUE(db.Delete({}, std::string(codec::kFormatKey)).ok()); });
  ExpectRefused(v1::STORAGE_ERROR, "reading its format");
}

}  // namespace
}  // namespace conclave::raft
