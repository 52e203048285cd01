// What a flush policy excuses, and what only larger histories show.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/history/check.h"
#include "tests/history/history.h"

namespace conclave::history {
namespace {

std::set<int> RulesOf(const CheckReport& report) {
  std::set<int> rules;
  for (const auto& [rule, count] : report.counts) rules.insert(rule);
  return rules;
}

class Eras : public testing::Test {
 protected:
  template <class Kind>
  Kind Done(const std::string& process, Time invoke, Time complete) {
    Kind operation;
    operation.process = history_.NameOf(process);
    operation.invoke = invoke;
    operation.complete = complete;
    operation.outcome = Outcome::kOk;
    return operation;
  }
  void Sent(const std::string& value, int64_t offset, Time at) {
    auto send = Done<Send>("producer", at, at + 5);
    send.key = key_;
    send.value = value;
    send.offset = offset;
    history_.Add(send);
  }
  void Polled(const std::vector<Record>& records, Time at) {
    auto poll = Done<Poll>("consumer", at, at + 5);
    poll.key = key_;
    poll.records = records;
    history_.Add(poll);
  }
  void ReadInTheEnd(const std::vector<Record>& records, Time at) {
    auto read = Done<FinalRead>("final", at, at + 5);
    read.key = key_;
    read.records = records;
    history_.Add(read);
  }
  void LostPower(const std::string& node, Time from, Time until) {
    history_.Add(Done<PowerLoss>(node, from, until));
  }
  std::set<int> Replicated() {
    return RulesOf(Check(history_, {.flush_policy = CheckOptions::FlushPolicy::kReplicated}));
  }

  // Two records are acknowledged and polled; then the second is gone, and another in its place.
  void LoseTheSecond() {
    Sent("a", 0, 0);
    Sent("b", 1, 10);
    Polled({{0, "a"}, {1, "b"}}, 20);
    Sent("c", 1, 200);
    Polled({{1, "c"}}, 220);
    ReadInTheEnd({{0, "a"}, {1, "c"}}, 300);
  }

