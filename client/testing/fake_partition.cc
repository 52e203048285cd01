#include "client/testing/fake_partition.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/record/batch_check.h"
#include "common/record/batch_reader.h"

namespace conclave::client_testing {
namespace {

void Refuse(v1::ProducePartitionResult& result, v1::ErrorCode code, const std::string& message) {
  result.mutable_error()->set_code(code);
  result.mutable_error()->set_message(message);
  result.set_base_offset(-1);
}

}  // namespace

v1::ErrorCode FakePartition::Classify(const BatchHeader& header,
                                      v1::ProducePartitionResult& result) const {
  if (!header.has_producer()) return v1::NONE;
  const auto found = producers_.find(header.producer_id);
  if (found == producers_.end()) {
    return header.base_sequence == 0 ? v1::NONE : v1::UNKNOWN_PRODUCER_ID;
  }
  const Producer& producer = found->second;
  if (header.producer_epoch < producer.epoch) return v1::INVALID_PRODUCER_EPOCH;
  if (header.producer_epoch > producer.epoch) {
    return header.base_sequence == 0 ? v1::NONE : v1::OUT_OF_ORDER_SEQUENCE_NUMBER;
  }
  for (const Remembered& batch : producer.last_five) {
    if (batch.first == header.base_sequence && batch.last == header.last_sequence()) {
      result.set_duplicate(true);
      result.set_base_offset(batch.offset.value());
      return v1::NONE;
    }
  }
  const int32_t expected = SequenceAfter(producer.last_five.back().last, 1);
  return header.base_sequence == expected ? v1::NONE : v1::OUT_OF_ORDER_SEQUENCE_NUMBER;
}

void FakePartition::Append(const Buffer& batch, v1::ProducePartitionResult& result) {
  ProduceLimits limits;
  limits.max_batch_bytes = size_t{1} << 20;
  const auto header = CheckProduced(batch, limits);
  if (!header.ok())
    return Refuse(result, v1::CORRUPT_MESSAGE, std::string(header.status().message()));
  const v1::ErrorCode code = Classify(*header, result);
  if (code != v1::NONE) return Refuse(result, code, "refused by the fake partition");
  if (result.duplicate()) return;
  Batch stored{*header, PatchBatch(batch, end_, leader_epoch)};
  stored.header.base_offset = end_;
  stored.header.leader_epoch = leader_epoch;
  result.set_base_offset(end_.value());
  if (header->has_producer()) {
    Producer& producer = producers_[header->producer_id];
    if (producer.epoch != header->producer_epoch) producer.last_five.clear();
    producer.epoch = header->producer_epoch;
    producer.last_five.push_back({header->base_sequence, header->last_sequence(), end_});
    if (producer.last_five.size() > 5) producer.last_five.pop_front();
  }
  end_ = stored.header.next_offset();
  batches_.push_back(std::move(stored));
}

void FakePartition::HoldHighWatermark(Offset at) {
  held_ = true;
  high_watermark_ = at;
}

std::string FakePartition::Read(Offset from, size_t max_bytes, Offset& next) const {
  std::string bytes;
  next = from;
  for (const Batch& batch : batches_) {
    if (batch.header.next_offset() <= from) continue;
    if (batch.header.next_offset() > high_watermark()) break;
    if (!bytes.empty() && bytes.size() + batch.bytes.size() > max_bytes) break;
    bytes += batch.bytes.ToString();
    next = batch.header.next_offset();
  }
  return bytes;
}

std::pair<Offset, int64_t> FakePartition::Find(int64_t timestamp_ms) const {
  for (const Batch& batch : batches_) {
    auto reader = BatchReader::Open(batch.bytes);
    CHECK(reader.ok()) << reader.status();
    RecordView record;
    for (;;) {
      const auto more = reader->Next(record);
      CHECK(more.ok()) << more.status();
      if (!*more) break;
      if (record.offset >= log_start_ && record.timestamp_ms >= timestamp_ms) {
        return {record.offset, record.timestamp_ms};
      }
    }
  }
  return {Offset(-1), -1};
}

std::pair<LeaderEpoch, Offset> FakePartition::EndOfEpoch(LeaderEpoch asked) const {
  LeaderEpoch found(-1);
  for (const Batch& batch : batches_) {
    if (batch.header.leader_epoch > asked) {
      return {found, std::max(batch.header.base_offset, log_start_)};
    }
    found = batch.header.leader_epoch;
  }
  return {found, end_};
}

void FakePartition::DeleteBefore(Offset offset) {
  log_start_ = std::max(log_start_, offset);
  std::erase_if(batches_, [&](const Batch& b) { return b.header.next_offset() <= log_start_; });
}

void FakePartition::TruncateTo(Offset offset) {
  std::erase_if(batches_, [&](const Batch& b) { return b.header.base_offset >= offset; });
  end_ = std::min(end_, offset);
  for (auto it = producers_.begin(); it != producers_.end();) {
    std::erase_if(it->second.last_five, [&](const Remembered& r) { return r.offset >= offset; });
    it = it->second.last_five.empty() ? producers_.erase(it) : std::next(it);
  }
}

std::vector<std::string> FakePartition::Values() const {
  std::vector<std::string> values;
  for (const Batch& batch : batches_) {
    auto reader = BatchReader::Open(batch.bytes);
    CHECK(reader.ok()) << reader.status();
    RecordView record;
    for (;;) {
      const auto more = reader->Next(record);
      CHECK(more.ok()) << more.status();
      if (!*more) break;
      values.emplace_back(record.value.value_or("(null)"));
    }
  }
  return values;
}

}  // namespace conclave::client_testing
