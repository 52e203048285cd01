#ifndef CONCLAVE_CLIENT_PRODUCER_PARTITION_QUEUE_H_
#define CONCLAVE_CLIENT_PRODUCER_PARTITION_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/base/backoff.h"
#include "client/producer/produce_batch.h"
#include "common/random/random.h"
#include "common/types/time.h"

namespace conclave {

// The batches of one partition on their way: what may be sent, what is sent again, under which
// numbers, and what is given up. A state machine: time, answers and the producer's identity come
// in; batches to send and batches that are done come out. Not thread-safe.
//
// Order. Batches are numbered when they are first sent, in the order their records came, and stand
// in a window from then until they and all before them are done. After a failure nothing is sent
// until every attempt under way has ended; then the batches that are left go out again in order,
// under their numbers. The window is never wider than the five batches that a broker remembers
// (KIP-98), so a repeat is always recognised. Without idempotence one batch is under way at a time.
//
// A new epoch (KIP-360) is needed where numbers are missing from the log for good: a batch was
// given up with others numbered behind it, or with an outcome that nobody knows, or the leader does
// not know the numbers before the first of the window. Batches that were certainly refused get new
// numbers from 0 on, in order. One whose outcome is unknown is failed by name: under new numbers a
// broker would take it for another batch and store it twice.
class PartitionQueue {
 public:
  struct Options {
    Duration delivery_timeout = Duration::Seconds(120);
    std::string delivery_timeout_name = "delivery.timeout.ms";
    bool idempotent = true;
    // Acks none: what is passed to the network is done, and nothing uncertain is sent again.
    bool answered = true;
    // At most 5 with idempotence.
    size_t max_in_flight = 5;
    Duration retry_pause = Duration::Milliseconds(50);
    Duration retry_pause_max = Duration::Seconds(1);
  };

  PartitionQueue(TopicPartition partition, const Options& options, const Random& random);

  const TopicPartition& partition() const { return partition_; }
  // Nothing has been sent that is not done.
  bool empty() const { return window_.empty(); }
  size_t in_flight() const { return in_flight_; }

  // The next batch that may go out, which is in flight from then on; null if none may now.
  // `current` is the producer's identity, not valid while there is none. `unsent` gives batches
  // that were never sent, in order, and null if there is none.
  std::shared_ptr<ProduceBatch> Next(MonotonicTime now, const ProducerIdentity& current,
                                     absl::FunctionRef<std::shared_ptr<ProduceBatch>()> unsent);

  // The answers for batches in flight. DUPLICATE is success.
  void Succeeded(ProduceBatch& batch, Offset base_offset);
  // `unknown`: it may be stored all the same. `at_once`: a retry need not wait, for the new leader
  // was named.
  void Failed(ProduceBatch& batch, const absl::Status& status, bool unknown, bool at_once,
              MonotonicTime now);
  // There is another leader than the one that failed: a retry need not wait any more.
  void LeaderMoved(MonotonicTime now);

  // Gives up what has been there for the delivery timeout. `obstacle` tells why nothing was sent.
  void Expire(MonotonicTime now, const absl::Status& obstacle);
  // Gives up a batch that was never sent and has been there for that long; after Expire.
  void ExpireUnsent(std::shared_ptr<ProduceBatch> batch, const absl::Status& obstacle);
  // Gives up everything. No answers may come after it.
  void Abort(const absl::Status& why);

  // It can go on only under another identity than this.
  bool NeedsNewIdentity(const ProducerIdentity& current) const;

  // When it may send again after a failure; in the past where nothing keeps it.
  MonotonicTime retry_at() const { return retry_at_; }
  // When the next of those sent is given up; nullopt if none.
  std::optional<MonotonicTime> Deadline() const;
  // Of what was sent and is not done; nullopt if there is nothing.
  std::optional<uint64_t> OldestGeneration() const;

  // Those whose `result` was set since the last call, in order.
  std::vector<std::shared_ptr<ProduceBatch>> TakeCompleted();

 private:
  using State = ProduceBatch::State;

  std::shared_ptr<ProduceBatch> NextInWindow(bool& more);
  void Rebase(const ProducerIdentity& current);
  // Batches that fail together wait together: the pause grows with the tries, not with the batches.
  void Pause(MonotonicTime now);
  void GiveUp(ProduceBatch& batch, absl::Status status);
  bool SplitInWindow(ProduceBatch& batch);
  // Takes what is done off the front of the window.
  void Settle();
  absl::Status Expired(const ProduceBatch& batch, const absl::Status& obstacle) const;

  const TopicPartition partition_;
  const Options options_;
  Random random_;
  // Numbered and sent once at least; the first is not done.
  std::deque<std::shared_ptr<ProduceBatch>> window_;
  std::vector<std::shared_ptr<ProduceBatch>> completed_;
  size_t in_flight_ = 0;

  ProducerIdentity identity_;
  int32_t next_sequence_ = 0;
  bool needs_identity_ = false;
  // A batch waits to be sent again, and attempts of others are under way still.
  bool blocked_ = false;
  MonotonicTime retry_at_;
  Backoff retry_pause_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PARTITION_QUEUE_H_
