#include "client/producer/produce_batch.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/record/batch_reader.h"
#include "common/record/record_view.h"

namespace conclave {
namespace {

constexpr size_t kSmallBatchBytes = size_t{4} << 10;

// The same batch under other numbers, which the CRC covers.
Buffer Renumbered(const Buffer& batch, const ProducerIdentity& identity, int32_t base_sequence) {
  auto header = ParseBatchHeader(batch, 0);
  CHECK(header);
  header->producer_id = identity.id;
  header->producer_epoch = identity.epoch;
  header->base_sequence = base_sequence;
  std::string bytes(kBatchHeaderBytes, '\0');
  WriteBatchHeader(*header, bytes.data());
  Slice front = Slice::FromString(std::move(bytes));
  Buffer renumbered(front);
  renumbered.Append(batch.Sub(kBatchHeaderBytes, batch.size() - kBatchHeaderBytes));
  StoreBigEndian(ComputeBatchCrc(renumbered), front.mutable_data() + kBatchCrcAt);
  return renumbered;
}

}  // namespace

bool ProduceBatch::HasRoomFor(const RecordView& record, size_t batch_bytes) const {
  return waiting_.empty() ||
         builder_.uncompressed_bytes() + BatchBuilder::RecordBytesAtMost(record) <= batch_bytes;
}

void ProduceBatch::Add(const RecordView& record, size_t buffer_bytes, DeliveryDone&& done,
                       size_t expected_bytes) {
  // Once it is no batch of a few records: else it would grow by copying itself time and again.
  const size_t bytes = builder_.uncompressed_bytes();
  if (bytes >= kSmallBatchBytes) {
    builder_.Reserve(expected_bytes);
    if (expected_bytes > 2 * bytes && waiting_.size() == waiting_.capacity()) {
      // If those to come are as large as those that are there.
      waiting_.reserve(waiting_.size() * expected_bytes / bytes);
    }
  }
  builder_.Add(record);
  waiting_.push_back({std::move(done), record.timestamp_ms, buffer_bytes});
  buffer_bytes_ += buffer_bytes;
}

absl::Status ProduceBatch::Number(const ProducerIdentity& identity, int32_t base_sequence) {
  const int32_t sequence = identity.valid() ? base_sequence : -1;
  if (!encoded_.empty()) {
    encoded_ = Renumbered(encoded_, identity, sequence);
  } else {
    builder_.SetProducer(identity.id, identity.epoch, sequence);
    auto encoded = builder_.Finish();
    if (!encoded.ok()) return encoded.status();
    encoded_ = *std::move(encoded);
  }
  identity_ = identity;
  base_sequence_ = sequence;
  return absl::OkStatus();
}

absl::StatusOr<std::pair<std::shared_ptr<ProduceBatch>, std::shared_ptr<ProduceBatch>>>
ProduceBatch::Split() {
  CHECK_GE(count(), 2);
  auto reader = BatchReader::Open(encoded_);
  if (!reader.ok()) return reader.status();
  auto first = std::make_shared<ProduceBatch>(codec_, created_, deadline_);
  auto second = std::make_shared<ProduceBatch>(codec_, created_, deadline_);
  const size_t half = waiting_.size() / 2;
  RecordView record;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    const auto more = reader->Next(record);
    if (!more.ok()) return more.status();
    CHECK(*more);
    (i < half ? *first : *second)
        .Add(record, waiting_[i].buffer_bytes, std::move(waiting_[i].done));
  }
  for (const auto& part : {first, second}) {
    part->state = State::kWaiting;
    part->last_error = last_error;
    part->generation = generation;
  }
  const int32_t middle =
      identity_.valid() ? SequenceAfter(base_sequence_, first->count()) : base_sequence_;
  if (absl::Status status = first->Number(identity_, base_sequence_); !status.ok()) return status;
  if (absl::Status status = second->Number(identity_, middle); !status.ok()) return status;
  return std::pair(std::move(first), std::move(second));
}

void ProduceBatch::Complete(const TopicPartition& partition, const absl::Status& status,
                            Offset base_offset) {
  Delivery delivery{status, partition, base_offset, -1, duplicate};
  std::vector<Waiting> waiting = std::move(waiting_);
  waiting_.clear();
  for (Waiting& one : waiting) {
    delivery.timestamp_ms = one.timestamp_ms;
    if (one.done) one.done(delivery);
    if (base_offset.value() >= 0) ++delivery.offset;
  }
}

}  // namespace conclave
