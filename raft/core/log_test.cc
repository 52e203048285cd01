#include "raft/core/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/random/random.h"
#include "raft/core/bootstrap.h"

namespace conclave::raft {
namespace {

Entry Data(uint64_t index, uint64_t term) {
  return {.index = LogIndex(index),
          .term = Term(term),
          .kind = EntryKind::kData,
          .data = std::make_shared<const std::string>("d")};
}

RaftLog LogOf(const std::vector<uint64_t>& terms) {
  RaftLog log;
  for (size_t i = 0; i < terms.size(); ++i) log.Append(Data(i + 1, terms[i]));
  return log;
}

TEST(RaftLogTest, RefusesStoredLogsThatContradictThemselves) {
  EXPECT_TRUE(RaftLog::Recover({Data(1, 1), Data(2, 3)}).ok());
  EXPECT_EQ(RaftLog::Recover({Data(2, 1)}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(RaftLog::Recover({Data(1, 1), Data(3, 1)}).ok());
  EXPECT_FALSE(RaftLog::Recover({Data(1, 2), Data(2, 1)}).ok());
  EXPECT_FALSE(RaftLog::Recover({Data(1, 0)}).ok());
  Entry voters = Data(1, 1);
  voters.kind = EntryKind::kVoters;
  EXPECT_FALSE(RaftLog::Recover({voters}).ok());
}

TEST(RaftLogTest, FindsTermsAndTheirRuns) {
  const RaftLog log = LogOf({1, 1, 3, 3, 3, 5});
  EXPECT_EQ(log.TermAt(LogIndex(0)), Term(0));
  EXPECT_EQ(log.TermAt(LogIndex(3)), Term(3));
  EXPECT_EQ(log.TermAt(LogIndex(7)), std::nullopt);
  EXPECT_EQ(log.FirstOfTermAt(LogIndex(5)), LogIndex(3));
  EXPECT_EQ(log.LastAtOrBelow(Term(3)), LogIndex(5));
  EXPECT_EQ(log.LastAtOrBelow(Term(4)), LogIndex(5));
  EXPECT_EQ(log.LastAtOrBelow(Term(0)), LogIndex(0));
}

TEST(RaftLogTest, SlicesByBytesButNeverToNothing) {
  const RaftLog log = LogOf({1, 1, 1, 1});
  EXPECT_EQ(log.Slice(LogIndex(2), LogIndex(4), 1).size(), 1u);
  EXPECT_EQ(log.Slice(LogIndex(2), LogIndex(4), 2 * Data(1, 1).Bytes()).size(), 2u);
  EXPECT_EQ(log.Slice(LogIndex(2), LogIndex(4), 1 << 20).size(), 3u);
}

TEST(RaftLogTest, TruncatingTakesVotersBack) {
  const VoterSet one = VoterSet::Of({{{NodeId(1), DirectoryId::FromRandom(1, 1)}, ""}}).value();
  const VoterSet other = VoterSet::Of({{{NodeId(2), DirectoryId::FromRandom(2, 1)}, ""}}).value();
  RaftLog log;
  log.Append(FormatInitialVoters(one).entries[0]);
  Entry change = FormatInitialVoters(other).entries[0];
  change.index = LogIndex(2);
  log.Append(change);
  EXPECT_EQ(log.voters(), other);
  log.TruncateFrom(LogIndex(2));
  EXPECT_EQ(log.voters(), one);
  log.TruncateFrom(LogIndex(1));
  EXPECT_TRUE(log.voters().empty());
}

TEST(RaftLogDeathTest, TruncationBelowTheCommitIndexSaysSo) {
  RaftLog log = LogOf({1, 1, 1});
  log.CommitTo(LogIndex(2));
  EXPECT_DEATH(log.TruncateFrom(LogIndex(2)), "would take back committed entries");
}

// A stored log that does what writes say, as the model of what storage holds.
void Apply(const RaftLog::Unwritten& write, std::vector<Entry>& stored) {
  if (write.truncate_from) stored.resize(std::min(stored.size(), write.truncate_from->value() - 1));
  for (const Entry& entry : write.entries) {
    ASSERT_EQ(entry.index.value(), stored.size() + 1);
    stored.push_back(entry);
  }
}

TEST(RaftLogTest, WritesInOrderKeepStorageEqualWhateverIsCutAndAppended) {
  Random random(3);
  RaftLog log;
  std::vector<Entry> stored;
  uint64_t term = 1;
  for (int step = 0; step < 20'000; ++step) {
    if (random.Chance(0.6)) {
      log.Append(Data(log.last_index().value() + 1, term));
    } else if (random.Chance(0.4) && log.last_index() > LogIndex(0)) {
      log.TruncateFrom(LogIndex(1 + random.Below(log.last_index().value())));
      ++term;
    } else {
      Apply(log.TakeUnwritten(), stored);
      ASSERT_FALSE(log.HasUnwritten());
      ASSERT_EQ(stored.size(), log.last_index().value());
      for (const Entry& entry : stored) ASSERT_TRUE(log.Holds(entry.position()));
      if (random.Chance(0.5)) log.MarkDurable(log.last_index());
    }
    ASSERT_LE(log.durable_index(), log.last_index());
  }
}

}  // namespace
}  // namespace conclave::raft
