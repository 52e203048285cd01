#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/base/lifetime.h"
#include "client/metadata/metadata_cache.h"
#include "client/producer/identity_source.h"
#include "client/producer/partition_queue.h"
#include "client/producer/partitioner.h"
#include "client/producer/produce_connection.h"
#include "client/producer/producer.h"

namespace conclave {

// Where records wait for the executor, and the count of the buffer. The one part of a producer that
// threads share.
class Producer::Inbox {
 public:
  struct Entry {
    ProducerRecord record;
    DeliveryDone done;
    size_t bytes = 0;
    MonotonicTime sent_at;
    // Of flushes; set by the core.
    uint64_t generation = 0;
  };

  Inbox(size_t capacity, Executor& executor) : capacity_(capacity), executor_(executor) {}

  // True in `wake`: the core has to be told.
  absl::Status Put(Entry entry, bool& wake);
  std::vector<Entry> Take();
  void Free(size_t bytes);
  void WhenRoom(size_t bytes, absl::AnyInvocable<void()> room);
  void Close();
  size_t used() const;

 private:
  struct Waiter {
    size_t bytes;
    absl::AnyInvocable<void()> room;
  };

  void LetGo(std::unique_lock<std::mutex>& lock);

  const size_t capacity_;
  Executor& executor_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  size_t used_ = 0;
  bool closed_ = false;
  bool told_ = false;
  std::deque<Waiter> waiters_;
};

// Everything else, on the executor.
class Producer::Core : public std::enable_shared_from_this<Producer::Core>,
                       private ProduceConnection::Owner {
 public:
  Core(ProducerOptions options, Transport& transport, Executor& executor, const Random& random,
       std::shared_ptr<Inbox> inbox);
  ~Core() override;

  // From any thread: puts the record into the inbox, and sees to it that it is taken out.
  absl::Status Accept(Inbox::Entry entry);
  void Flush(absl::AnyInvocable<void()> done);
  void Close(Duration timeout, absl::AnyInvocable<void()> done);

 private:
  struct Topic {
    // For its partitions to be known.
    std::deque<Inbox::Entry> waiting;
    StickyPartitioner sticky;
  };
  struct FlushWait {
    uint64_t generation;
    absl::AnyInvocable<void()> done;
  };

  // ProduceConnection::Owner
  void OnAnswer(const ProduceConnection& from, const ProduceConnection::Item& item,
                const v1::ProducePartitionResult& result) override;
  void OnLost(const ProduceConnection& from, const ProduceConnection::Item& item,
              const absl::Status& status, bool unknown) override;
  void OnRoom() override { Wake(); }

  // `may_have_moved`: another broker may lead by now, or soon.
  void Failed(const ProduceConnection& from, const ProduceConnection::Item& item,
              const absl::Status& status, bool unknown, bool may_have_moved);
  // Those that wait after a failure, and have another leader since.
  void RetryMoved(MonotonicTime now);

  // Pump, soon; several wishes become one.
  void Wake();
  // One round: takes records in, sends what may be sent, tells what is done.
  void Pump();
  void TakeIn();
  void Route(const std::string& name, Topic& topic, const MetadataCache::Topic& metadata,
             Inbox::Entry entry);
  PartitionIndex Choose(const std::string& name, Topic& topic, const MetadataCache::Topic& metadata,
                        const Inbox::Entry& entry);
  // Hands on or fails what waits for metadata.
  void RouteWaiting(MonotonicTime now);
  void FailWaiting(Topic& topic, const absl::Status& why);
  void FailEntry(Inbox::Entry entry, PartitionIndex partition, const absl::Status& why);
  void ExpireAndRenew(MonotonicTime now);
  void SendAll(MonotonicTime now);
  bool SendRound(MonotonicTime now);
  ProduceConnection& ConnectionTo(const MetadataCache::Leader& leader);
  void Collect(PartitionQueue& queue);
  void TellCompleted();
  void CheckFlushes();
  void ArmTimer(MonotonicTime now);
  void Abort();
  void CloseConnections();

  PartitionQueue& QueueOf(const TopicPartition& partition);
  // Why a partition gets nothing sent.
  absl::Status Obstacle(const TopicPartition& partition) const;
  bool hurry() const { return !flushes_.empty(); }
  void Count(uint64_t generation, int64_t change);

  const ProducerOptions options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  const std::shared_ptr<Inbox> inbox_;
  MetadataCache metadata_;
  IdentitySource identity_;
  std::map<std::string, Topic> topics_;
  std::map<TopicPartition, PartitionQueue> queues_;
  // Those that are not empty.
  std::set<TopicPartition> active_;
  // Where the next round begins, so that none is always last.
  TopicPartition turn_;
  std::map<BrokerId, std::unique_ptr<ProduceConnection>> connections_;
  // Whose last attempt failed, with the leader that was known then.
  std::map<TopicPartition, std::optional<MetadataCache::Leader>> failed_;

  struct Completed {
    TopicPartition partition;
    std::shared_ptr<ProduceBatch> batch;
  };
  std::vector<Completed> completed_;
  // Of a batch, since one was last acknowledged.
  absl::Status last_failure_;

  // Records not done by generation; a flush waits for those up to its own.
  uint64_t generation_ = 1;
  std::map<uint64_t, int64_t> counts_;
  std::deque<FlushWait> flushes_;

  bool pump_posted_ = false;
  TimerId timer_;
  MonotonicTime timer_at_ = MonotonicTime::Never();
  bool closed_ = false;
  TimerId close_timer_;
  absl::AnyInvocable<void()> close_done_;
  size_t closing_ = 0;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_