  History history_;
  const KeyIndex key_ = history_.KeyOf("t", 0);
};

TEST_F(Eras, WithSyncsNoLossOfPowerExcusesAnything) {
  LoseTheSecond();
  LostPower("node-0", 100, 150);
  LostPower("node-1", 100, 150);
  EXPECT_EQ(RulesOf(Check(history_)), (std::set<int>{1, 4, 7, 11}));
}

TEST_F(Eras, AsManyLossesAtOnceAsTheMinimumIsrExcuseWhatWasBefore) {
  LoseTheSecond();
  LostPower("node-0", 100, 150);
  LostPower("node-1", 120, 170);
  EXPECT_EQ(Replicated(), std::set<int>{});
}

TEST_F(Eras, OneLossAfterTheOtherExcusesNothing) {
  LoseTheSecond();
  LostPower("node-0", 100, 120);
  LostPower("node-1", 130, 150);
  EXPECT_EQ(Replicated(), (std::set<int>{1, 4, 7, 11}));
}

TEST_F(Eras, OneNodeTwiceIsOneNode) {
  LoseTheSecond();
  LostPower("node-0", 100, 150);
  LostPower("node-0", 120, 170);
  EXPECT_EQ(Replicated(), (std::set<int>{1, 4, 7, 11}));
}

TEST_F(Eras, WhatWasAcknowledgedAfterTheLossHasToBeThere) {
  LoseTheSecond();
  LostPower("node-0", 100, 150);
  LostPower("node-1", 120, 170);
  Sent("d", 2, 230);
  EXPECT_EQ(Replicated(), std::set<int>{4});
}

TEST_F(Eras, WhatWasUnderWayAtTheLossProvesNothing) {
  Sent("a", 0, 0);
  auto send = Done<Send>("producer", 90, 180);
  send.key = key_;
  send.value = "b";
  send.offset = 1;
  history_.Add(send);
  LostPower("node-0", 100, 150);
  LostPower("node-1", 120, 170);
  ReadInTheEnd({{0, "a"}}, 300);
  EXPECT_EQ(Replicated(), std::set<int>{});
}

TEST_F(Eras, PhantomsAreNeverExcused) {
  LoseTheSecond();
  LostPower("node-0", 100, 150);
  LostPower("node-1", 120, 170);
  Polled({{2, "unsent"}}, 230);
  EXPECT_EQ(Replicated(), (std::set<int>{5, 11}));
}

TEST_F(Eras, ACommittedOffsetMayBeLostWithTheRest) {
  const auto commit = [&](int64_t offset, Time at) {
    auto commit = Done<Commit>("committer", at, at + 5);
    commit.group = history_.NameOf("g");
    commit.key = key_;
    commit.offset = offset;
    history_.Add(commit);
  };
  const auto read = [&](int64_t offset, Time at) {
    auto read = Done<CommittedRead>("reader", at, at + 5);
    read.group = history_.NameOf("g");
    read.key = key_;
    read.offset = offset;
    history_.Add(read);
  };
  commit(1, 0);
  commit(2, 10);
  read(2, 20);
  LostPower("node-0", 100, 150);
  LostPower("node-1", 120, 170);
  read(1, 200);
  EXPECT_EQ(Replicated(), std::set<int>{});
  commit(3, 210);
  read(1, 220);
  EXPECT_EQ(Replicated(), std::set<int>{12});
}

// A read shows that a commit of which nobody knew had taken effect.
TEST_F(Eras, WhatWasReadDoesNotGoBack) {
  for (const int64_t offset : {1, 2}) {
    auto commit = Done<Commit>("committer", offset * 10, offset * 10 + 5);
    commit.group = history_.NameOf("g");
    commit.key = key_;
    commit.offset = offset;
    if (offset == 2) commit.outcome = Outcome::kInfo;
    history_.Add(commit);
  }
  for (const auto& [offset, at] : {std::pair<int64_t, Time>{2, 30}, {1, 40}}) {
    auto read = Done<CommittedRead>("reader", at, at + 5);
    read.group = history_.NameOf("g");
    read.key = key_;
    read.offset = offset;
    history_.Add(read);
  }
  const CheckReport report = Check(history_);
  ASSERT_EQ(report.violations.size(), 1u);
  EXPECT_EQ(report.violations[0].rule, 12);
  EXPECT_EQ(report.violations[0].message,
            "log t-0, group g: reader at 40..45 read the committed offset 1, after 2 was committed "
            "by committer at 20..25");
}

TEST_F(Eras, ASkipIsOneUntilTheLogStartPassesIt) {
  for (int64_t i = 0; i < 10; ++i) Sent("v" + std::to_string(i), i, i * 10);
  const auto start = [&](int64_t offset, Time at) {
    auto start = Done<LogStart>("broker", at, at + 1);
    start.key = key_;
    start.offset = offset;
    history_.Add(start);
  };
  start(3, 150);
  Polled({{3, "v3"}}, 160);
  start(6, 200);
  start(8, 300);
  // Between two that were told the log may begin at either.
  Polled({{6, "v6"}}, 170);
  EXPECT_EQ(RulesOf(Check(history_)), std::set<int>{});
  Polled({{8, "v8"}}, 180);
  EXPECT_EQ(RulesOf(Check(history_)), std::set<int>{7});
}

TEST_F(Eras, ViolationsBeyondTheLimitAreCounted) {
  for (int i = 0; i < 50; ++i) Polled({{i, "unsent " + std::to_string(i)}}, i);
  const CheckReport report = Check(history_, {.max_violations_per_rule = 7});
  EXPECT_EQ(report.violations.size(), 7u);
  EXPECT_EQ(report.counts.at(5), 50u);
  EXPECT_EQ(report.violations[0].message,
            "log t-0: value \"unsent 0\", which nobody sent, was seen by consumer at 0..5 at "
            "offset 0");
}

// What would take hours if any rule compared everything with everything.
TEST_F(Eras, AMillionOperations) {
  constexpr int64_t kRecords = 400'000;
  for (int64_t i = 0; i < kRecords; ++i) Sent("v" + std::to_string(i), i, i * 3);
  for (int64_t i = 0; i < kRecords; ++i) {
    Polled({{i, "v" + std::to_string(i)}}, kRecords * 3 + i * 10);
  }
  for (int64_t i = 0; i < 100'000; ++i) {
    auto commit = Done<Commit>("committer", i * 10, i * 10 + 5);
    commit.group = history_.NameOf("g");
    commit.key = key_;
    commit.offset = i;
    history_.Add(commit);
    auto read = Done<CommittedRead>("reader", i * 10 + 6, i * 10 + 9);
    read.group = commit.group;
    read.key = key_;
    read.offset = i;
    history_.Add(read);
  }
  EXPECT_GE(history_.operations(), 1'000'000u);
  EXPECT_EQ(RulesOf(Check(history_)), std::set<int>{});
}

}  // namespace
}  // namespace conclave::history
