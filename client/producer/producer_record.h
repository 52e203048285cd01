#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCER_RECORD_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCER_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "client/base/topic_partition.h"
#include "common/error/error.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"

namespace conclave {

// A record to be sent. Null and empty differ in key, value and headers' values.
struct ProducerRecord {
  std::string topic;
  // Absent: chosen by the key, or by the producer where there is none.
  std::optional<PartitionIndex> partition;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  // Milliseconds since 1970. Absent: the time of Send.
  std::optional<int64_t> timestamp_ms;
};

// What became of a record.
struct Delivery {
  // OK: stored as the acks of the producer demand. Otherwise why it was given up. Whether an error
  // leaves it open if the record was stored is told by its code alone; see outcome_unknown().
  absl::Status status;
  // Partition -1: none was chosen before it failed.
  TopicPartition partition;
  // -1: not stored, not known, or acks none.
  Offset offset{-1};
  // Of the record, as it was stored.
  int64_t timestamp_ms = -1;
  // An attempt whose answer was lost had stored it; the one that was answered found it there
  // (KIP-98).
  bool duplicate = false;

  // True: the record may be in the log, or may come to be there; sending it again may double it.
  // False with an error: it is certainly not there and never will be.
  bool outcome_unknown() const { return !status.ok() && !HasNoEffect(ErrorCodeOf(status)); }
};

using DeliveryDone = absl::AnyInvocable<void(const Delivery&)>;

// What a record takes of the producer's buffer, in bytes: its content and what it costs to keep.
size_t BufferBytes(const ProducerRecord& record);

// Shows the record, which outlives it. `now_ms` stands for a timestamp that it has not.
RecordView ViewOf(const ProducerRecord& record, int64_t now_ms);

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCER_RECORD_H_
