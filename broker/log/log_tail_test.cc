#include "broker/log/log_tail.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace conclave {
namespace {

constexpr size_t kBatchBytes = 100;

// Batch number n has the offsets [3n, 3n + 3) and consists of one letter.
Buffer BatchOf(int n) { return Buffer(std::string(kBatchBytes, static_cast<char>('a' + n))); }
void Append(LogTail& tail, int n) { tail.Append(Offset(3 * n), Offset(3 * n + 3), BatchOf(n)); }
std::string Letters(const Buffer& batches) {
  std::string letters;
  const std::string bytes = batches.ToString();
  for (size_t at = 0; at < bytes.size(); at += kBatchBytes) letters += bytes[at];
  return letters;
}
std::string Read(const LogTail& tail, int64_t from, size_t max_bytes, int64_t limit) {
  const auto found = tail.Read(Offset(from), max_bytes, Offset(limit));
  return found ? Letters(found->batches) + "@" + ToString(found->next_offset) : "nothing";
}

TEST(LogTailTest, ReadsWhatWasAppendedLast) {
  TailBudget budget(10'000);
  LogTail tail(&budget);
  EXPECT_EQ(Read(tail, 0, 1000, 100), "nothing");
  for (int n = 1; n < 5; ++n) Append(tail, n);
  EXPECT_EQ(Read(tail, 2, 1000, 100), "nothing") << "it begins later";
  EXPECT_EQ(Read(tail, 3, 1000, 100), "bcde@15");
  EXPECT_EQ(Read(tail, 5, 1000, 100), "bcde@15") << "from the batch that holds it";
  EXPECT_EQ(Read(tail, 6, 250, 100), "cd@12");
  EXPECT_EQ(Read(tail, 6, 1, 100), "c@9") << "one at least";
  EXPECT_EQ(Read(tail, 6, 1000, 11), "c@9") << "whole batches below the limit";
  EXPECT_EQ(Read(tail, 6, 1000, 8), "@6");
  EXPECT_EQ(Read(tail, 15, 1000, 100), "nothing") << "at its end";
}

TEST(LogTailTest, FollowsTheLog) {
  TailBudget budget(10'000);
  LogTail tail(&budget);
  for (int n = 0; n < 5; ++n) Append(tail, n);
  tail.TruncateTo(Offset(7));
  EXPECT_EQ(Read(tail, 0, 1000, 100), "ab@6");
  EXPECT_EQ(budget.used(), 2 * kBatchBytes);
  Append(tail, 2);
  EXPECT_EQ(Read(tail, 0, 1000, 100), "abc@9");
  // Something else came between, that nobody told of.
  Append(tail, 5);
  EXPECT_EQ(Read(tail, 0, 1000, 100), "nothing");
  EXPECT_EQ(Read(tail, 15, 1000, 100), "f@18");
  tail.Clear();
  EXPECT_EQ(Read(tail, 15, 1000, 100), "nothing");
  EXPECT_EQ(budget.used(), 0u);
}

TEST(LogTailTest, TailsTogetherKeepToTheirBudget) {
  TailBudget budget(5 * kBatchBytes);
  LogTail one(&budget);
  auto other = std::make_unique<LogTail>(&budget);
  for (int n = 0; n < 3; ++n) Append(one, n);
  for (int n = 0; n < 3; ++n) Append(*other, n);
  EXPECT_EQ(budget.used(), 5 * kBatchBytes);
  EXPECT_EQ(Read(one, 0, 1000, 100), "nothing") << "the oldest went";
  EXPECT_EQ(Read(one, 3, 1000, 100), "bc@9");
  EXPECT_EQ(Read(*other, 0, 1000, 100), "abc@9");
  // What was cut is not counted twice when its turn comes.
  one.TruncateTo(Offset(3));
  EXPECT_EQ(budget.used(), 3 * kBatchBytes);
  for (int n = 1; n < 9; ++n) Append(one, n);
  EXPECT_EQ(budget.used(), 5 * kBatchBytes);
  EXPECT_EQ(Read(one, 12, 1000, 100), "efghi@27");
  other.reset();
  EXPECT_EQ(budget.used(), 5 * kBatchBytes);
  Append(one, 9);
  EXPECT_EQ(Read(one, 15, 1000, 100), "fghij@30");
}

TEST(LogTailTest, ABatchLargerThanTheBudgetIsNotKept) {
  TailBudget budget(kBatchBytes / 2);
  LogTail tail(&budget);
  Append(tail, 0);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(Read(tail, 0, 1000, 100), "nothing");
  LogTail none(nullptr);
  Append(none, 0);
  EXPECT_EQ(Read(none, 0, 1000, 100), "nothing");
}

}  // namespace
}  // namespace conclave
