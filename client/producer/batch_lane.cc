#include "client/producer/batch_lane.h"

#include <utility>

namespace conclave {

bool BatchLane::Add(const RecordView& record, size_t buffer_bytes, DeliveryDone&& done,
                    absl::FunctionRef<MonotonicTime()> sent_at, uint64_t generation,
                    const Options& options) {
  const bool begins = batches_.empty() || !batches_.back()->HasRoomFor(record, options.batch_bytes);
  if (begins) {
    const MonotonicTime created = sent_at();
    batches_.push_back(
        std::make_shared<ProduceBatch>(options.codec, created, created + options.delivery_timeout));
    batches_.back()->generation = generation;
  }
  batches_.back()->Add(record, buffer_bytes, std::move(done), options.batch_bytes);
  return begins;
}

std::shared_ptr<ProduceBatch> BatchLane::TakeFront() {
  std::shared_ptr<ProduceBatch> front = std::move(batches_.front());
  batches_.pop_front();
  return front;
}

bool BatchLane::HasFull(const Options& options) const {
  return batches_.size() > 1 ||
         (!batches_.empty() && front().encoded_bytes() >= options.batch_bytes);
}

std::shared_ptr<ProduceBatch> BatchLane::Take(MonotonicTime now, bool no_linger,
                                              const Options& options) {
  if (batches_.empty()) return nullptr;
  const bool ready = no_linger || HasFull(options) || now >= front().created() + options.linger;
  return ready ? TakeFront() : nullptr;
}

std::shared_ptr<ProduceBatch> BatchLane::TakeExpired(MonotonicTime now) {
  return !batches_.empty() && front().deadline() <= now ? TakeFront() : nullptr;
}

}  // namespace conclave
