#ifndef CONCLAVE_CLIENT_PRODUCER_BATCH_LANE_H_
#define CONCLAVE_CLIENT_PRODUCER_BATCH_LANE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "client/producer/produce_batch.h"
#include "client/producer/producer_record.h"
#include "common/record/batch_header.h"
#include "common/record/record_view.h"
#include "common/types/time.h"

namespace conclave {

// The records of one partition that were never sent, in batches: the last one takes more. Not
// thread-safe.
class BatchLane {
 public:
  struct Options {
    size_t batch_bytes = size_t{512} << 10;
    Compression codec = Compression::kNone;
    Duration linger;
    Duration delivery_timeout = Duration::Seconds(120);
  };

  // True if the record began a batch. `sent_at`, asked only then: from when its time counts. A
  // batch keeps the generation of its first record.
  bool Add(const RecordView& record, size_t buffer_bytes, DeliveryDone&& done,
           absl::FunctionRef<MonotonicTime()> sent_at, uint64_t generation, const Options& options);

  bool empty() const { return batches_.empty(); }
  const ProduceBatch& front() const { return *batches_.front(); }
  // The first batch takes no more.
  bool HasFull(const Options& options) const;
  // The first batch, if it is full or has waited for as long as it should, or there is `no_linger`;
  // else null.
  std::shared_ptr<ProduceBatch> Take(MonotonicTime now, bool no_linger, const Options& options);
  // The first batch, if there is one and its time is over by `now`; else null.
  std::shared_ptr<ProduceBatch> TakeExpired(MonotonicTime now);

 private:
  std::shared_ptr<ProduceBatch> TakeFront();

  std::deque<std::shared_ptr<ProduceBatch>> batches_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_BATCH_LANE_H_
