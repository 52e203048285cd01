#include "client/consumer/fetch_buffer.h"

#include "common/record/batch_check.h"

namespace conclave {

void FetchBuffer::Reset(Offset position) {
  position_ = position;
  fetch_offset_ = position;
  batches_.clear();
  bytes_ = 0;
  reader_.reset();
}

absl::Status FetchBuffer::Append(const Buffer& batches, Offset next_offset) {
  const auto run = CheckBatchRun(batches);
  if (!run.ok()) return run.status();
  for (const PlacedBatch& placed : *run) {
    // A server that repeats itself is not believed twice.
    if (placed.header.next_offset() <= fetch_offset_) continue;
    const auto size = static_cast<size_t>(placed.header.size_bytes());
    batches_.push_back({batches.Sub(placed.position, size), placed.header});
    bytes_ += size;
    fetch_offset_ = placed.header.next_offset();
  }
  if (next_offset > fetch_offset_) fetch_offset_ = next_offset;
  return absl::OkStatus();
}

void FetchBuffer::Advance(Offset to, Taken& taken) {
  if (to <= position_) return;
  if (!taken.holes.empty() && taken.holes.back().second == position_) {
    taken.holes.back().second = to;
  } else {
    taken.holes.emplace_back(position_, to);
  }
  position_ = to;
}

void FetchBuffer::Take(size_t max, Taken& taken) {
  size_t count = 0;
  while (!batches_.empty() && count < max) {
    const Fetched& front = batches_.front();
    bool over = front.header.is_control();
    if (!over && reader_ == nullptr) {
      auto opened = BatchReader::Open(front.bytes);
      if (opened.ok()) {
        reader_ = std::make_shared<BatchReader>(*std::move(opened));
      } else {
        taken.malformed.push_back(opened.status());
        over = true;
      }
    }
    bool used = false;
    RecordView record;
    while (!over && count < max) {
      const auto more = reader_->Next(record);
      if (!more.ok()) taken.malformed.push_back(more.status());
      if (!more.ok() || !*more) {
        over = true;
      } else if (record.offset >= position_) {
        Advance(record.offset, taken);
        taken.records.push_back(record);
        ++position_;
        ++count;
        used = true;
      }
    }
    if (used) taken.keep.push_back(reader_);
    if (!over) return;
    Advance(front.header.next_offset(), taken);
    bytes_ -= front.bytes.size();
    reader_.reset();
    batches_.pop_front();
  }
  if (batches_.empty()) Advance(fetch_offset_, taken);
}

}  // namespace conclave
