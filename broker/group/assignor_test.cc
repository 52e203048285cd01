#include "broker/group/assignor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/random/random.h"

namespace conclave::group {
namespace {

TopicId Topic(uint64_t n) { return TopicId::FromRandom(1, n); }
PartitionId P(uint64_t topic, int32_t index) { return {Topic(topic), PartitionIndex(index)}; }

// Members "m1" to "mN", all of whom subscribe to all topics.
AssignmentProblem Alike(int members, const std::vector<int32_t>& topics) {
  AssignmentProblem problem;
  for (size_t t = 0; t < topics.size(); ++t) problem.topics[Topic(t)] = topics[t];
  for (int m = 1; m <= members; ++m) {
    Subscriber& subscriber = problem.members["m" + std::to_string(m)];
    for (const auto& [topic, partitions] : problem.topics) subscriber.topics.insert(topic);
  }
  return problem;
}

void TakeOver(AssignmentProblem& problem, const Assignment& assignment) {
  for (auto& [id, member] : problem.members) {
    const auto found = assignment.find(id);
    member.before = found == assignment.end() ? PartitionSet() : found->second;
  }
}

// How many partitions are with another member than before, of those whose member is still there.
size_t Moved(const AssignmentProblem& problem, const Assignment& after) {
  size_t moved = 0;
  for (const auto& [id, member] : problem.members) {
    for (const PartitionId& partition : member.before) {
      moved += after.at(id).contains(partition) ? 0 : 1;
    }
  }
  return moved;
}

std::pair<size_t, size_t> LeastAndMost(const Assignment& assignment) {
  size_t least = SIZE_MAX;
  size_t most = 0;
  for (const auto& [id, partitions] : assignment) {
    least = std::min(least, partitions.size());
    most = std::max(most, partitions.size());
  }
  return {least, most};
}

// Disjoint, and covers every topic that has a subscriber, by subscribers alone.
void CheckSound(const AssignmentProblem& problem, const Assignment& assignment) {
  ASSERT_EQ(assignment.size(), problem.members.size());
  std::map<PartitionId, std::string> holders;
  for (const auto& [id, partitions] : assignment) {
    for (const PartitionId& partition : partitions) {
      EXPECT_TRUE(holders.emplace(partition, id).second) << ToString(partition) << " twice";
      EXPECT_TRUE(problem.members.at(id).topics.contains(partition.topic));
    }
  }
  size_t wanted = 0;
  for (const auto& [topic, count] : problem.topics) {
    const bool read =
        std::any_of(problem.members.begin(), problem.members.end(),
                    [t = topic](const auto& m) { return m.second.topics.contains(t); });
    if (!read) continue;
    wanted += static_cast<size_t>(count);
    for (int32_t i = 0; i < count; ++i) {
      EXPECT_TRUE(holders.contains({topic, PartitionIndex(i)}));
    }
  }
  EXPECT_EQ(holders.size(), wanted);
}

TEST(AssignorTest, Names) {
  EXPECT_EQ(ParseAssignor(""), Assignor::kUniform);
  for (const Assignor assignor : {Assignor::kUniform, Assignor::kRange, Assignor::kSticky}) {
    EXPECT_EQ(ParseAssignor(AssignorName(assignor)), assignor);
  }
  EXPECT_EQ(ParseAssignor("Range"), std::nullopt);
}

TEST(AssignorTest, RangesMeetAtOneMember) {
  const Assignment assignment = Assign(Assignor::kRange, Alike(3, {7, 7}));
  for (uint64_t topic : {0, 1}) {
    EXPECT_TRUE(assignment.at("m1").contains(P(topic, 0)));
    EXPECT_TRUE(assignment.at("m1").contains(P(topic, 2)));
    EXPECT_TRUE(assignment.at("m2").contains(P(topic, 3)));
    EXPECT_TRUE(assignment.at("m2").contains(P(topic, 4)));
    EXPECT_TRUE(assignment.at("m3").contains(P(topic, 6)));
  }
  EXPECT_EQ(assignment.at("m1").size(), 6u);
}

TEST(AssignorTest, NobodyAndNothing) {
  for (const Assignor assignor : {Assignor::kUniform, Assignor::kRange, Assignor::kSticky}) {
    EXPECT_TRUE(Assign(assignor, Alike(0, {5})).empty());
    EXPECT_TRUE(Assign(assignor, Alike(2, {})).at("m2").empty());
    const Assignment more = Assign(assignor, Alike(5, {2}));
    EXPECT_EQ(LeastAndMost(more), (std::pair<size_t, size_t>(0, 1)));
  }
}

TEST(AssignorTest, OneMoreMemberTakesItsShareAndNothingElseMoves) {
  for (const Assignor assignor : {Assignor::kUniform, Assignor::kSticky}) {
    AssignmentProblem problem = Alike(3, {12});
    const Assignment before = Assign(assignor, problem);
    EXPECT_EQ(LeastAndMost(before), (std::pair<size_t, size_t>(4, 4)));
    AssignmentProblem with = Alike(4, {12});
    TakeOver(with, before);
    const Assignment after = Assign(assignor, with);
    EXPECT_EQ(LeastAndMost(after), (std::pair<size_t, size_t>(3, 3)));
    EXPECT_EQ(Moved(with, after), 3u) << AssignorName(assignor);

    TakeOver(problem, after);
    const Assignment again = Assign(assignor, problem);
    EXPECT_EQ(LeastAndMost(again), (std::pair<size_t, size_t>(4, 4)));
    EXPECT_EQ(Moved(problem, again), 0u) << AssignorName(assignor);
  }
}

TEST(AssignorTest, UniformSpreadsEachTopicAndTheTotals) {
  const AssignmentProblem problem = Alike(4, {5, 5, 6});
  const Assignment assignment = Assign(Assignor::kUniform, problem);
  EXPECT_EQ(LeastAndMost(assignment), (std::pair<size_t, size_t>(4, 4)));
  for (const auto& [id, partitions] : assignment) {
    for (const auto& [topic, count] : problem.topics) {
      const auto of_topic =
          std::count_if(partitions.begin(), partitions.end(),
                        [t = topic](const PartitionId& p) { return p.topic == t; });
      EXPECT_GE(of_topic, count / 4);
      EXPECT_LE(of_topic, count / 4 + 1);
    }
  }
}

TEST(AssignorTest, StickyGivesWhatFewCanTakeToThemFirst) {
  AssignmentProblem problem = Alike(3, {6, 3});
  problem.members["m2"].topics.erase(Topic(1));
  problem.members["m3"].topics.erase(Topic(1));
  const Assignment assignment = Assign(Assignor::kSticky, problem);
  CheckSound(problem, assignment);
  EXPECT_EQ(LeastAndMost(assignment), (std::pair<size_t, size_t>(3, 3)));
}

TEST(AssignorTest, WhatWasWithTwoIsWithOne) {
  AssignmentProblem problem = Alike(2, {4});
  problem.members["m1"].before = {P(0, 0), P(0, 1)};
  problem.members["m2"].before = {P(0, 1), P(0, 2), P(0, 9), P(7, 0)};
  for (const Assignor assignor : {Assignor::kUniform, Assignor::kSticky}) {
    const Assignment assignment = Assign(assignor, problem);
    CheckSound(problem, assignment);
    EXPECT_EQ(assignment.at("m1"), (PartitionSet{P(0, 0), P(0, 1)}));
  }
}

// Members and topics come and go at random; each result is the next one's past.
TEST(AssignorTest, RandomHistories) {
  for (const Assignor assignor : {Assignor::kUniform, Assignor::kRange, Assignor::kSticky}) {
    Random random(7);
    for (int history = 0; history < 60; ++history) {
      AssignmentProblem problem;
      const bool alike = history % 2 == 0;
      for (int step = 0; step < 25; ++step) {
        const uint64_t what = random.Below(4);
        const std::string member = "m" + std::to_string(random.Below(9));
        if (what == 0) problem.members.erase(member);
        if (what == 1) problem.members[member];
        if (what == 2) problem.topics[Topic(random.Below(5))] = static_cast<int>(random.Below(12));
        if (what == 3 && !problem.topics.empty()) problem.topics.erase(problem.topics.begin());
        for (auto& [id, subscriber] : problem.members) {
          if (!alike && random.Chance(0.5)) continue;
          subscriber.topics.clear();
          for (uint64_t t = 0; t < 5; ++t) {
            if (alike || random.Chance(0.6)) subscriber.topics.insert(Topic(t));
          }
        }
        const Assignment after = Assign(assignor, problem);
        CheckSound(problem, after);
        const auto [least, most] =
            after.empty() ? std::pair<size_t, size_t>() : LeastAndMost(after);
        if (alike && assignor != Assignor::kRange) {
          EXPECT_LE(most - least, 1u);
        }
        if (assignor == Assignor::kSticky) {
          // No single partition could be moved to anybody's good.
          for (const auto& [giver, held] : after) {
            for (const auto& [taker, taken] : after) {
              if (held.size() < taken.size() + 2) continue;
              for (const PartitionId& partition : held) {
                EXPECT_FALSE(problem.members[taker].topics.contains(partition.topic));
              }
            }
          }
        }
        TakeOver(problem, after);
        EXPECT_EQ(Assign(assignor, problem), after) << "what was given is not given again";
      }
    }
  }
}

}  // namespace
}  // namespace conclave::group
