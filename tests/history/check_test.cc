#include "tests/history/check.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "common/random/random.h"
#include "tests/history/testing/generator.h"
#include "tests/history/testing/mutations.h"

namespace conclave::history {
namespace {

constexpr uint64_t kCleanSeeds = 100;
constexpr uint64_t kMutatedSeeds = 25;
// Of those seeds each mutation finds a place in so many at least.
constexpr uint64_t kApplied = 8;

std::string Text(const CheckReport& report) {
  std::string text;
  for (const Violation& violation : report.violations) {
    text += "rule " + std::to_string(violation.rule) + ": " + violation.message + "\n";
  }
  return text;
}

std::set<int> RulesOf(const CheckReport& report) {
  std::set<int> rules;
  for (const auto& [rule, count] : report.counts) rules.insert(rule);
  return rules;
}

TEST(Check, CleanHistoriesAreClean) {
  for (uint64_t seed = 1; seed <= kCleanSeeds; ++seed) {
    const History history = Generate({.seed = seed, .clients = 1 + static_cast<int>(seed % 6)});
    EXPECT_GT(history.operations(), 500u);
    const CheckReport report = Check(history);
    ASSERT_TRUE(report.clean()) << "seed " << seed << "\n" << Text(report);
  }
}

TEST(Check, AnEmptyHistoryIsClean) { EXPECT_TRUE(Check(History()).clean()); }

class Mutated : public testing::TestWithParam<Mutation> {
 protected:
  static const std::vector<History>& Clean() {
    static const std::vector<History>* const kHistories = [] {
      auto* histories = new std::vector<History>;
      for (uint64_t seed = 1; seed <= kMutatedSeeds; ++seed) {
        histories->push_back(Generate({.seed = seed, .lasts = 8'000}));
      }
      return histories;
    }();
    return *kHistories;
  }
};

TEST_P(Mutated, IsNoticedByTheExpectedRulesAlone) {
  const Mutation& mutation = GetParam();
  uint64_t applied = 0;
  for (uint64_t seed = 1; seed <= kMutatedSeeds; ++seed) {
    History history = Clean()[seed - 1];
    Random random = Random(seed).Fork(mutation.name);
    if (!mutation.apply(history, random)) continue;
    ++applied;
    const CheckReport report = Check(history);
    EXPECT_EQ(RulesOf(report), mutation.rules) << "seed " << seed << "\n" << Text(report);
  }
  EXPECT_GE(applied, kApplied);
}

std::string NameOf(const testing::TestParamInfo<Mutation>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Sends, Mutated, testing::ValuesIn(SendMutations()), NameOf);
INSTANTIATE_TEST_SUITE_P(Polls, Mutated, testing::ValuesIn(PollMutations()), NameOf);
INSTANTIATE_TEST_SUITE_P(Groups, Mutated, testing::ValuesIn(GroupMutations()), NameOf);
INSTANTIATE_TEST_SUITE_P(Metadata, Mutated, testing::ValuesIn(MetadataMutations()), NameOf);

}  // namespace
}  // namespace conclave::history
