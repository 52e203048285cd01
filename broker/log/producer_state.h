#ifndef CONCLAVE_BROKER_LOG_PRODUCER_STATE_H_
#define CONCLAVE_BROKER_LOG_PRODUCER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"

namespace conclave {

// A batch of an idempotent producer that is in the log.
struct RememberedBatch {
  ProducerEpoch epoch;
  int32_t first_sequence = 0;
  int32_t last_sequence = 0;
  Offset first_offset;
  Offset last_offset;

  friend bool operator==(const RememberedBatch&, const RememberedBatch&) = default;
};

struct Classification {
  enum class Kind { kNew, kDuplicate, kOutOfOrder, kFenced, kUnknownProducer };
  Kind kind = Kind::kNew;
  // Of the batch that is in the log already; duplicates alone.
  Offset duplicate_of;
  Offset duplicate_last;
  // OK for new ones and duplicates; else OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH or
  // UNKNOWN_PRODUCER_ID, naming what came and what was expected.
  absl::Status status;
};

// Idempotence of one partition (KIP-98): the last five batches of each producer. Follows from the
// batches in the log, and outlives those that retention took. Not thread-safe.
class ProducerState {
 public:
  static constexpr size_t kRememberedBatches = 5;

  // Of the producers beyond that, those whose last batch is oldest are forgotten.
  explicit ProducerState(size_t max_producers = 100'000) : max_producers_(max_producers) {}

  // What appending the batch would be. A batch without producer id is new.
  Classification Classify(const BatchHeader& header) const;

  // A batch was appended, at its header's offset. Nothing is checked: what is in the log counts.
  void Note(const BatchHeader& header);

  // Forgets batches at `end` and later. Returns true if some producer may now remember fewer than
  // the log still has: then Note all batches of the log again, from its start, between
  // BeginReplay and EndReplay.
  bool TruncateTo(Offset end);

  // The batches that a log holds from `from` on, its first, will be noted again. Kept is what is
  // remembered of those below, which retention took; the rest may never have been in this log: what
  // was remembered may be from before a truncation.
  void BeginReplay(Offset from);
  void EndReplay();

  void Clear() { producers_.clear(); }

  struct Producer {
    // Oldest first; one at least.
    std::vector<RememberedBatch> batches;
    // An older one was forgotten because of their number.
    bool forgot = false;

    friend bool operator==(const Producer&, const Producer&) = default;
  };
  using Producers = std::map<ProducerId, Producer>;
  const Producers& producers() const { return producers_; }
  // What is remembered of batches below `end`: all that a log which begins there does not show.
  Producers Below(Offset end) const;
  // From a snapshot.
  void Restore(ProducerId id, Producer producer);

 private:
  void Bound();

  const size_t max_producers_;
  Producers producers_;
  Producers before_replay_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_PRODUCER_STATE_H_
