#ifndef CONCLAVE_CLIENT_CONSUMER_OFFSET_LOOKUP_H_
#define CONCLAVE_CLIENT_CONSUMER_OFFSET_LOOKUP_H_

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "client/metadata/metadata_cache.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/fetch.pb.h"

namespace conclave {

struct OffsetQuery {
  TopicPartition partition;
  v1::OffsetSpec spec = v1::OFFSET_SPEC_LATEST;
  // Milliseconds since 1970; for OFFSET_SPEC_TIMESTAMP.
  int64_t timestamp_ms = 0;
};

struct OffsetAnswer {
  // -1: no record is that late.
  Offset offset{-1};
  int64_t timestamp_ms = -1;
  // The partition's bounds at its leader.
  Offset log_start;
  Offset high_watermark;
  Offset log_end;
  // Of the leader that answered.
  LeaderEpoch leader_epoch{-1};
};

// Asks the leaders for offsets, together what goes to one of them, until they answer or the time
// is over. Everything runs on the executor; all that is given outlives it.
class OffsetLookup {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<OffsetAnswer>)>;

  OffsetLookup(MetadataCache& metadata, Transport& transport, Executor& executor,
               const Random& random);
  ~OffsetLookup();

  // An error is final, or the last one before the deadline.
  void Ask(OffsetQuery query, MonotonicTime deadline, Done done);
  // The metadata has changed.
  void Wake();

 private:
  struct Pending {
    OffsetQuery query;
    MonotonicTime deadline;
    Done done;
    bool asking = false;
    MonotonicTime not_before;
    Backoff pause;
    absl::Status last_error;
  };
  using Entry = std::list<Pending>::iterator;

  void Step();
  void Answered(const std::vector<Entry>& entries, absl::StatusOr<v1::ListOffsetsResponse> answer);
  void Refused(Entry entry, const absl::Status& status);
  void Finish(Entry entry, absl::StatusOr<OffsetAnswer> answer);

  MetadataCache& metadata_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  std::list<Pending> pending_;
  bool step_posted_ = false;
  TimerId timer_;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_CONSUMER_OFFSET_LOOKUP_H_
