#include "broker/log/log_tail.h"

#include <algorithm>
#include <utility>

namespace conclave {
namespace {

// A slice keeps alive the whole piece in which the network gave it: of a small batch that may be
// many times its size.
constexpr size_t kCopiedBelow = 4096;

}  // namespace

uint64_t TailBudget::Join(LogTail* tail) {
  tails_[++last_tail_] = tail;
  return last_tail_;
}

void TailBudget::Took(uint64_t id, uint64_t entry, size_t bytes) {
  used_ += bytes;
  order_.push_back({id, entry});
  while (used_ > bytes_ && !order_.empty()) {
    const Taken oldest = order_.front();
    order_.pop_front();
    const auto tail = tails_.find(oldest.tail);
    if (tail != tails_.end()) tail->second->DropFirst(oldest.entry);
  }
}

LogTail::LogTail(TailBudget* budget)
    : budget_(budget != nullptr && budget->bytes() > 0 ? budget : nullptr) {}

LogTail::~LogTail() {
  Clear();
  if (id_ != 0) budget_->Leave(id_);
}

void LogTail::Append(Offset base, Offset next, const Buffer& batch) {
  if (budget_ == nullptr) return;
  // Not before: logs are opened on other threads than the one that appends to all of them.
  if (id_ == 0) id_ = budget_->Join(this);
  if (!entries_.empty() && entries_.back().next != base) Clear();
  entries_.push_back(
      {++last_number_, base, next, batch.size() < kCopiedBelow ? Buffer(batch.ToString()) : batch});
  budget_->Took(id_, last_number_, batch.size());
}

void LogTail::TruncateTo(Offset end) {
  while (!entries_.empty() && entries_.back().next > end) {
    budget_->Freed(entries_.back().batch.size());
    entries_.pop_back();
  }
}

void LogTail::Clear() {
  for (const Entry& entry : entries_) budget_->Freed(entry.batch.size());
  entries_.clear();
}

// Entries go in order, so that one that is not the first is gone already.
void LogTail::DropFirst(uint64_t number) {
  if (entries_.empty() || entries_.front().number != number) return;
  budget_->Freed(entries_.front().batch.size());
  entries_.pop_front();
}

std::optional<LogTail::Found> LogTail::Read(Offset from, size_t max_bytes, Offset limit) const {
  if (entries_.empty() || from < entries_.front().base || from >= entries_.back().next) {
    return std::nullopt;
  }
  Found found{{}, from};
  auto entry =
      std::upper_bound(entries_.begin(), entries_.end(), from,
                       [](Offset at, const Entry& candidate) { return at < candidate.next; });
  for (; entry != entries_.end() && entry->next <= limit; ++entry) {
    const bool first = found.batches.empty();
    if (!first && found.batches.size() + entry->batch.size() > max_bytes) break;
    found.batches.Append(entry->batch);
    found.next_offset = entry->next;
  }
  return found;
}

}  // namespace conclave
