// What a damaged byte in the Raft log's files may do: be refused, or not matter. Never shorten the
// log in silence.
#include <gtest/gtest.h>

#include <set>
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

constexpr char kPath[] = "/data/raft";

RecoveredState Initial() {
  RecoveredState state;
  state.hard_state.term = Term(1);
  state.entries.push_back(MakeEntry(1, 1, "founded", EntryKind::kVoters));
  return state;
}

bool IsOf(const std::string& path, const std::string& kind) {
  return path.find(kind) != std::string::npos;
}

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() : history_(Initial()) {}

  void Create() { ASSERT_TRUE(RocksDbLogStorage::Create(kPath, Initial(), disk_.env()).ok()); }

  // One process's life.
  void Run(int batches, size_t max_data) {
    auto storage = RocksDbLogStorage::Open(kPath, disk_.env());
    ASSERT_TRUE(storage.ok()) << storage.status();
    ASSERT_TRUE((*storage)->Load().ok());
    for (int i = 0; i < batches; ++i) {
      const auto batch = history_.DrawBatch(random_, max_data);
      ASSERT_TRUE((*storage)->Append(batch).ok());
      history_.Apply(batch);
      sizes_after_.push_back(WalSize());
    }
  }

  size_t WalSize() {
    DiskImage image = disk_.Contents();
    return WalOf(image).size();
  }

  enum class Outcome { kRefused, kWhole, kLastBatchLost, kShortened };

  Outcome OutcomeOf(const DiskImage& image) {
    FaultyDisk disk(image);
    auto storage = RocksDbLogStorage::Open(kPath, disk.env());
    if (!storage.ok()) return Outcome::kRefused;
    const auto state = (*storage)->Load();
    if (!state.ok()) return Outcome::kRefused;
    const std::string text = ToText(*state);
    const auto& states = history_.states();
    if (text == states.back()) return Outcome::kWhole;
    if (states.size() > 1 && text == states[states.size() - 2]) return Outcome::kLastBatchLost;
    return Outcome::kShortened;
  }

  // Flips `bits` in every `stride`th byte of the files of `kind`, one at a time.
  std::vector<std::pair<size_t, Outcome>> Try(const std::string& kind, size_t stride, char bits) {
    std::vector<std::pair<size_t, Outcome>> outcomes;
    const DiskImage good = disk_.Contents();
    for (const auto& [path, bytes] : good) {
      if (!IsOf(path, kind)) continue;
      for (size_t i = 0; i < bytes.size(); i += stride) {
        DiskImage bad = good;
        bad[path][i] = static_cast<char>(bytes[i] ^ bits);
        outcomes.emplace_back(i, OutcomeOf(bad));
      }
    }
    return outcomes;
  }

  static std::string& WalOf(DiskImage& image) {
    for (auto& [path, bytes] : image) {
      if (IsOf(path, ".log")) return bytes;
    }
    ADD_FAILURE() << "there is no write-ahead log";
    return image["none"];
  }

  FaultyDisk disk_;
  History history_;
  Random random_{11};
  std::vector<size_t> sizes_after_;
};

TEST_F(DamageTest, OfTheWriteAheadLogOnlyTheLastRecordsLengthCanHideIt) {
  Create();
  Run(12, 60);
  const size_t last_begins = sizes_after_[sizes_after_.size() - 2];
  for (char flip : {'\x01', '\x80'}) {
    std::set<size_t> hidden;
    for (const auto& [at, outcome] : Try(".log", 1, flip)) {
      if (outcome == Outcome::kLastBatchLost) {
        hidden.insert(at);
      } else {
        EXPECT_EQ(outcome, Outcome::kRefused) << "byte " << at << " of the log";
      }
    }
    // The upper byte of its length: the record seems to go on beyond the end of the file.
    EXPECT_EQ(hidden, std::set<size_t>{last_begins + 5});
  }
}

