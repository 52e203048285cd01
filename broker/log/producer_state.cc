#include "broker/log/producer_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

Classification Refuse(Classification::Kind kind, v1::ErrorCode code, const BatchHeader& header,
                      const std::string& why) {
  Classification result;
  result.kind = kind;
  result.status = MakeError(
      code, absl::StrCat("producer ", header.producer_id.value(), " (epoch ",
                         header.producer_epoch.value(), ") sent sequences ", header.base_sequence,
                         " to ", header.last_sequence(), "; ", why));
  return result;
}

}  // namespace

Classification ProducerState::Classify(const BatchHeader& header) const {
  using Kind = Classification::Kind;
  if (!header.has_producer()) return {};
  const auto found = producers_.find(header.producer_id);
  if (found == producers_.end()) {
    if (header.base_sequence == 0) return {};
    return Refuse(Kind::kUnknownProducer, v1::UNKNOWN_PRODUCER_ID, header,
                  "nothing of it is remembered here, so it must start at 0: begin a new epoch with "
                  "InitProducerId");
  }
  const RememberedBatch& last = found->second.batches.back();
  if (header.producer_epoch < last.epoch) {
    return Refuse(Kind::kFenced, v1::INVALID_PRODUCER_EPOCH, header,
                  absl::StrCat("a newer instance with epoch ", last.epoch.value(),
                               " has taken its place: stop this one"));
  }
  if (header.producer_epoch > last.epoch) {
    if (header.base_sequence == 0) return {};
    return Refuse(Kind::kOutOfOrder, v1::OUT_OF_ORDER_SEQUENCE_NUMBER, header,
                  "a new epoch starts at 0");
  }
  for (const RememberedBatch& batch : found->second.batches) {
    if (batch.epoch == header.producer_epoch && batch.first_sequence == header.base_sequence &&
        batch.last_sequence == header.last_sequence()) {
      Classification result;
      result.kind = Kind::kDuplicate;
      result.duplicate_of = batch.first_offset;
      result.duplicate_last = batch.last_offset;
      return result;
    }
  }
  const int32_t expected = SequenceAfter(last.last_sequence, 1);
  if (header.base_sequence == expected) return {};
  return Refuse(Kind::kOutOfOrder, v1::OUT_OF_ORDER_SEQUENCE_NUMBER, header,
                absl::StrCat(expected, " was expected, and it is no repeat of its last ",
                             found->second.batches.size(), " batches"));
}

void ProducerState::Note(const BatchHeader& header) {
  if (!header.has_producer() || header.is_control()) return;
  Producer& producer = producers_[header.producer_id];
  producer.batches.push_back({header.producer_epoch, header.base_sequence, header.last_sequence(),
                              header.base_offset, header.last_offset()});
  if (producer.batches.size() > kRememberedBatches) {
    producer.batches.erase(producer.batches.begin());
    producer.forgot = true;
  }
  if (producers_.size() > max_producers_) Bound();
}

// A tenth at once, so that the search for the oldest is not each batch's.
void ProducerState::Bound() {
  std::vector<Offset> ends;
  ends.reserve(producers_.size());
  for (const auto& [id, producer] : producers_) ends.push_back(producer.batches.back().last_offset);
  const auto cut = ends.begin() + static_cast<std::ptrdiff_t>(std::min(
                                      ends.size() - 1, ends.size() - max_producers_ * 9 / 10));
  std::nth_element(ends.begin(), cut, ends.end());
  const Offset oldest_kept = *cut;
  std::erase_if(producers_, [&](const auto& entry) {
    return entry.second.batches.back().last_offset < oldest_kept;
  });
}

bool ProducerState::TruncateTo(Offset end) {
  bool incomplete = false;
  for (auto it = producers_.begin(); it != producers_.end();) {
    Producer& producer = it->second;
    const size_t before = producer.batches.size();
    std::erase_if(producer.batches,
                  [&](const RememberedBatch& batch) { return batch.last_offset >= end; });
    if (producer.batches.size() != before && producer.forgot) incomplete = true;
    it = producer.batches.empty() ? producers_.erase(it) : std::next(it);
  }
  return incomplete;
}

ProducerState::Producers ProducerState::Below(Offset end) const {
  Producers below = producers_;
  for (auto it = below.begin(); it != below.end();) {
    std::erase_if(it->second.batches,
                  [&](const RememberedBatch& batch) { return batch.last_offset >= end; });
    it = it->second.batches.empty() ? below.erase(it) : std::next(it);
  }
  return below;
}

void ProducerState::BeginReplay(Offset from) {
  before_replay_ = Below(from);
  producers_.clear();
}

void ProducerState::EndReplay() {
  for (auto& [id, old] : before_replay_) {
    Producer& now = producers_[id];
    std::vector<RememberedBatch> all = std::move(old.batches);
    all.insert(all.end(), now.batches.begin(), now.batches.end());
    now.forgot = now.forgot || old.forgot || all.size() > kRememberedBatches;
    if (all.size() > kRememberedBatches) all.erase(all.begin(), all.end() - kRememberedBatches);
    now.batches = std::move(all);
  }
  before_replay_.clear();
}

void ProducerState::Restore(ProducerId id, Producer producer) {
  producers_[id] = std::move(producer);
}

}  // namespace conclave
