#include "raft/core/commit_rule.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/random/random.h"

namespace conclave::raft {
namespace {

RaftLog LogOf(const std::vector<uint64_t>& terms) {
  RaftLog log;
  for (size_t i = 0; i < terms.size(); ++i) {
    log.Append({.index = LogIndex(i + 1),
                .term = Term(terms[i]),
                .data = std::make_shared<const std::string>()});
  }
  return log;
}

TEST(CommitRuleTest, R2_AnOldEntryIsCommittedByItsSuccessorAlone) {
  const RaftLog log = LogOf({1, 2, 4});
  EXPECT_EQ(NextCommitIndex(log, {LogIndex(3), LogIndex(2), LogIndex(2)}, Term(4)), LogIndex(0));
  EXPECT_EQ(NextCommitIndex(log, {LogIndex(3), LogIndex(3), LogIndex(1)}, Term(4)), LogIndex(3));
}

// Figure 2, word for word: an N > commitIndex, a majority of match >= N, log[N].term == term.
LogIndex Naive(const RaftLog& log, const std::vector<LogIndex>& durable, Term term) {
  LogIndex best = log.commit_index();
  for (LogIndex n = log.commit_index() + 1; n <= log.last_index(); ++n) {
    size_t have = 0;
    for (LogIndex d : durable) have += d >= n ? 1 : 0;
    if (have * 2 > durable.size() && log.At(n).term == term) best = n;
  }
  return best;
}

TEST(CommitRuleTest, AgreesWithTheWordsOfThePaper) {
  Random random(2);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint64_t> terms(1 + random.Below(8));
    uint64_t term = 1;
    for (uint64_t& t : terms) t = term += random.Below(3);
    RaftLog log = LogOf(terms);
    log.CommitTo(LogIndex(random.Below(terms.size() + 1)));
    std::vector<LogIndex> durable(1 + random.Below(7));
    for (LogIndex& d : durable) d = LogIndex(random.Below(terms.size() + 1));
    const Term own(term + random.Below(2));
    ASSERT_EQ(NextCommitIndex(log, durable, own), Naive(log, durable, own));
  }
}

}  // namespace
}  // namespace conclave::raft