TEST_F(DamageTest, TheSameOfALogOfManyBlocks) {
  Create();
  Run(12, 90'000);
  ASSERT_GT(WalSize(), 100'000u);
  const size_t last_begins = sizes_after_[sizes_after_.size() - 2];
  for (const auto& [at, outcome] : Try(".log", WalSize() / 400, '\x80')) {
    if (at < last_begins) {
      EXPECT_EQ(outcome, Outcome::kRefused) << "byte " << at << " of the log";
    }
    EXPECT_NE(outcome, Outcome::kShortened) << "byte " << at << " of the log";
  }
  // The lengths of every record that begins a batch.
  const DiskImage good = disk_.Contents();
  for (size_t batch = 0; batch + 2 < sizes_after_.size(); ++batch) {
    for (char length : {'\x00', '\x7f', '\xff'}) {
      DiskImage bad = good;
      std::string& log = WalOf(bad);
      log[sizes_after_[batch] + 5] = length;
      if (bad == good) continue;
      EXPECT_EQ(OutcomeOf(bad), Outcome::kRefused) << "batch " << batch;
    }
  }
}

TEST_F(DamageTest, AHoleOfZerosBeforeWholeRecordsIsRefused) {
  Create();
  Run(30, 400);
  const DiskImage good = disk_.Contents();
  for (size_t batch = 0; batch + 2 < sizes_after_.size(); ++batch) {
    for (size_t length : {size_t{7}, size_t{100}, size_t{512}, size_t{4096}}) {
      DiskImage bad = good;
      std::string& log = WalOf(bad);
      const size_t begin = sizes_after_[batch];
      if (begin + length > sizes_after_[sizes_after_.size() - 2]) continue;
      log.replace(begin, length, std::string(length, '\0'));
      EXPECT_EQ(OutcomeOf(bad), Outcome::kRefused) << length << " zeros after batch " << batch;
    }
  }
}

TEST_F(DamageTest, ZerosBehindTheLastRecordAreNothing) {
  Create();
  Run(10, 400);
  for (size_t zeros : {size_t{1}, size_t{7}, size_t{4096}, size_t{1} << 20}) {
    DiskImage padded = disk_.Contents();
    WalOf(padded).append(zeros, '\0');
    EXPECT_EQ(OutcomeOf(padded), Outcome::kWhole) << zeros << " zeros";
  }
}

TEST_F(DamageTest, ATornLastWriteDoesNotHideDamageBeforeIt) {
  Create();
  Run(20, 60);
  DiskImage bad = disk_.Contents();
  std::string& log = WalOf(bad);
  log.resize(log.size() - 3);
  EXPECT_EQ(OutcomeOf(bad), Outcome::kLastBatchLost);
  log[sizes_after_[7] + 5] = '\x7f';
  EXPECT_EQ(OutcomeOf(bad), Outcome::kRefused);
}

TEST_F(DamageTest, OfTablesAndManifestsNothingIsLostInSilence) {
  Create();
  Run(20, 60);
  Run(1, 60);  // Its start has moved the entries to a table.
  for (const char* kind : {".sst", "MANIFEST", "CURRENT"}) {
    int refused = 0;
    // Of a bit that RocksDB, as Debian builds it, does not assert on before it has looked at the
    // checksum.
    for (const auto& [at, outcome] : Try(kind, 2, '\x01')) {
      refused += outcome == Outcome::kRefused;
      EXPECT_TRUE(outcome == Outcome::kRefused || outcome == Outcome::kWhole)
          << "byte " << at << " of " << kind;
    }
    EXPECT_GT(refused, 0);
  }
}

TEST_F(DamageTest, TheRefusalNamesTheFileAndThePlace) {
  Create();
  Run(10, 60);
  DiskImage bad = disk_.Contents();
  WalOf(bad)[sizes_after_[3] + 5] = '\x7f';
  FaultyDisk disk(bad);
  for (bool read_only : {false, true}) {
    const auto opened = read_only ? RocksDbLogStorage::OpenReadOnly(kPath, disk.env())
                                  : RocksDbLogStorage::Open(kPath, disk.env());
    EXPECT_EQ(ErrorCodeOf(opened.status()), v1::STORAGE_ERROR);
    const std::string text(opened.status().message());
    EXPECT_NE(text.find(kPath), std::string::npos) << text;
    EXPECT_NE(text.find(".log: the record at byte " + std::to_string(sizes_after_[3])),
              std::string::npos)
        << text;
  }
  // Nothing was touched.
  EXPECT_EQ(disk.Contents(), bad);
}

}  // namespace
}  // namespace conclave::raft
