#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCE_BATCH_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/producer/producer_record.h"
#include "common/buffer/buffer.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {

// Who sends (KIP-98). Sequences count from 0 in each epoch.
struct ProducerIdentity {
  ProducerId id{-1};
  ProducerEpoch epoch{-1};

  bool valid() const { return id.value() >= 0; }
  friend bool operator==(const ProducerIdentity&, const ProducerIdentity&) = default;
};

// Records of one partition that are sent together, and who waits for them. Not thread-safe.
class ProduceBatch {
 public:
  enum class State {
    kQueued,    // Takes records, or waits for its turn; never sent.
    kWaiting,   // Numbered; to be sent again.
    kInFlight,  // A request with it is under way.
    kDone,      // Stored, failed, or given up.
  };

  ProduceBatch(Compression codec, MonotonicTime created, MonotonicTime deadline)
      : codec_(codec), created_(created), deadline_(deadline), builder_(codec) {}

  // Whether the record may join; the first always may.
  bool HasRoomFor(const RecordView& record, size_t batch_bytes) const;
  // `expected_bytes`: how large the batch may come to be.
  void Add(const RecordView& record, size_t buffer_bytes, DeliveryDone&& done,
           size_t expected_bytes = 0);

  // Writes the batch under this identity and sequence, or without any where it is not valid.
  // Called again, only the numbers change. An error is the codec's.
  absl::Status Number(const ProducerIdentity& identity, int32_t base_sequence);

  // Two batches of half the records each, under the same numbers. It has two records at least.
  absl::StatusOr<std::pair<std::shared_ptr<ProduceBatch>, std::shared_ptr<ProduceBatch>>> Split();

  // Tells everybody. `base_offset` -1: not known.
  void Complete(const TopicPartition& partition, const absl::Status& status, Offset base_offset);

  int32_t count() const { return static_cast<int32_t>(waiting_.size()); }
  size_t encoded_bytes() const {
    return encoded_.empty() ? builder_.uncompressed_bytes() : encoded_.size();
  }
  size_t uncompressed_bytes() const { return builder_.uncompressed_bytes(); }
  // What its records take of the producer's buffer.
  size_t buffer_bytes() const { return buffer_bytes_; }
  MonotonicTime created() const { return created_; }
  MonotonicTime deadline() const { return deadline_; }
  int32_t base_sequence() const { return base_sequence_; }
  int32_t next_sequence() const { return SequenceAfter(base_sequence_, count()); }
  // As it is sent, once it is numbered.
  const Buffer& encoded() const { return encoded_; }

  // --- What PartitionQueue keeps of it

  State state = State::kQueued;
  // Its owner's; counts flushes.
  uint64_t generation = 0;
  // Everything before it was acknowledged when it was last sent.
  bool sent_as_first = false;
  // An attempt had an outcome that nobody knows: the batch may be stored.
  bool uncertain = false;
  // The error of that attempt, else of the last one.
  absl::Status last_error;
  // Its time ran out while it was in flight: nobody waits for it any more.
  bool abandoned = false;
  // Given up, so that its numbers may be missing from the log.
  bool hole = false;
  // What it will be completed with, once those before it are.
  std::optional<absl::Status> result;
  Offset base_offset{-1};
  // As Delivery says.
  bool duplicate = false;

 private:
  struct Waiting {
    DeliveryDone done;
    int64_t timestamp_ms;
    size_t buffer_bytes;
  };

  const Compression codec_;
  const MonotonicTime created_;
  const MonotonicTime deadline_;
  BatchBuilder builder_;
  Buffer encoded_;
  std::vector<Waiting> waiting_;
  size_t buffer_bytes_ = 0;
  ProducerIdentity identity_;
  int32_t base_sequence_ = -1;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCE_BATCH_H_
