#ifndef CONCLAVE_CLIENT_PRODUCER_RECORD_ACCUMULATOR_H_
#define CONCLAVE_CLIENT_PRODUCER_RECORD_ACCUMULATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/producer/batch_lane.h"
#include "client/producer/partitioner.h"
#include "client/producer/producer_record.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/record/record_view.h"
#include "common/types/ids.h"
#include "common/types/strong_int.h"
#include "common/types/time.h"

namespace conclave {

// The place of a partition's records here; counts from 0.
using LaneId = StrongInt<struct LaneIdTag, uint32_t>;

// Where records gather until they are sent: the one part of a producer that threads share. Send
// writes a record straight into its partition's batch, on the caller's thread, so that it is copied
// once; the producer's executor takes batches out. Records of topics whose partitions are not known
// wait here as they came. Thread-safe; what only the executor may call says so.
class RecordAccumulator {
 public:
  struct Options {
    size_t buffer_bytes = size_t{32} << 20;
    BatchLane::Options batches;
  };

  // A record that no batch has taken.
  struct Waiting {
    ProducerRecord record;
    DeliveryDone done;
    size_t bytes = 0;
    // From when its time counts.
    MonotonicTime sent_at;
    uint64_t generation = 0;
  };

  // The executor is for those that wait for room; it outlives this.
  RecordAccumulator(const Options& options, const Random& random, Executor& executor)
      : options_(options), random_(random), executor_(executor) {}

  // As Producer::Send. `now` is asked for what not every record needs: clocks are a tenth of what a
  // small record costs. `now_ms`: the timestamp of a record that has none. True in `wake`: there is
  // news, of which the executor has not been told.
  absl::Status Append(const ProducerRecord& record, DeliveryDone&& done,
                      absl::FunctionRef<MonotonicTime()> now, int64_t now_ms, bool& wake);
  // As Producer::WhenRoom.
  void WhenRoom(size_t bytes, absl::AnyInvocable<void()> room);
  size_t used() const;

  // --- On the executor

  // Lanes that have got a batch, and topics that have got a record that waits, since the last call.
  struct News {
    std::vector<LaneId> lanes;
    std::vector<std::string> topics;
  };
  News TakeNews();

  // For a partition that had none.
  LaneId AddLane();
  // The topic's partitions, by index, and which of them have a leader; one at least. What waits for
  // them goes to their lanes; returned is what names a partition that is not among them.
  std::vector<Waiting> SetPartitions(const std::string& topic, std::vector<LaneId> lanes,
                                     std::vector<bool> has_leader);
  // The topic's new batches have at most so many bytes, before compression; a larger number than
  // before changes nothing.
  void LimitBatches(const std::string& topic, size_t bytes);
  // The topic is not known (any more): its records wait.
  void ForgetPartitions(const std::string& topic);
  // When the first record that waits was sent; nullopt: none waits.
  std::optional<MonotonicTime> OldestWaiting(const std::string& topic) const;
  // Those that wait and were sent by then.
  std::vector<Waiting> TakeWaiting(const std::string& topic, MonotonicTime sent_until);

  struct Taken {
    // Null: none is ready.
    std::shared_ptr<ProduceBatch> batch;
    // When the one that is not is; nullopt: there is none.
    std::optional<MonotonicTime> ready_at;
  };
  Taken Take(LaneId lane, MonotonicTime now, bool no_linger);
  // Its first batch takes no more.
  bool HasFull(LaneId lane) const;
  // Null: none.
  std::shared_ptr<ProduceBatch> TakeExpired(LaneId lane, MonotonicTime now);
  // Of its first batch.
  std::optional<MonotonicTime> Deadline(LaneId lane) const;

  // What was appended before this call has the returned generation or an older one.
  uint64_t NextGeneration();
  // Of everything here; nullopt: there is nothing.
  std::optional<uint64_t> OldestGeneration() const;

  // Bytes of the buffer that are not needed any more.
  void Free(size_t bytes);
  // Takes no more.
  void Close();

 private:
  struct Lane {
    BatchLane batches;
    size_t batch_bytes;
    bool told = false;
  };
  struct Topic {
    std::string name;
    size_t batch_bytes;
    std::optional<StickyPartitioner> sticky;
    std::vector<LaneId> lanes;
    std::vector<bool> has_leader;
    // All partitions, if none has a leader.
    std::vector<PartitionIndex> available;
    std::deque<Waiting> waiting;
    bool told = false;
  };
  struct RoomWaiter {
    size_t bytes;
    absl::AnyInvocable<void()> room;
  };

  Topic& TopicOf(const std::string& name);
  PartitionIndex Choose(Topic& topic, const ProducerRecord& record, size_t bytes);
  // The record's lane; none if it has to wait.
  std::optional<LaneId> Route(Topic& topic, const ProducerRecord& record, size_t bytes);
  void AddTo(LaneId lane, const RecordView& record, size_t bytes, DeliveryDone&& done,
             absl::FunctionRef<MonotonicTime()> sent_at, uint64_t generation);
  void TellOf(Topic& topic);
  // What batches of the lane are held to.
  BatchLane::Options OptionsOf(const Lane& lane) const;
  void SetUsed(size_t bytes) { used_.store(bytes, std::memory_order_relaxed); }
  // Those waiters for whom there is room now.
  std::vector<absl::AnyInvocable<void()>> TakeRoomWaiters();
  void LetGo(std::vector<absl::AnyInvocable<void()>> waiters);

  const Options options_;
  const Random random_;
  Executor& executor_;
  mutable std::mutex mutex_;
  // What follows, and every private method but LetGo, belongs to who holds it.
  std::deque<Lane> lanes_;
  std::map<std::string, std::unique_ptr<Topic>> topics_;
  // Most records are of the topic of the one before.
  Topic* last_topic_ = nullptr;
  News news_;
  bool told_ = false;
  uint64_t generation_ = 1;
  // Written under the lock; whoever asks how full the buffer is, for each record, need not take it.
  std::atomic<size_t> used_ = 0;
  bool closed_ = false;
  std::deque<RoomWaiter> room_waiters_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_RECORD_ACCUMULATOR_H_
